/* trace_file.h - the two files of a run: where they are, and how they get there.
 *
 * The record (trace.jsonl) is the only file that must exist before the skill starts. It lies
 * among the runs until trace_file_settle() makes the run's own directory. The document
 * (trace.json) is written under a temporary name and put in place when it is whole. The final
 * name never has half a document and is never written through: a rename replaces it (even a
 * symlink that appeared there). With --trace-output DIR/x.json both lie in DIR, the record as
 * x.jsonl. */
#ifndef TRACE_TRACE_FILE_H
#define TRACE_TRACE_FILE_H

#include <limits.h>
#include <stdbool.h>

#include "policy/plan.h"
#include "skillsandbox.h"

#define RECORD_NAME "trace.jsonl"

struct trace_file {
	int dir_fd;    /* the directory of the names; held, so that it cannot be replaced */
	int record_fd; /* locked as long as it is open, if `locked` */
	bool locked;
	int fd; /* the unfinished document; -1 until it is settled */
	bool settled;
	char run[37];              /* the run's directory, made when settling; "": none is made */
	char record[NAME_MAX + 1]; /* the record's name until it is settled */
	char part[NAME_MAX + 1];
	char record_name[NAME_MAX + 1];
	char name[NAME_MAX + 1];
	char record_path[PATH_MAX]; /* final path, for messages */
	char path[PATH_MAX];
};

#define TRACE_FILE_NONE                                                                            \
	{                                                                                          \
		.dir_fd = -1, .record_fd = -1, .fd = -1                                            \
	}

/* Creates the record in <state_dir>/runs/<id>/, or beside plan->trace_output. Call
 * trace_file_done() also after a failure. */
int trace_file_open(struct trace_file *f, const struct ssb_plan *plan,
                    const struct prepared *of_run, const struct owner *owner, const char *id,
                    struct ssb_error *err);
/* Puts the record in place and creates the unfinished document. Works once; this may wait until
 * the skill runs. */
int trace_file_settle(struct trace_file *f, struct ssb_error *err);
/* Returns what must be appended to a document's path to get the path of its record. */
const char *trace_file_more(const char *path);
/* Gives the document its final name. */
int trace_file_publish(struct trace_file *f, struct ssb_error *err);
/* Removes a document that could not be finished. */
void trace_file_discard(struct trace_file *f);
void trace_file_done(struct trace_file *f);

#endif
