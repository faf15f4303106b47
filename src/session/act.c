/* act.c - a decision reaches the runs that live.
 *
 * Every keeper is asked at once, and none is waited for alone. A run is dead
 * when its init is (the kernel has ended all others of the namespace before), and
 * a pidfd tells that without anybody's word. So
 *   kill    a keeper that does not even say that it heard forfeits the grace; one
 *           that did, but whose run lives on after it, is helped. Both by SIGKILL
 *           to the init.
 *   pause   what cannot be brought to stand is ended: it would go on unseen.
 *   resume  asks only.
 * A run without keeper and init is one whose machine or keeper died: its end is
 * written down here. */
#include "session/act.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/clock.h"
#include "session/live.h"
#include "session/notify.h"
#include "session/place.h"

#define SILENT_MS  75   /* for a keeper to say that it heard */
#define LATE_MS    60   /* for the run to be dead after its grace */
#define PAUSE_MS   5000 /* for it to stand still */
#define GIVE_UP_MS 2000 /* after it was ended by force */
#define AGAIN_MS   5
#define WAVE       256 /* runs at a time: each holds two fds */

struct target {
	struct session_run run;
	int sock;     /* -1: no keeper, or none that takes another client */
	int init;     /* pidfd; -1: not known, or gone */
	bool gone;    /* nobody listens there */
	bool foreign; /* another owner's, whose keepers hear of it from the store */
	bool heard;
	bool done;
	bool forced;
	bool lost; /* done, and nobody has written that down */
};

struct targets {
	struct target *v;
	size_t n;
	struct session_run here;
	const struct session_run *except;
	size_t elsewhere;
	bool full;
};

static int add_target(void *arg, const struct session_run *r)
{
	struct targets *t = arg;

	if (t->except != NULL && r->n == t->except->n) {
		return 0;
	}
	bool restarted = place_restarted(r, &t->here);
	if (!place_same_host(r, &t->here) && !restarted) {
		t->elsewhere++;
		return 0;
	}
	struct target *more = t->n < MAX_LIVE ? reallocarray(t->v, t->n + 1, sizeof(*more)) : NULL;
	if (more == NULL) {
		t->full = true;
		return 1;
	}
	t->v = more;
	t->v[t->n++] = (struct target){
		.run = *r, .sock = -1, .init = -1, .done = restarted, .lost = restarted
	};
	return 0;
}

/* ---- one run ------------------------------------------------------------- */

static void ask(struct target *t, int dir, const struct live_request *q)
{
	t->sock = live_connect(dir, t->run.socket);
	if (t->sock < 0) {
		t->gone = errno == ECONNREFUSED || errno == ENOENT;
		return;
	}
	if (live_send(t->sock, q, sizeof(*q)) != 0) {
		own_close(&t->sock);
	}
}

static void finish(struct target *t, bool lost)
{
	t->done = true;
	t->lost = lost;
	own_close(&t->sock);
	own_close(&t->init);
}

/* Whom a keeper's socket belongs to, if it is not known where its run is: with
 * the keeper the run ends. */
static bool kill_keeper(struct target *t)
{
	struct ucred who = { 0 };
	socklen_t len = sizeof(who);

	if (t->sock < 0 || getsockopt(t->sock, SOL_SOCKET, SO_PEERCRED, &who, &len) != 0 ||
	    who.pid != t->run.keeper) {
		return false;
	}
	auto_fd fd = (int)syscall(SYS_pidfd_open, who.pid, 0U);
	struct pollfd p = { .fd = t->sock };
	/* Still connected: the number is still the one of who listens. */
	return fd >= 0 && poll(&p, 1, 0) == 0 && place_kill(fd) == 0;
}

static void force(struct target *t)
{
	if (t->forced) {
		return;
	}
	if (t->init >= 0) {
		t->forced = place_end(t->init, t->run.init) == 0;
	} else if (kill_keeper(t)) {
		t->forced = true;
		finish(t, true);
	}
}

