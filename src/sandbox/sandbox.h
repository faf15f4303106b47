/* sandbox.h - one run, seen from the supervisor.
 *
 * supervisor ──clone3(user, mount, pid)──► init (PID 1) ──fork──► skill
 *      ▲                                      │
 *      └───────── ctl: SOCK_SEQPACKET ────────┘  when it closes, init exits
 *
 * The skill's process makes the other namespaces. */
#ifndef SANDBOX_SANDBOX_H
#define SANDBOX_SANDBOX_H

#include <assert.h>
#include <stdbool.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "trace/trace.h"
#include "base/buf.h"
#include "os/clock.h"
#include "os/marks.h"
#include "policy/plan.h"
#include "sandbox/prepared.h"
#include "skillsandbox.h"

#define RUN_WATCHES 2 /* the command `run --watch --otel` uses two */

/* The request for one run: a final plan, and the settings of this run. All pointers and fds are
 * borrowed. */
struct run_request {
	const struct ssb_plan *plan;
	const struct owner *owner; /* NULL: sandbox_run() loads it */
	int stdio[3];              /* -1: empty input, or discarded output */
	uint64_t
	        max_seconds; /* run_request_of() takes it from the plan; the caller may change it */
	enum tty_mode tty;   /* run_request_of() takes it from the plan; the caller may change it */
	int govern_fd;       /* see sandbox/govern.h; -1: no session governs the run */
	/* Called right before the skill starts and again at the skill's end: returns -1 if the
	 * skill's files are no longer the approved ones, see consent_still(). NULL: the files are
	 * not checked. */
	int (*still)(const struct ssb_plan *p, struct marks *seen, struct ssb_error *err);
	struct ssb_watch watches[RUN_WATCHES];
	size_t n_watches;
	/* Shared memory that says whether the skill has its terminal in raw mode, as full-screen
	 * programs do. NULL: it is not needed. */
	atomic_bool *full_screen;
};

/* Returns the clock_ms() at which a time limit that begins now is over. RESOURCE_UNLIMITED gives a
 * time that never comes. */
static inline uint64_t run_deadline(uint64_t max_seconds)
{
	const uint64_t never = 1ULL << 40;

	return clock_ms() + (max_seconds < never ? max_seconds : never) * 1000;
}

static inline struct run_request run_request_of(const struct ssb_plan *plan, const int stdio[3])
{
	return (struct run_request){
		.plan = plan,
		.stdio = { stdio[0], stdio[1], stdio[2] },
		.max_seconds = plan->res.max_runtime_seconds,
		.tty = plan->tty,
		.govern_fd = -1,
	};
}

static inline void run_request_watch(struct run_request *q, struct ssb_watch watch)
{
	assert(q->n_watches < RUN_WATCHES);
	q->watches[q->n_watches++] = watch;
}

/* Does this request; otherwise like ssb_run(). *ret_prepared is new and must be released with
 * prepared_done(); `ret_prepared` may be NULL. */
int sandbox_run(const struct run_request *q, struct ssb_result *ret_result,
                struct prepared *ret_prepared, struct ssb_error *err);

/* A function that the skill's process calls inside the finished sandbox instead of execve. It sees
 * a copy of the supervisor's memory. out_fd is a pipe to the supervisor. The result is the exit
 * status of the process. */
typedef int (*sandbox_payload)(int out_fd, void *arg);

/* Runs `payload` inside the finished sandbox of the plan. Appends its output on out_fd to `out`, up
 * to the cap of `out` and at most as much as a pipe holds. No trace is written. */
int sandbox_run_payload(const struct run_request *q, sandbox_payload payload, void *arg,
                        struct buf *out, struct ssb_error *err);

#endif
