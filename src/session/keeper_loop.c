/* keeper_loop.c - the loop of one run, from its start in the store to its recorded end. */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/name.h"
#include "base/own.h"
#include "os/clock.h"
#include "session/keeper_priv.h"
#include "session/place.h"

#define TURN_MESSAGES 64    /* most messages of the supervisor that are read in one turn */
#define STORE_MS      1000  /* maximum time between two queries to the store */
#define RETRY_MS      500   /* wait after the store did not answer */
#define LOSS_MS       10000 /* after this time without an answer the store counts as lost */
#define FORCE_MS      60    /* time in which the supervisor must end the run */
#define EXPIRED_MS    2000  /* time in which the store must report that the session expired */
#define CALLER_MS     2000  /* time for which the caller waits for the record of the end */
#define LAST_MS       60000 /* time for which the keeper tries to record the end */
#define SEND_AGAIN_MS 20
#define HOUR_MS       3600000

enum { AT_SUP, AT_SUP_PID, AT_LISTEN, AT_CLERK, AT_INIT, AT_CLIENTS, AT_FIXED = AT_CLIENTS };

/* ---- to the supervisor --------------------------------------------------- */

static int tell_supervisor(const struct keeper *k, const struct govern_msg *m)
{
	return k->sup < 0 || k->silent ? -1 : live_send(k->sup, m, sizeof(*m));
}

void keeper_kill(struct keeper *k, uint64_t grace_ms, const char *reason)
{
	struct govern_msg m = { .kind = GOVERN_KILL };
	uint64_t at = clock_ms() + (grace_ms < HOUR_MS ? grace_ms : HOUR_MS) + FORCE_MS;

	if (k->dead || (k->killing && at + FORCE_MS >= k->force_at)) {
		/* An earlier order already ends the run by then. */
		return;
	}
	m.kill.grace_ms = grace_ms < HOUR_MS ? grace_ms : HOUR_MS;
	snprintf(m.kill.reason, sizeof(m.kill.reason), "%s", reason);
	/* If the message cannot be sent, the keeper ends the run at force_at. */
	(void)tell_supervisor(k, &m);
	k->killing = true;
	k->force_at = at;
}

/* Tells the supervisor to stop or resume the run, as `paused` and `held` say. If the message
 * cannot be sent, the next call tries again. */
static void set_pause(struct keeper *k)
{
	bool want = k->paused || k->held;
	struct govern_msg m = { .kind = want ? GOVERN_PAUSE : GOVERN_RESUME };

	if (!k->killing && !k->dead && want != k->pause_sent && tell_supervisor(k, &m) == 0) {
		k->pause_sent = want;
	}
}

void keeper_pause(struct keeper *k)
{
	k->paused = true;
	k->paused_at = clock_ms();
	set_pause(k);
}

/* ---- from the supervisor ------------------------------------------------- */

/* Called when all processes of the run are dead. */
static void note_dead(struct keeper *k)
{
	k->dead = true;
	own_close(&k->init);
	keeper_clients_answer(k, LIVE_KILL, LIVE_DONE, "");
	keeper_clients_answer(k, LIVE_PAUSE, LIVE_DONE, "");
	keeper_clients_answer(k, LIVE_RESUME, LIVE_REFUSED, "the run has ended");
}

static void note_over(struct keeper *k, int exit_status, const char *ending)
{
	if (!k->over) {
		k->over = true;
		k->over_at = clock_ms();
		k->exit_status = exit_status;
		k->ending = ending;
	}
}

static void note_placed(struct keeper *k, const struct govern_msg *m)
{
	snprintf(k->run.run_id, sizeof(k->run.run_id), "%.*s", (int)sizeof(m->placed.run_id) - 1,
	         m->placed.run_id);
	k->run.init = m->placed.init;
	k->run.init_start = m->placed.init_start;
	own_close(&k->init);
	k->init = place_open(k->run.init, k->run.init_start);
	k->placed_due = true;
}

static void hear_message(struct keeper *k, const struct govern_msg *m)
{
	tally_hear(&k->tally, m);
	switch (m->kind) {
	case GOVERN_PLACED:
		note_placed(k, m);
		break;
	case GOVERN_STANDS:
		k->stands = true;
		keeper_clients_answer(k, LIVE_PAUSE, LIVE_DONE, "");
		break;
	case GOVERN_GOES:
		k->stands = false;
		keeper_clients_answer(k, LIVE_RESUME, LIVE_DONE, "");
		break;
	case GOVERN_ENDED:
		note_over(k, m->ended.exit_status,
		          m->ended.end < 0 ? "failed" : name_of_end((enum ssb_end)m->ended.end));
		note_dead(k);
		break;
	case KEEPER_FAILED:
		note_over(k, m->ended.exit_status, "failed");
		note_dead(k);
		break;
	default:
		break;
	}
}

