/* files_line.h - writes the line `files` of the record, which contains the digests of the skill's
 * files.
 *
 * A separate process computes them while the skill runs, with low priority, so that a large
 * directory delays neither the start nor the supervisor. Digests of files that have not changed
 * since the last run come from the cache in the state directory. skill/files.h says what the
 * digests cover, and defines their form.
 *
 * If the run ends first and the skill is small, the supervisor reads the files itself, because this
 * takes less time than starting a process. */
#ifndef TRACE_FILES_LINE_H
#define TRACE_FILES_LINE_H

#include <signal.h>
#include <stdbool.h>

#include "base/buf.h"

struct files_line {
	bool started;
	struct buf members; /* the members of the line, if the supervisor read the files itself */
	int process;        /* pidfd; -1: the process could not be started */
	int fd;             /* the process writes its answer to this pipe just before it ends */
};

#define FILES_LINE_NONE                                                                            \
	{                                                                                          \
		.process = -1, .fd = -1                                                            \
	}

/* Reads the files of a small skill (FILES_RECORD_SMALL) in the calling process. Does nothing for a
 * larger skill. */
void files_line_read(struct files_line *d, int dir_fd);
/* Starts the process, unless the files were read already. `dir_fd` (O_PATH, borrowed) is the
 * skill's directory. */
void files_line_start(struct files_line *d, int dir_fd, const char *state_dir);
/* Waits for the answer, at most `wait_ms` or 400 ms, whichever is longer. Shortly before the time
 * is over, the process gets SIGTERM and then answers with the files that it has read so far.
 * Appends the members of the line, or nothing if the process failed. Returns false if neither
 * files_line_read() nor files_line_start() has begun the work. */
bool files_line_finish(struct files_line *d, int wait_ms, struct buf *out);
void files_line_stop(struct files_line *d);

/* Does the work of the process: reads the files and appends the members of the line. `state_fd` may
 * be -1. If *stop becomes nonzero, it ends early with the files that were read until then. */
void files_line_members(int dir_fd, int state_fd, const volatile sig_atomic_t *stop,
                        struct buf *out);

#endif
