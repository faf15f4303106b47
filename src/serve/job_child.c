/* job_child.c - the supervisor's side of a run.
 *
 * The supervisor must not read or write the streams of the protocol. It must not hold a
 * connection, or a pipe or pidfd of another run. So it keeps the fds of its plan, two pipes
 * and one socket, and nothing else. When the server is gone, it may only end the skill and
 * finish the record. The kernel sends it a signal then. */
#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "otel/otel.h"
#include "base/limits.h"
#include "base/own.h"
#include "consent/consent.h"
#include "os/clone.h"
#include "os/file.h"
#include "policy/owner.h"
#include "policy/plan.h"
#include "serve/child.h"
#include "serve/job_priv.h"
#include "session/keeper.h"

/* sandbox_run() reads these signals. A signal that arrives earlier stays pending until then. */
static const int HELD[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

static int settle_process(const struct job_child *c)
{
	int keep[2 * MAX_GRANTS + 4];
	size_t n = 0;

	keep[n++] = c->out;
	keep[n++] = c->err;
	keep[n++] = c->sock;
	for (size_t i = 0; i < c->plan->n_grants; i++) {
		const struct grant *g = &c->plan->grants[i];
		if (n + 2 > ARRAY_LEN(keep)) {
			return -1;
		}
		keep[n++] = g->fd;
		keep[n++] = g->parent_fd;
	}
	const struct child_needs needs = { .goes_with_server = SIGTERM,
		                           .held = HELD,
		                           .n_held = ARRAY_LEN(HELD),
		                           .keep = keep,
		                           .n_keep = n };
	return child_settle(&needs);
}

/* ---- the record ------------------------------------------------------------------ */

struct job_record {
	int sock;
	int fd; /* kept for the export; -1: none */
	bool otel;
};

/* Fills the path and the id of the record. The record is called ".../runs/ID.trace.jsonl" until it
 * is moved into its own directory. */
static void name_record(struct job_msg *m, int record)
{
	struct run_entry e;

	(void)file_path(record, m->record.path, sizeof(m->record.path));
	const char *slash = strrchr(m->record.path, '/');
	if (slash != NULL && run_entry_from_name(&e, slash + 1)) {
		memcpy(m->record.id, e.id, sizeof(m->record.id));
	}
}

/* Sends an fd of the record that is opened anew. The fd of this process must not be shared: its
 * open file description has the lock that marks the run as running. */
static void on_record(void *arg, int record)
{
	struct job_record *t = arg;
	struct job_msg m = { .kind = JOB_RECORD };
	struct msg_fds fds = { .n = 0 };
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", record);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		fds.v[fds.n++] = fd;
	}
	name_record(&m, record);
	(void)msg_fds_send(t->sock, &m, sizeof(m), &fds);
	if (t->otel && t->fd < 0) {
		t->fd = fd;
	} else if (fd >= 0) {
		(void)close(fd);
	}
}

static void export_record(const struct job_record *t, const struct owner *owner)
{
	struct otel_config config;
	struct ssb_error err = { 0 };

	if (t->fd >= 0 && otel_config_load(&config, owner, &err) == 0) {
		otel_start(t->fd, &config, owner);
		otel_config_done(&config);
	}
}

/* ---- the run ----------------------------------------------------------------------- */

void job_supervise(const struct job_child *c)
{
	assert(c->plan != NULL);

	static struct job_msg end; /* not on the stack: it is large */
	const int stdio[3] = { -1, c->out, c->err };
	struct job_record record = { .sock = c->sock, .fd = -1, .otel = c->otel };
	struct run_request q = run_request_of(c->plan, stdio);
	struct owner owner = { 0 };
	struct ssb_result result = { 0 };
	struct ssb_error err = { 0 };

	if (settle_process(c) != 0) {
		_exit(1);
	}
	if (c->traceparent != NULL) {
		(void)setenv("TRACEPARENT", c->traceparent, 1);
		(void)unsetenv("TRACESTATE");
	}
	q.owner = &owner;
	q.still = consent_still;
	run_request_watch(&q, (struct ssb_watch){ on_record, &record });
	int failed = (c->prepare != NULL && c->prepare(c->prepare_arg, &err) != 0) ||
	             owner_load(&owner, &err) != 0 ||
	             keeper_run(&q, c->session, &result, NULL, &err) != 0;
	end.kind = failed != 0 ? JOB_FAILED : JOB_RESULT;
	if (failed != 0) {
		end.err = err;
	} else {
		end.result = result;
	}
	(void)msg_fds_send(c->sock, &end, sizeof(end), NULL);
	export_record(&record, &owner);
	_exit(0);
}
