/* digest.h - the digest of every file of the skill's own directory.
 *
 * Computed by a process of its own while the skill runs, with low priority: a
 * large directory delays neither the start nor the supervisor. What is known
 * of a file is remembered in the state directory by device, inode, size, mtime
 * and ctime (digest_cache.h), so that the next run reads only what is new. */
#ifndef TRACE_DIGEST_H
#define TRACE_DIGEST_H

#include <stdbool.h>

#include "base/buf.h"

struct digest {
	bool started;
	int process; /* pidfd; -1: none could be had */
	int fd;      /* what it says, at its end */
};

#define DIGEST_NONE                                                                                \
	{                                                                                          \
		.process = -1, .fd = -1                                                            \
	}

/* `dir_fd` (O_PATH, borrowed) is the directory. Where no process can be had,
 * digest_finish() says nothing but that. */
void digest_start(struct digest *d, int dir_fd, const char *state_dir);
/* Waits, at most `wait_ms` in all (and 400 where that is less); what is done by
 * then is all. Appends
 * the members of the line `files`; nothing, if the process failed. False:
 * there was nothing to do. */
bool digest_finish(struct digest *d, int wait_ms, struct buf *out);
void digest_stop(struct digest *d);

#endif
