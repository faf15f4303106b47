/* govern.c - pauses, resumes and ends a run as its governor asks.
 *
 * Nothing here waits for the governor while the run is active. pause.h stops the processes. Init
 * sends SIGTERM; the supervisor sends SIGKILL. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/own.h"
#include "os/clock.h"
#include "os/clone.h"
#include "sandbox/govern_priv.h"

#define DELIVER_MS 2000     /* how long a killed run may deliver its output */
#define LAST_MS    2000     /* how long sending the last messages may take in all */
#define MAX_GRACE  86400000 /* one day */

int governed_new(const struct run_request *q, struct governed **ret, struct ssb_error *err)
{
	struct governed *g = NULL;

	if (q->govern_fd >= 0) {
		g = calloc(1, sizeof(*g));
		if (g == NULL) {
			return ssb_fail(err, SSB_E_NOMEM, 0, "run", "out of memory");
		}
		g->fd = q->govern_fd;
	}
	*ret = g;
	return 0;
}

void governed_free(struct governed *g)
{
	if (g != NULL) {
		free(g->names);
		free(g);
	}
}

/* ---- pause ----------------------------------------------------------------- */

void governed_paused(struct run *r)
{
	struct governed *g = r->govern;

	if (g != NULL && (r->pause.reasons & PAUSE_BY_GOVERNOR) != 0) {
		g->owes_stands = true;
		g->owes_goes = false;
	}
}

static void pause_run(struct run *r)
{
	if (r->govern->killed) {
		return;
	}
	pause_begin(r, PAUSE_BY_GOVERNOR);
	if (r->pause.motion == STANDS) {
		governed_paused(r);
	}
}

static void resume_run(struct run *r)
{
	struct governed *g = r->govern;

	pause_end(r, PAUSE_BY_GOVERNOR);
	g->owes_goes = true;
	g->owes_stands = false;
}

/* ---- end -------------------------------------------------------------------- */

const char *governed_killed(const struct run *r)
{
	return r->govern != NULL && r->govern->killed ? r->govern->reason : NULL;
}

/* Kills the run at once. After that, the run only delivers its output, for at most DELIVER_MS. */
static void kill_now(struct run *r)
{
	struct governed *g = r->govern;

	g->killed = true;
	if (r->ended || r->dead) {
		r->gave_up = true;
		g->kill_at = 0;
		return;
	}
	meter_look(&g->meter, r->pid, r->cgroup);
	run_kill(r);
	g->kill_at = clock_ms() + DELIVER_MS;
}

/* Sends SIGTERM to the processes and closes their network. */
static void ask_to_end(struct run *r)
{
	struct msg m = { .kind = MSG_TERM };

	egress_stop(&r->egress, r->trace);
	(void)msg_fds_send(r->ctl, &m, sizeof(m), NULL);
	pause_end_all(r);
}

static void kill_run(struct run *r, uint64_t grace_ms, const char *reason)
{
	struct governed *g = r->govern;
	uint64_t at = clock_ms() + (grace_ms < MAX_GRACE ? grace_ms : MAX_GRACE);
	bool over = r->ended || r->dead;

	if (g->reason[0] == '\0') {
		snprintf(g->reason, sizeof(g->reason), "%s",
		         reason[0] != '\0' ? reason : "no reason given");
	}
	if (grace_ms == 0 || (!r->started && !over)) {
		kill_now(r);
		return;
	}
	if (!g->killed && !over) {
		g->killed = true;
		ask_to_end(r);
	}
	if (g->kill_at == 0 || at < g->kill_at) {
		g->kill_at = at;
	}
}

void governed_restless(struct run *r)
{
	if (r->govern != NULL) {
		kill_run(r, 0, "a process kept running while the run was paused");
	}
}

static void governor_gone(struct run *r)
{
	r->govern->gone = true;
	if (!r->ended && !r->dead) {
		kill_run(r, 0, "the process that governs the run has died");
	}
}

