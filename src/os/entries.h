/* entries.h - reads the names in a directory one by one. Unlike a DIR, struct entries needs no heap
 * memory, no second fd, and no system calls except for reading. */
#ifndef OS_ENTRIES_H
#define OS_ENTRIES_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>

#define ENTRIES_BYTES 8192U

struct entries {
	int dir; /* borrowed */
	size_t at, len;
	/* aligned as the kernel requires */
	_Alignas(struct dirent64) char raw[ENTRIES_BYTES];
};

/* `dir` is borrowed and must be open for reading. */
void entries_init(struct entries *e, int dir);

/* Returns the next name that is neither "." nor "..", valid until the next call. NULL at the end
 * with errno 0, or with another errno if the rest cannot be read. */
const struct dirent64 *entries_next(struct entries *e);

/* True if the next call of entries_next() needs no system call, unless only "." and ".." are
 * left. */
static inline bool entries_buffered(const struct entries *e)
{
	return e->at < e->len;
}

/* Opens a DIR for the directory `name` in dir_fd; "." is dir_fd itself. Follows no symlink. The
 * result is new; NULL with errno on failure. */
DIR *entries_open(int dir_fd, const char *name);
/* Like entries_next(), for a DIR. */
const struct dirent *entries_of(DIR *dir);

#endif
