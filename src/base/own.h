/* own.h - frees and closes variables by the cleanup attribute when they leave scope.
 *
 *   auto_fd fd = open(...);          closed when it leaves scope
 *   auto_free char *s = strdup(...); freed when it leaves scope
 *   return steal_fd(&fd);            hands ownership to the caller */
#ifndef BASE_OWN_H
#define BASE_OWN_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void own_close(int *fd)
{
	if (*fd >= 0) {
		(void)close(*fd); /* never retried: the fd is closed even on failure */
		*fd = -1;
	}
}

/* Several fds. Those with consecutive numbers are closed by one call. */
struct own_fds {
	int v[16];
	unsigned n;
};

static inline void own_close_all(struct own_fds *fds)
{
	for (unsigned first = 0, next; first < fds->n; first = next) {
		for (next = first + 1; next < fds->n && fds->v[next] == fds->v[next - 1] + 1;) {
			next++;
		}
		(void)close_range((unsigned)fds->v[first], (unsigned)fds->v[next - 1], 0);
	}
	fds->n = 0;
}

/* Adds the fd to the list, unless it is -1. If the list is full, its fds are closed first. */
static inline void own_add(struct own_fds *fds, int fd)
{
	if (fds->n == sizeof(fds->v) / sizeof(fds->v[0])) {
		own_close_all(fds);
	}
	if (fd >= 0) {
		fds->v[fds->n++] = fd;
	}
}

static inline void own_free(void *p)
{
	free(*(void **)p);
}

static inline void own_fclose(FILE **f)
{
	if (*f != NULL) {
		(void)fclose(*f);
	}
}

static inline void own_closedir(DIR **d)
{
	if (*d != NULL) {
		(void)closedir(*d);
	}
}

#define auto_fd   __attribute__((cleanup(own_close))) int
#define auto_free __attribute__((cleanup(own_free)))
#define auto_file __attribute__((cleanup(own_fclose))) FILE *
#define auto_dir  __attribute__((cleanup(own_closedir))) DIR *
#define AUTO(fn)  __attribute__((cleanup(fn)))

/* Defines the function `name` for AUTO(), which calls `free_fn` for a pointer to `type`. A type
 * cannot be in parentheses here. NOLINTBEGIN(bugprone-macro-parentheses) */
#define OWN_FREEP(name, type, free_fn)                                                             \
	static inline void name(type **p)                                                          \
	{                                                                                          \
		free_fn(*p);                                                                       \
	}
/* NOLINTEND(bugprone-macro-parentheses) */

static inline int steal_fd(int *fd)
{
	int r = *fd;
	*fd = -1;
	return r;
}

#define steal_ptr(p)                                                                               \
	({                                                                                         \
		__typeof__(*(p)) r_ = *(p);                                                        \
		*(p) = NULL;                                                                       \
		r_;                                                                                \
	})

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
