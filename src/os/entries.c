/* entries.c - the names in an open directory, read without a DIR. */
#include "os/entries.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>

#include "base/own.h"

void entries_init(struct entries *e, int dir)
{
	e->dir = dir;
	e->at = e->len = 0;
}

static bool is_dots(const char *name)
{
	return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

const struct dirent64 *entries_next(struct entries *e)
{
	assert(e->dir >= 0);
	for (;;) {
		if (e->at == e->len) {
			errno = 0;
			ssize_t n = getdents64(e->dir, e->raw, sizeof(e->raw));
			if (n < 0 && errno == ENOENT) {
				errno = 0; /* the directory was removed, so it has no more names */
			}
			if (n <= 0) {
				return NULL;
			}
			e->at = 0;
			e->len = (size_t)n;
		}
		const struct dirent64 *entry = (const void *)(e->raw + e->at);
		e->at += entry->d_reclen;
		if (!is_dots(entry->d_name)) {
			return entry;
		}
	}
}

DIR *entries_open(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (dir == NULL) {
		own_close(&fd);
	}
	return dir;
}

const struct dirent *entries_of(DIR *dir)
{
	const struct dirent *e;

	do {
		errno = 0;
		e = readdir(dir);
	} while (e != NULL && is_dots(e->d_name));
	return e;
}