void governed_hear(struct run *r)
{
	struct governed *g = r->govern;
	struct govern_msg m;

	while (g != NULL && !g->gone) {
		ssize_t n = recv(g->fd, &m, sizeof(m), MSG_DONTWAIT | MSG_TRUNC);
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
			return;
		}
		if (n != (ssize_t)sizeof(m)) {
			governor_gone(r);
			return;
		}
		switch (m.kind) {
		case GOVERN_KILL:
			m.kill.reason[sizeof(m.kill.reason) - 1] = '\0';
			kill_run(r, m.kill.grace_ms, m.kill.reason);
			break;
		case GOVERN_PAUSE:
			pause_run(r);
			break;
		case GOVERN_RESUME:
			resume_run(r);
			break;
		default:
			governor_gone(r); /* an unknown message */
		}
	}
}

/* ---- in the loop -------------------------------------------------------------- */

struct pollfd governed_wants(const struct governed *g)
{
	struct pollfd p = { .fd = -1 };

	if (g != NULL && !g->gone) {
		p.fd = g->fd;
		p.events = (short)(govern_owes(g) ? POLLIN | POLLOUT : POLLIN);
	}
	return p;
}

bool governed_full(const struct governed *g)
{
	return g != NULL && g->n_names > 0;
}

uint64_t governed_due(const struct governed *g)
{
	const uint64_t times[] = { g == NULL ? 0 : g->used_at, g == NULL ? 0 : g->kill_at };
	uint64_t due = 0;

	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		due = times[i] != 0 && (due == 0 || times[i] < due) ? times[i] : due;
	}
	return due;
}

void governed_tick(struct run *r)
{
	struct governed *g = r->govern;
	uint64_t now = g == NULL ? 0 : clock_ms();

	if (g == NULL) {
		return;
	}
	if (g->kill_at != 0 && now >= g->kill_at) {
		kill_now(r);
	}
	(void)govern_tell(g);
	if (g->used_at != 0 && now >= g->used_at) {
		govern_look_and_tell(r);
	}
}

void governed_traced(struct run *r)
{
	if (r->govern != NULL && r->trace != NULL) {
		trace_count(r->trace, &r->govern->tally);
	}
}

void governed_placed(struct run *r)
{
	struct governed *g = r->govern;
	struct govern_msg m = { .kind = GOVERN_PLACED };

	if (g == NULL) {
		return;
	}
	r->egress.opened = govern_keep_name;
	r->egress.opened_arg = g;
	g->start_us = clock_us();
	g->meter = (struct meter){ 0 };
	g->used_at = clock_ms() + GOVERN_TICK_MS;
	snprintf(m.placed.run_id, sizeof(m.placed.run_id), "%s",
	         r->trace != NULL ? trace_id(r->trace) : "");
	m.placed.init = r->pid;
	m.placed.init_start = meter_started(r->pid);
	(void)govern_say(g, &m);
}

void governed_last_look(struct run *r)
{
	if (r->govern != NULL) {
		meter_last(&r->govern->meter, r->pid, r->cgroup);
	}
}

/* Waits until a message can be sent, at most until `until`. Call it only when the run is over. */
static void wait_for_room(const struct governed *g, uint64_t until)
{
	struct pollfd p = { .fd = g->fd, .events = POLLOUT };
	uint64_t now = clock_ms();

	if (now < until) {
		(void)poll(&p, 1, (int)(until - now));
	}
}

void governed_ended(struct run *r, int end, const struct ssb_result *res)
{
	struct governed *g = r->govern;
	struct govern_msg m = { .kind = GOVERN_ENDED };
	uint64_t until = clock_ms() + LAST_MS;

	if (g == NULL) {
		return;
	}
	m.ended.exit_status = res->exit_status;
	m.ended.end = end;
	if (r->trace != NULL) {
		trace_derived(r->trace, m.ended.derived);
	}
	g->owes_stands = g->owes_goes = false;
	while (!(govern_tell(g) && govern_tell_used(r) && govern_say(g, &m)) &&
	       clock_ms() < until) {
		wait_for_room(g, until);
	}
}
