/* job.h - one run under way: a supervisor forked from this process, its streams and
 * its record followed by the loop. */
#ifndef SERVE_JOB_H
#define SERVE_JOB_H

#include "trace/reader.h"
#include "serve/serve.h"

struct serve_job;

struct job_end {
	bool ran;                 /* false: `err` says why not, or what broke */
	struct ssb_result result; /* run_id and trace_path are filled wherever there is a record */
	struct ssb_error err;
	const char *out[2]; /* what was kept of stdout and stderr; not visible text yet */
	size_t out_len[2];
	uint64_t out_all[2]; /* bytes there were */
};

/* All called from the loop, never from inside of job_start(). */
struct job_watch {
	/* As it comes, `stream` 1 or 2. May be NULL. */
	void (*output)(void *arg, int stream, const char *data, size_t len);
	/* The record has its id; NULL: not wanted. */
	void (*started)(void *arg, const char *run_id);
	/* A line of the record as it is written; NULL: the record is not followed. */
	void (*line)(void *arg, const struct line *l);
	/* Last of all; the job is gone after it. */
	void (*ended)(void *arg, const struct job_end *end);
	void *arg;
};

struct job_wish {
	const struct ssb_plan *plan; /* borrowed for the call */
	const char *who;             /* the client, whose share it is of; copied */
	const char *session;         /* NULL: none */
	/* In the supervisor, first of all: it may wait for others. Where it fails there is
	 * no run. NULL: nothing is to be done. */
	int (*prepare)(const void *arg, struct ssb_error *err);
	const void *prepare_arg; /* borrowed for the call */
	const char *traceparent; /* parent of our spans; NULL: none */
	size_t keep;             /* bytes kept of each stream */
};

/* `*ret` is borrowed until `ended`. */
int job_start(struct serve *s, const struct job_wish *w, const struct job_watch *watch,
              struct serve_job **ret, struct ssb_error *err);
/* Everything in it is dead within 100 ms; `ended` comes as always. */
void job_cancel(struct serve_job *j);

int job_list_new(struct serve *s, struct job_list **ret, struct ssb_error *err);
void job_list_free(struct job_list *j); /* cancels, and waits for all; accepts NULL */
size_t job_list_count(const struct job_list *j);

#endif