/* Called when the supervisor has ended without a report: the keeper ends the remaining
 * processes. */
static void note_gone(struct keeper *k)
{
	k->silent = true;
	own_close(&k->sup_pid);
	if (k->init >= 0 && !place_dead(k->init)) {
		(void)place_end(k->init, k->run.init);
		k->force_at = clock_ms() + FORCE_MS;
		k->killing = true;
	} else if (!k->dead) {
		note_dead(k);
	}
	note_over(k, 137, "supervisor_lost");
}

static void hear_supervisor(struct keeper *k, bool died)
{
	struct govern_msg m;
	ssize_t n = 0;

	for (int i = 0; i < TURN_MESSAGES || died; i++) {
		if (k->silent || (tally_full(&k->tally) && !died)) {
			return;
		}
		n = recv(k->sup, &m, sizeof(m), MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EINTR)) {
			break;
		}
		if (n == (ssize_t)sizeof(m)) {
			hear_message(k, &m);
		}
	}
	if (n == 0 || died || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		note_gone(k);
	}
}

/* ---- the store ----------------------------------------------------------- */

static void hear_store(struct keeper *k, const struct clerk_word *w)
{
	k->given = false;
	if (k->task.kind != CLERK_LOOK) {
		tally_settled(&k->tally, w->stored);
	}
	if (!w->stored) {
		k->lost_at = k->lost_at != 0 ? k->lost_at : k->given_at;
		k->retry_at = clock_ms() + RETRY_MS;
		k->placed_due = k->placed_due || k->task.placed;
		keeper_clients_answer(k, LIVE_RESUME, LIVE_REFUSED, w->err.text);
		return;
	}
	k->end_stored = w->ended;
	k->next_at = clock_ms() + STORE_MS;
	k->retry_at = 0;
	if (w->looked) {
		k->word = *w;
		k->lost_at = 0;
		k->held = false;
	} else if (!w->ended) {
		/* The answer is incomplete: the known deadline, chain and on_loss stay valid. */
		k->lost_at = k->lost_at != 0 ? k->lost_at : k->given_at;
		k->retry_at = clock_ms() + RETRY_MS;
	}
	if (w->wish == WISH_KILL) {
		keeper_kill(k, w->grace_ms, w->reason);
	} else if (w->wish == WISH_PAUSE && !k->paused) {
		keeper_pause(k);
	} else if (w->looked && w->wish == WISH_GO && k->paused && k->given_at > k->paused_at) {
		/* The store was asked after the pause, so its answer includes the pause. An older
		 * answer must not resume the run. */
		k->paused = false;
	}
	if (w->wish != WISH_GO || !w->looked) {
		keeper_clients_answer(k, LIVE_RESUME, LIVE_REFUSED,
		                      w->looked ? w->reason : w->err.text);
	} else if (!k->paused && !k->pause_sent) {
		keeper_clients_answer(k, LIVE_RESUME, LIVE_DONE, "");
	}
	set_pause(k);
}

static bool is_expired(const struct keeper *k)
{
	return clock_wall_us() >= k->word.deadline_us;
}

static void give_task(struct keeper *k, enum clerk_task_kind kind)
{
	k->task = (struct clerk_task){ .kind = kind,
		                       .placed = k->placed_due,
		                       .run = k->run,
		                       .exit_status = k->exit_status,
		                       .ending = k->ending };
	if (kind != CLERK_LOOK) {
		tally_take(&k->tally, &k->task.used);
	}
	k->placed_due = k->look_due = false;
	k->given = true;
	k->given_at = clock_ms();
	clerk_give(k->clerk, &k->task);
}

/* Gives the clerk the next task, if one is due. */
static void ask_store(struct keeper *k)
{
	uint64_t now = clock_ms();
	bool expired = is_expired(k) && !k->killing;
	bool due = now >= k->next_at || expired;

	if (k->given || now < k->retry_at || clerk_busy(k->clerk)) {
		return;
	}
	if (k->over && k->dead) {
		if (!k->end_stored) {
			give_task(k, tally_repeats(&k->tally) ? CLERK_USED : CLERK_END);
		}
	} else if ((!k->killing && tally_urgent(&k->tally, k->word.room)) ||
	           (due && !tally_empty(&k->tally)) || expired) {
		give_task(k, CLERK_USED);
	} else if (due || k->look_due || k->placed_due) {
		give_task(k, CLERK_LOOK);
	}
}

/* ---- the clock ----------------------------------------------------------- */

