/* fanout.c - sends a request to all keepers before it waits for the first answer.
 *
 * There may be more runs than file descriptors, so the answers are awaited in waves of WAVE
 * runs. Before the first wave, the runs of all later waves get the request, too, but no answer
 * is awaited. They are asked again when their wave begins; most of them are dead by then. */
#include "session/fanout.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/limits.h"
#include "base/own.h"
#include "os/clock.h"
#include "session/place.h"

#define SILENT_MS  75   /* time in which a keeper must confirm the request */
#define UNSURE_MS  1000 /* the same if force is impossible or would cost the grace */
#define LATE_MS    60   /* time in which the run must be dead after its grace */
#define PAUSE_MS   5000 /* time in which a run must be paused; later it is ended by force */
#define GIVE_UP_MS 2000 /* longest wait after the run was ended by force */
#define AGAIN_MS   5
#define WAVE       256 /* runs in one wave: each needs two fds */

struct wave {
	struct target *v;
	size_t n;
	int dir;
	const struct live_request *q;
	uint64_t told;  /* time at which all keepers were first asked */
	uint64_t begun; /* time at which this wave was asked */
};

bool targets_add(struct targets *t, const struct target *one)
{
	assert(t->n <= MAX_LIVE);

	struct target *more = t->n < MAX_LIVE ? reallocarray(t->v, t->n + 1, sizeof(*more)) : NULL;

	if (more == NULL) {
		t->full = true;
		return false;
	}
	t->v = more;
	t->v[t->n] = *one;
	t->v[t->n].sock = t->v[t->n].init = -1;
	t->n++;
	return true;
}

void targets_done(struct targets *t)
{
	for (size_t i = 0; i < t->n; i++) {
		own_close(&t->v[i].sock);
		own_close(&t->v[i].init);
	}
	free(t->v);
	t->v = NULL;
	t->n = 0;
}

/* ---- one run ------------------------------------------------------------- */

static void ask_keeper(struct target *t, const struct wave *w)
{
	t->sock = live_connect(w->dir, t->run.socket);
	if (t->sock < 0) {
		t->gone = errno == ECONNREFUSED || errno == ENOENT;
		return;
	}
	if (live_send(t->sock, w->q, sizeof(*w->q)) != 0) {
		own_close(&t->sock);
	}
}

static void finish_target(struct target *t, bool lost)
{
	t->done = true;
	t->lost = lost && !t->unsure;
	own_close(&t->sock);
	own_close(&t->init);
}

/* Kills the process that listens on the keeper's socket, if the init of the run is unknown. The run
 * ends with its keeper. */
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
	/* The socket is still connected, so the pid still belongs to the listener. */
	return fd >= 0 && poll(&p, 1, 0) == 0 && place_kill(fd) == 0;
}

static void force_end(struct target *t)
{
	if (t->forced) {
		return;
	}
	if (t->init >= 0) {
		t->forced = place_end(t->init, t->run.init) == 0;
	} else if (kill_keeper(t)) {
		t->forced = true;
		finish_target(t, true);
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
		/* For a kill, the answer proves nothing if the init is known: only its pidfd
		 * shows that the run is dead. */
		own_close(&t->sock);
		t->other = r.answer == LIVE_OTHER;
		if (op != LIVE_KILL || t->init < 0 || t->other) {
			finish_target(t, false);
		}
	}
}

/* Ends the wait for the keeper of an `unsure` target if it is gone or silent. The run is not
 * ended, because it may belong to another session. */
static void press_unsure(struct target *t, uint64_t waited)
{
	if (t->gone) {
		t->other = true;
		finish_target(t, false);
	} else if (waited >= UNSURE_MS) {
		t->silent = true;
		finish_target(t, false);
	}
}

/* Returns how long a keeper may be silent. It depends on the grace: on a busy machine a keeper
 * answers late, and a run that is ended by force loses its grace. */
static uint64_t silence_ms(const struct live_request *q)
{
	uint64_t most = q->grace_ms < UNSURE_MS ? q->grace_ms : UNSURE_MS;

	return most > SILENT_MS ? most : SILENT_MS;
}

/* Does what is due for `t` at `now`: if the request is a kill or a pause, ends a silent run by
 * force. */
