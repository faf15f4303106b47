/* files_line.h - the line `files` of the record: the digests of the skill's files.
 *
 * A process of its own computes them while the skill runs, with low priority, so that a large
 * directory delays neither the start nor the supervisor. Digests of files that have not changed
 * since the last run come from the cache in the state directory. skill/files.h says what the
 * digests cover, and their form.
 *
 * If the run ends first and the skill is small, the supervisor reads the files itself: this takes
 * less time than starting a process. */
#ifndef TRACE_FILES_LINE_H
#define TRACE_FILES_LINE_H

#include <signal.h>
#include <stdbool.h>

#include "base/buf.h"

struct files_line {
	bool started;
	struct buf members; /* the members, if the supervisor read the files itself */
	int process;        /* pidfd; -1: the process could not be started */
	int fd;             /* the process writes its answer here when it ends */
};

#define FILES_LINE_NONE                                                                            \
	{                                                                                          \
		.process = -1, .fd = -1                                                            \
	}

/* Reads the files of a small skill (FILES_RECORD_SMALL); does nothing for others. */
void files_line_read(struct files_line *d, int dir_fd);
/* Starts the process, unless the files were read already. `dir_fd` (O_PATH, borrowed) is the
 * skill's directory. */
void files_line_start(struct files_line *d, int dir_fd, const char *state_dir);
/* Waits for the answer, for at most `wait_ms` or 400 ms, whichever is longer; then the process
 * must answer with what it has. Appends the members of the line, or nothing if the process
 * failed. Returns false if it was not started. */
bool files_line_finish(struct files_line *d, int wait_ms, struct buf *out);
void files_line_stop(struct files_line *d);

/* The work of the process: appends the members of the line. `state_fd` may be -1. If *stop
 * becomes nonzero it ends early, with what was read until then. */
void files_line_members(int dir_fd, int state_fd, const volatile sig_atomic_t *stop,
                        struct buf *out);

#endif
