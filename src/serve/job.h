/* job.h - one run: a supervisor that is forked from this process, and its streams and record, which
 * the loop follows. */
#ifndef SERVE_JOB_H
#define SERVE_JOB_H

#include "trace/reader.h"
#include "serve/serve.h"

struct serve_job;

struct job_end {
	bool ran;                 /* false: `err` says why there was no run, or what failed */
	struct ssb_result result; /* run_id and trace_path are set whenever there is a record */
	struct ssb_error err;
	const char *out[2]; /* the kept part of stdout and stderr; not made visible */
	size_t out_len[2];
	uint64_t out_all[2]; /* number of bytes that the run wrote */
};

/* The loop calls all of these functions. job_start() never calls them. */
struct job_watch {
	/* Output as it comes; `stream` is 1 or 2. May be NULL. */
	void (*output)(void *arg, int stream, const char *data, size_t len);
	/* The run's id is known. May be NULL. */
	void (*started)(void *arg, const char *run_id);
	/* A line was written to the record; NULL: the record is not followed. */
	void (*line)(void *arg, const struct line *l);
	/* The last callback. It must not use the job afterwards. */
	void (*ended)(void *arg, const struct job_end *end);
	void *arg;
};

struct job_wish {
	const struct ssb_plan *plan; /* borrowed during job_start() */
	const char *who;             /* the client, whose share of runs this run uses; copied */
	const char *session;         /* NULL: none */
	/* Called first in the supervisor, where it may wait. If it fails, nothing is run. May be
	 * NULL. */
	int (*prepare)(const void *arg, struct ssb_error *err);
	const void *prepare_arg; /* borrowed during job_start() */
	const char *traceparent; /* parent of the spans of this run; NULL: none */
	size_t keep;             /* how many bytes of each stream to keep */
};

/* Starts a run. *ret is borrowed until `ended` is called. */
int job_start(struct serve *s, const struct job_wish *w, const struct job_watch *watch,
              struct serve_job **ret, struct ssb_error *err);
/* Ends the run: all its processes are dead within 100 ms. `ended` is called as for every run. */
void job_cancel(struct serve_job *j);

int job_list_new(struct serve *s, struct job_list **ret, struct ssb_error *err);
void job_list_free(struct job_list *j); /* cancels all runs and waits for them; accepts NULL */
size_t job_list_count(const struct job_list *j);

#endif
