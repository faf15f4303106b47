/* trace_file.h - the file behind a trace: written as a part, then put in
 * place whole.
 *
 * The final name never holds half a document and is never written through:
 * the bytes go to a new file in the same, already opened directory, and a
 * rename puts it over the final name (over a symlink itself, should one have
 * appeared there). Where the skill may write to that directory the part has
 * no name at all until the skill is gone. */
#ifndef AUDIT_TRACE_FILE_H
#define AUDIT_TRACE_FILE_H

#include <limits.h>
#include <stdbool.h>

#include "base/buf.h"
#include "policy/plan.h"
#include "skillsandbox.h"

#define TRACE_BUFFER ((size_t)64 * 1024)

struct trace_file {
	int dir_fd; /* where the final name stands; held, so it cannot be swapped */
	int fd;
	char run[37]; /* the run's directory in dir_fd, to be made; "" if there is none to make */
	char part[NAME_MAX + 1]; /* "" while the part has no name */
	char name[NAME_MAX + 1];
	char path[PATH_MAX];      /* final, as people see it */
	struct buf out;           /* not yet written, at most TRACE_BUFFER */
	struct ssb_error failure; /* the first write that failed */
};

#define TRACE_FILE_NONE                                                                            \
	{                                                                                          \
		.dir_fd = -1, .fd = -1                                                             \
	}

/* <state_dir>/runs/<id>/trace.json, or plan->trace_output. On failure `f`
 * is still to be given to trace_file_done(). */
int trace_file_open(struct trace_file *f, const struct ssb_plan *plan, const struct owner *owner,
                    const char *id, struct ssb_error *err);
/* Empties the buffer into the file. A failure is remembered; later calls and
 * trace_file_publish() fail with the first one. */
int trace_file_flush(struct trace_file *f);
/* Puts the part into the run's own directory, which is made here and not by
 * open: that can wait until the skill runs. */
int trace_file_settle(struct trace_file *f);
/* Flush, and on the disk. */
int trace_file_sync(struct trace_file *f, struct ssb_error *err);
/* The last sync, then the final name. */
int trace_file_publish(struct trace_file *f, struct ssb_error *err);
void trace_file_done(struct trace_file *f); /* leaves an unpublished part behind */

#endif