static void press_target(struct target *t, const struct wave *w, uint64_t now)
{
	const struct live_request *q = w->q;
	uint64_t waited = now - w->begun;

	if (t->done) {
		return;
	}
	if (t->unsure && !t->heard) {
		press_unsure(t, waited);
		return;
	}
	if (t->gone && t->init < 0) {
		finish_target(t, !t->heard); /* nothing of the run is left */
		return;
	}
	if (q->op == LIVE_RESUME) {
		return;
	}
	/* The grace began when the keeper was first asked, which may be before this wave. */
	bool late = q->op == LIVE_PAUSE ? waited >= PAUSE_MS
	            : t->heard ? now - w->told >= q->grace_ms + LATE_MS && waited >= LATE_MS
	                       : waited >= silence_ms(q);
	if (late || (t->gone && !t->heard)) {
		force_end(t);
	}
}

/* Asks the run's keeper. A keeper of another owner cannot be asked: its run is ended directly if
 * that is permitted, and the target is done if the run is dead. */
static void approach_target(struct target *t, const struct wave *w)
{
	t->init = place_open(t->run.init, t->run.init_start);
	if (w->dir >= 0 && (t->unsure || live_name_here(w->dir, t->run.socket))) {
		ask_keeper(t, w);
		return;
	}
	t->gone = true;
	if (t->init >= 0 && w->q->op == LIVE_KILL) {
		force_end(t);
	}
	if (!t->forced) {
		bool dead = t->init < 0 && t->run.init > 0;
		t->foreign = !dead;
		finish_target(t, dead);
	}
}

/* ---- all of them --------------------------------------------------------- */

static size_t wait_for_some(const struct wave *w, struct pollfd *p, int ms)
{
	size_t left = 0;

	for (size_t i = 0; i < w->n; i++) {
		const struct target *t = &w->v[i];
		p[2 * i] = (struct pollfd){ .fd = t->done ? -1 : t->sock, .events = POLLIN };
		p[2 * i + 1] = (struct pollfd){ .fd = t->done ? -1 : t->init, .events = POLLIN };
		left += !t->done;
	}
	if (left > 0) {
		(void)poll(p, 2 * w->n, ms);
	}
	return left;
}

static void hear_all(const struct wave *w, const struct pollfd *p)
{
	for (size_t i = 0; i < w->n; i++) {
		struct target *t = &w->v[i];
		if (t->sock >= 0 && p[2 * i].revents != 0) {
			hear_keeper(t, (enum live_op)w->q->op);
		}
		if (!t->done && t->init >= 0 && p[2 * i + 1].revents != 0) {
			finish_target(t, t->gone && !t->heard);
		}
	}
}

static uint64_t give_up_at(const struct wave *w)
{
	uint64_t since = w->begun + PAUSE_MS;

	if (w->q->op == LIVE_KILL) {
		uint64_t over = w->told + w->q->grace_ms;
		since = over > w->begun ? over : w->begun;
	}
	return since + GIVE_UP_MS;
}

static void wave_run(const struct wave *w)
{
	struct pollfd p[2 * WAVE];
	uint64_t now = w->begun;

	for (size_t i = 0; i < w->n; i++) {
		if (!w->v[i].done) {
			approach_target(&w->v[i], w);
		}
	}
	while (now < give_up_at(w)) {
		for (size_t i = 0; i < w->n; i++) {
			struct target *t = &w->v[i];
			if (!t->done && t->sock < 0 && !t->gone && !t->heard) {
				ask_keeper(t, w); /* the keeper had too many clients before */
			}
			press_target(t, w, now);
		}
		if (wait_for_some(w, p, AGAIN_MS) == 0) {
			break;
		}
		hear_all(w, p);
		now = clock_ms();
	}
}

/* Sends the request and closes the socket without waiting for the answer. The keeper still reads
 * the request. */
static void send_request(const struct target *t, int dir, const struct live_request *q)
{
	bool here = dir >= 0 && (t->unsure || live_name_here(dir, t->run.socket));
	auto_fd fd = t->done || !here ? -1 : live_connect(dir, t->run.socket);

	if (fd >= 0) {
		(void)live_send(fd, q, sizeof(*q));
	}
}

void fanout(struct targets *t, int dir, const struct live_request *q)
{
	assert(q->version == LIVE_VERSION && q->op < LIVE_OPS);

	struct wave w = { .dir = dir, .q = q, .told = clock_ms() };

	for (size_t i = WAVE; i < t->n; i++) {
		send_request(&t->v[i], dir, q);
	}
	for (size_t i = 0; i < t->n; i += WAVE) {
		w.v = t->v + i;
		w.n = t->n - i < WAVE ? t->n - i : WAVE;
		w.begun = clock_ms();
		wave_run(&w);
	}
}
