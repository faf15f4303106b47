/* marks.h - detects whether files and directories have changed, even if a process changes one and
 * restores it.
 *
 * A mark contains the time of change (ctime). Only the kernel sets it, at every write, rename, link
 * and change of the other times. This time has a resolution (a tick): if a file was changed in the
 * same tick in which it is marked, it could change again in this tick without getting a new time.
 * mark_young() returns how long the caller must wait before it marks the file. */
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

/* Returns 0, or -1 if there is no memory. */
int marks_add(struct marks *m, const char *path, const struct stat *st);
void marks_sort(struct marks *m); /* by path */
/* Returns a path (borrowed) whose marks differ between two sorted lists, or that only one of them
 * has. A file is preferred to its directory. Returns NULL if the lists are equal. */
const char *marks_differ(const struct marks *a, const struct marks *b);
void marks_done(struct marks *m);

/* Returns how many nanoseconds to wait until a change of the file gets a new time; 0: no need to
 * wait. */
int64_t mark_young(const struct stat *st);

/* Returns true if a process has the file open for writing. A file must not be marked then, because
 * writing through an existing memory mapping does not change its times. Also returns false if the
 * kernel gives no answer: the file belongs to another user, or its file system has no leases. */
bool mark_has_writer(int fd);

#endif