static void hear_keeper(struct target *t, enum live_op op)
{
	struct live_reply r;
	int got = live_recv(t->sock, &r, sizeof(r));

	if (got < 0) {
		t->gone = true;
		own_close(&t->sock);
	} else if (got > 0 && r.answer == LIVE_HEARD) {
		t->heard = true;
		if (t->init < 0 && r.init > 0) {
			t->run.init = r.init;
			t->init = place_open(r.init, r.init_start);
		}
	} else if (got > 0) {
		/* Dead is what the init says, where we know it. */
		own_close(&t->sock);
		if (op != LIVE_KILL || t->init < 0) {
			finish(t, false);
		}
	}
}

/* What is due for it by now; a kill's and a pause's silent ones are forced. */
static void press(struct target *t, const struct live_request *q, uint64_t waited_ms)
{
	if (t->gone && t->init < 0 && !t->done) {
		finish(t, !t->heard); /* nothing of it is left */
		return;
	}
	if (q->op == LIVE_RESUME || t->done) {
		return;
	}
	uint64_t patience = q->op == LIVE_PAUSE ? PAUSE_MS
	                    : t->heard          ? q->grace_ms + LATE_MS
	                                        : SILENT_MS;
	if (waited_ms >= patience || (t->gone && !t->heard)) {
		force(t);
	}
}

/* ---- all of them --------------------------------------------------------- */

static size_t wait_for_some(struct target *v, size_t n, struct pollfd *p, int ms)
{
	size_t left = 0;

	for (size_t i = 0; i < n; i++) {
		p[2 * i] = (struct pollfd){ .fd = v[i].done ? -1 : v[i].sock, .events = POLLIN };
		p[2 * i + 1] =
		        (struct pollfd){ .fd = v[i].done ? -1 : v[i].init, .events = POLLIN };
		left += !v[i].done;
	}
	if (left > 0) {
		(void)poll(p, 2 * n, ms);
	}
	return left;
}

static void hear_all(struct target *v, size_t n, const struct pollfd *p, enum live_op op)
{
	for (size_t i = 0; i < n; i++) {
		if (v[i].sock >= 0 && p[2 * i].revents != 0) {
			hear_keeper(&v[i], op);
		}
		if (!v[i].done && v[i].init >= 0 && p[2 * i + 1].revents != 0) {
			finish(&v[i], v[i].gone && !v[i].heard);
		}
	}
}

/* Its own keeper is asked. Another owner's cannot be; what may be ended all the
 * same is ended, and what is dead is dead. */
static void approach(struct target *t, int dir, const struct live_request *q)
{
	t->init = place_open(t->run.init, t->run.init_start);
	if (dir >= 0 && live_name_here(dir, t->run.socket)) {
		ask(t, dir, q);
		return;
	}
	t->gone = true;
	if (t->init >= 0 && q->op == LIVE_KILL) {
		force(t);
	}
	if (!t->forced) {
		bool dead = t->init < 0 && t->run.init > 0;
		t->foreign = !dead;
		finish(t, dead);
	}
}

static uint64_t give_up_ms(const struct live_request *q)
{
	return q->op == LIVE_KILL ? q->grace_ms + GIVE_UP_MS : PAUSE_MS + GIVE_UP_MS;
}

static void act_wave(struct target *v, size_t n, int dir, const struct live_request *q)
{
	struct pollfd p[2 * WAVE];
	uint64_t begun = clock_ms();
	uint64_t waited = 0;

	for (size_t i = 0; i < n; i++) {
		if (!v[i].done) {
			approach(&v[i], dir, q);
		}
	}
	while (waited < give_up_ms(q)) {
		for (size_t i = 0; i < n; i++) {
			if (!v[i].done && v[i].sock < 0 && !v[i].gone && !v[i].heard) {
				ask(&v[i], dir, q); /* too many wanted something of it */
			}
			press(&v[i], q, waited);
		}
		if (wait_for_some(v, n, p, AGAIN_MS) == 0) {
			break;
		}
		hear_all(v, n, p, (enum live_op)q->op);
		waited = clock_ms() - begun;
	}
}

static void close_all(struct targets *t)
{
	for (size_t i = 0; i < t->n; i++) {
		own_close(&t->v[i].sock);
		own_close(&t->v[i].init);
	}
	free(t->v);
}