static void lose_store(struct keeper *k, uint64_t now)
{
	if (k->given && k->lost_at == 0 && now >= k->given_at + LOSS_MS) {
		k->lost_at = k->given_at;
	}
	if (k->lost_at == 0 || now < k->lost_at + LOSS_MS) {
		return;
	}
	if (k->word.on_loss == ACT_KILL) {
		keeper_kill(k, 0,
		            "the store of sessions cannot be reached, and no run may continue "
		            "without it (kill_switch.on_store_loss)");
	} else if (k->word.on_loss == ACT_PAUSE) {
		k->held = true;
	}
}

static void keep_time(struct keeper *k)
{
	uint64_t now = clock_ms();

	lose_store(k, now);
	if (is_expired(k) && k->expired_at == 0) {
		k->expired_at = now;
	}
	if (k->expired_at != 0 && now >= k->expired_at + EXPIRED_MS) {
		keeper_kill(k, 0, "the session has expired (max_duration)");
	}
	if (k->killing && !k->dead && now >= k->force_at) {
		if (k->init >= 0) {
			(void)place_end(k->init, k->run.init);
		} else if (k->silent) {
			note_dead(k); /* no process of the run is known, so none can be alive */
		}
		k->force_at = now + FORCE_MS;
	}
	if (k->over && now >= k->over_at + CALLER_MS) {
		own_close(&k->sup); /* do not keep the caller waiting for a slow store */
	}
	set_pause(k);
	keeper_clients_drop_late(k);
}

static uint64_t earlier_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Returns the timeout for poll(). */
static int wait_ms(const struct keeper *k)
{
	uint64_t now = clock_ms();
	uint64_t at = now + STORE_MS; /* not later, so that late clients are dropped in time */
	int64_t left_us = k->word.deadline_us - clock_wall_us();

	if (!k->given && !k->end_stored) {
		at = earlier_of(at, k->next_at > k->retry_at ? k->next_at : k->retry_at);
	}
	if (k->killing && !k->dead) {
		at = earlier_of(at, k->force_at);
	}
	if ((k->paused || k->held) != k->pause_sent) {
		at = earlier_of(at, now + SEND_AGAIN_MS);
	}
	if (left_us > 0 && left_us / 1000 < STORE_MS) {
		at = earlier_of(at, now + (uint64_t)left_us / 1000 + 1);
	}
	return at > now ? (int)(at - now) : 0;
}

/* ---- one turn ------------------------------------------------------------ */

static bool is_finished(struct keeper *k)
{
	uint64_t now = clock_ms();

	if (!k->over) {
		return false;
	}
	/* The actor may still be ending other runs of the session. */
	return (k->end_stored && !clerk_acts(k->clerk)) || now >= k->over_at + LAST_MS;
}

static void hear_clients(struct keeper *k, const struct pollfd *p)
{
	for (size_t i = 0; i < MAX_LIVE_CLIENTS; i++) {
		if (p[AT_CLIENTS + i].revents != 0 && k->clients[i].fd == p[AT_CLIENTS + i].fd) {
			keeper_clients_hear(k, &k->clients[i]);
		}
	}
	if (p[AT_LISTEN].revents != 0) {
		keeper_clients_accept(k);
	}
}

static void run_turn(struct keeper *k)
{
	struct pollfd p[AT_FIXED + MAX_LIVE_CLIENTS] = {
		[AT_SUP] = { .fd = k->silent || tally_full(&k->tally) ? -1 : k->sup,
		             .events = POLLIN },
		[AT_SUP_PID] = { .fd = k->sup_pid, .events = POLLIN },
		[AT_LISTEN] = { .fd = k->listen, .events = POLLIN },
		[AT_CLERK] = { .fd = clerk_fd(k->clerk), .events = POLLIN },
		[AT_INIT] = { .fd = k->init, .events = POLLIN },
	};
	struct clerk_word w;

	for (size_t i = 0; i < MAX_LIVE_CLIENTS; i++) {
		p[AT_CLIENTS + i] = (struct pollfd){ .fd = k->clients[i].fd, .events = POLLIN };
	}
	(void)poll(p, AT_FIXED + MAX_LIVE_CLIENTS, wait_ms(k));
	/* Clients are heard first, because they ask to end or stop the run. */
	hear_clients(k, p);
	if (p[AT_CLERK].revents != 0 && clerk_take(k->clerk, &w)) {
		hear_store(k, &w);
	}
	if (p[AT_SUP].revents != 0 || p[AT_SUP_PID].revents != 0) {
		hear_supervisor(k, p[AT_SUP_PID].revents != 0);
	}
	if (p[AT_INIT].revents != 0 && k->init >= 0) {
		note_dead(k);
	}
	k->look_due = clerk_news(k->clerk) || k->look_due;
	keep_time(k);
	ask_store(k);
}

void keeper_loop(struct keeper *k)
{
	assert(k->clerk != NULL && k->word.looked);
	k->next_at = clock_ms() + STORE_MS;
	while (!is_finished(k)) {
		run_turn(k);
	}
}
