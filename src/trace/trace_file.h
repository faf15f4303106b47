/* trace_file.h - the two files of a run: where they lie, and how they get
 * there.
 *
 * The record (trace.jsonl) is there before the skill starts, the one file that
 * is made on that way; it lies flat among the runs until trace_file_settle()
 * makes the run's own directory. The document (trace.json) is written as a
 * part and put in place whole: the final name never holds half of it and is
 * never written through, for a rename puts it over the final name (over a
 * symlink itself, should one have appeared there). With --trace-output
 * DIR/x.json both lie in DIR, the record as x.jsonl. */
#ifndef TRACE_TRACE_FILE_H
#define TRACE_TRACE_FILE_H

#include <limits.h>
#include <stdbool.h>

#include "policy/plan.h"
#include "skillsandbox.h"

#define RECORD_NAME "trace.jsonl"

struct trace_file {
	int dir_fd;    /* where the names stand; held, so it cannot be swapped */
	int record_fd; /* locked as long as it is open, if `locked` */
	bool locked;
	int fd; /* the document's part; -1 until it is settled */
	bool settled;
	char run[37];              /* the run's directory, made by settling; "": none to make */
	char record[NAME_MAX + 1]; /* until then */
	char part[NAME_MAX + 1];
	char cli_record_name[NAME_MAX + 1];
	char name[NAME_MAX + 1];
	char record_path[PATH_MAX]; /* final, as people see it */
	char path[PATH_MAX];
};

#define TRACE_FILE_NONE                                                                            \
	{                                                                                          \
		.dir_fd = -1, .record_fd = -1, .fd = -1                                            \
	}

/* <state_dir>/runs/<id>/, or beside plan->trace_output: creates the record. On
 * failure `f` is still to be given to trace_file_done(). */
int trace_file_open(struct trace_file *f, const struct ssb_plan *plan,
                    const struct prepared *of_run, const struct owner *owner, const char *id,
                    struct ssb_error *err);
/* Puts the record into its place and makes the document's part. Once; this can
 * wait until the skill runs. */
int trace_file_settle(struct trace_file *f, struct ssb_error *err);
/* What the path of a document lacks to be that of its record. */
const char *trace_file_more(const char *path);
/* The document's final name. */
int trace_file_publish(struct trace_file *f, struct ssb_error *err);
/* A document that could not be finished is of no use to anybody. */
void trace_file_discard(struct trace_file *f);
void trace_file_done(struct trace_file *f);

#endif
