/* trace_file.h - creates the two files of a run and puts them in place.
 *
 * The record (trace.jsonl) is the only file that must exist before the skill starts. It is directly
 * in the directory of the runs until trace_file_settle() makes the run's own directory. The
 * document (trace.json) is written under a temporary name and gets its final name when it is
 * complete. So the final name never refers to an unfinished document. It is also never opened for
 * writing: a rename replaces the file there, even a symlink. With --trace-output DIR/x.json both
 * files are in DIR, and the record is called x.jsonl. */
#ifndef TRACE_TRACE_FILE_H
#define TRACE_TRACE_FILE_H

#include <limits.h>
#include <stdbool.h>

#include "policy/plan.h"
#include "skillsandbox.h"

#define RECORD_NAME "trace.jsonl"

struct trace_file {
	int dir_fd;    /* the directory of both files; kept open, so that it cannot be replaced */
	int record_fd; /* if `locked`, this fd keeps the record locked until it is closed */
	bool locked;
	int fd; /* the unfinished document; -1 until `settled` */
	bool settled;
	/* name of the run's directory, which trace_file_settle() makes; "": it makes none */
	char run[37];
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

/* Creates the record in the directory <state_dir>/runs, or beside plan->trace_output. The caller
 * must call trace_file_done() even after a failure. */
int trace_file_open(struct trace_file *f, const struct ssb_plan *plan,
                    const struct prepared *of_run, const struct owner *owner, const char *id,
                    struct ssb_error *err);
/* Gives the record its final name and creates the unfinished document. Does this once; later calls
 * do nothing. May be called after the skill has started. */
int trace_file_settle(struct trace_file *f, struct ssb_error *err);
/* Returns what must be appended to a document's path to get the path of its record. */
const char *trace_file_more(const char *path);
/* Gives the document its final name. */
int trace_file_publish(struct trace_file *f, struct ssb_error *err);
/* Removes a document that could not be finished. */
void trace_file_discard(struct trace_file *f);
void trace_file_done(struct trace_file *f);

#endif