static void count(const struct targets *t, struct act_report *r)
{
	r->elsewhere = t->elsewhere;
	for (size_t i = 0; i < t->n; i++) {
		const struct target *v = &t->v[i];
		r->runs += !v->foreign;
		r->elsewhere += v->foreign;
		r->left += !v->done;
		r->forced += v->forced;
		r->reached += v->done && !v->forced && !v->lost && !v->foreign;
	}
}

/* Nobody else will: their keepers are gone. */
static int close_lost(struct sessions *ss, const struct targets *t, struct ssb_error *err)
{
	int failed = 0;

	for (size_t i = 0; i < t->n; i++) {
		if (t->v[i].lost &&
		    session_run_end(ss, &t->v[i].run, 137, "keeper_lost", err) != 0) {
			failed = -1;
		}
	}
	return failed;
}

static int find_runs(struct sessions *ss, const char *id, struct targets *t, struct ssb_error *err)
{
	if (place_here(&t->here, err) != 0 || session_runs(ss, id, add_target, t, err) != 0) {
		return -1;
	}
	return t->full ? ssb_fail(err, SSB_E_LIMIT, 0, "session", "more than %d runs", MAX_LIVE)
	               : 0;
}

static void act_all(struct targets *t, int dir, const struct live_request *q)
{
	for (size_t i = 0; i < t->n; i += WAVE) {
		act_wave(t->v + i, t->n - i < WAVE ? t->n - i : WAVE, dir, q);
	}
}

static enum live_op op_of(enum session_state state)
{
	return session_is_over(state)    ? LIVE_KILL
	       : state == SESSION_PAUSED ? LIVE_PAUSE
	                                 : LIVE_RESUME;
}

static int act_on_runs(struct sessions *ss, const struct owner *o, const struct decision *d,
                       const struct session_run *except, struct act_report *ret,
                       struct ssb_error *err)
{
	struct live_request q = { .version = LIVE_VERSION, .op = op_of(d->state) };
	AUTO(close_all) struct targets t = { .except = except };
	auto_fd dir = -1;
	uint64_t begun = clock_us();

	q.grace_ms = d->grace_ms;
	snprintf(q.reason, sizeof(q.reason), "%s", d->verdict.reason);
	if (find_runs(ss, d->decided, &t, err) != 0) {
		return -1;
	}
	/* Where there is no such directory, nobody listens in it. */
	(void)live_dir(o->state_dir, false, &dir, &(struct ssb_error){ 0 });
	act_all(&t, dir, &q);
	ret->took_us = clock_us() - begun;
	count(&t, ret);
	return close_lost(ss, &t, err);
}

int session_act(struct sessions *ss, const struct owner *o, const struct decision *d,
                const struct session_run *except, struct act_report *ret, struct ssb_error *err)
{
	struct act_report report = { 0 };

	if (d->changed && act_on_runs(ss, o, d, except, &report, err) != 0) {
		return -1;
	}
	*ret = report;
	return d->notify ? notify_start(o, err) : 0;
}

/* One whose socket takes a connection has a keeper. */
static bool has_keeper(int dir, const struct target *t)
{
	auto_fd fd = live_connect(dir, t->run.socket);

	return fd >= 0 || (errno != ECONNREFUSED && errno != ENOENT);
}

int session_close_lost(struct sessions *ss, const struct owner *o, const char *id,
                       const struct session_run *except, size_t *ret_closed, struct ssb_error *err)
{
	const struct live_request q = { .version = LIVE_VERSION, .op = LIVE_KILL };
	AUTO(close_all) struct targets t = { .except = except };
	auto_fd dir = -1;
	size_t closed = 0;

	if (find_runs(ss, id, &t, err) != 0) {
		return -1;
	}
	(void)live_dir(o->state_dir, false, &dir, &(struct ssb_error){ 0 });
	for (size_t i = 0; i < t.n; i++) {
		t.v[i].done = t.v[i].done || dir < 0 || !live_name_here(dir, t.v[i].run.socket) ||
		              has_keeper(dir, &t.v[i]);
	}
	act_all(&t, dir, &q);
	for (size_t i = 0; i < t.n; i++) {
		closed += t.v[i].lost;
	}
	if (close_lost(ss, &t, err) != 0) {
		return -1;
	}
	*ret_closed = closed;
	return 0;
}
