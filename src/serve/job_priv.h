/* job_priv.h - between the two sides of a run: the server and the supervisor that was
 * forked from it. */
#ifndef SERVE_JOB_PRIV_H
#define SERVE_JOB_PRIV_H

#include <sys/types.h>

#include "trace/runs.h"
#include "skillsandbox.h"

enum job_kind { JOB_RECORD, JOB_RESULT, JOB_FAILED };

/* The record is there (with an fd of it, to read), then how it ended. */
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

/* What the supervisor has of its server; all borrowed. */
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

/* As clone_fork(); the child does not return. */
pid_t job_fork(const struct job_child *c, int *ret_pidfd);

#endif
