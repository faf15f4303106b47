/* marks.h - what the kernel knows of files and directories that nobody should change: who
 * changes one and puts it back as it was cannot put back when that was.
 *
 * The time of the change (ctime) is the kernel's own: it moves with every write, rename,
 * link, and with every attempt to set the others. It has a tick: what was changed within
 * the tick in which it is marked could change once more unseen (mark_young()). */
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
void marks_sort(struct marks *m); /* by their paths */
/* A path that is not the same in both, which are sorted; borrowed. A file rather than the
 * directory that it is in. NULL: all are the same. */
const char *marks_differ(const struct marks *a, const struct marks *b);
void marks_done(struct marks *m);

/* How long to wait, in nanoseconds, until a later change must have a later time; 0: it
 * would have now. */
int64_t mark_young(const struct stat *st);

/* Through memory that was mapped before, a file is written without any time: nobody may
 * have it open for writing when it is marked. False also where the kernel does not say: the
 * file is another user's, or its file system has no leases. */
bool mark_has_writer(int fd);

#endif
