/* marks.h - detects whether files and directories have changed, even if a process changes one and
 * restores it.
 *
 * The kernel alone sets the time of change (ctime): every write, rename, link and change of the
 * other times moves it. It has a tick. A file that was changed in the tick in which it is marked
 * could change once more without a new time; mark_young() tells how long to wait. */
#ifndef OS_MARKS_H
#define OS_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct mark {
	char *path;
	bool is_dir;
	uint64_t dev;
	uint64_t ino;
	int64_t mtime_ns;
	int64_t ctime_ns;
};

struct marks {
	struct mark *v;
	size_t n;
	size_t room;
};

/* -1 without memory. */
int marks_add(struct marks *m, const char *path, const struct stat *st);
void marks_sort(struct marks *m); /* by path */
/* Returns a path (borrowed) that differs between two sorted lists, preferring a file to its
 * directory. NULL if they are equal. */
const char *marks_differ(const struct marks *a, const struct marks *b);
void marks_done(struct marks *m);

/* The nanoseconds to wait until any later change gets a later time; 0: no need to wait. */
int64_t mark_young(const struct stat *st);

/* Writing through an existing memory mapping does not change a file's times, so no process may have
 * the file open for writing when it is marked. Returns false also if the kernel does not tell: the
 * file belongs to another user, or its file system has no leases. */
bool mark_has_writer(int fd);

#endif
