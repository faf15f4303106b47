/* job_priv.h - what the server (job.c) and the supervisor of a run (job_child.c), which is forked
 * from it, have in common. */
#ifndef SERVE_JOB_PRIV_H
#define SERVE_JOB_PRIV_H

#include "skillsandbox.h"
#include "trace/runs.h"

enum job_kind { JOB_RECORD, JOB_RESULT, JOB_FAILED };

/* The supervisor first sends JOB_RECORD with an fd for reading the record, and then JOB_RESULT or
 * JOB_FAILED. */
struct job_msg {
	enum job_kind kind;
	union {
		struct {
			char id[RUN_ID_SIZE];
			char path[PATH_MAX];
		} record;
		struct ssb_result result;
		struct ssb_error err;
	};
};

/* The input of the supervisor, which the server sets. All of it is borrowed. */
struct job_child {
	const struct ssb_plan *plan;
	int (*prepare)(const void *arg, struct ssb_error *err);
	const void *prepare_arg;
	const char *session;
	const char *traceparent;
	bool otel;
	int out;
	int err;
	int sock;
};

_Noreturn void job_supervise(const struct job_child *c);

#endif
