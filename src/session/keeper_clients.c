/* keeper_clients.c - clients of the control socket. Each client may make one request. A slow or
 * silent client can only use one slot for a limited time. */
#include <assert.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "os/clock.h"
#include "session/keeper_priv.h"

#define ASK_MS 2000

void keeper_clients_init(struct keeper *k)
{
	for (size_t i = 0; i < MAX_LIVE_CLIENTS; i++) {
		k->clients[i] = (struct keeper_client){ .fd = -1 };
	}
}

static void send_reply(const struct keeper *k, struct keeper_client *c, enum live_answer answer,
                       const char *why)
{
	struct live_reply r = { .version = LIVE_VERSION,
		                .answer = answer,
		                .init = k->run.init,
		                .init_start = k->run.init_start };

	snprintf(r.session, sizeof(r.session), "%s", k->run.session);
	snprintf(r.run_id, sizeof(r.run_id), "%s", k->run.run_id);
	snprintf(r.why, sizeof(r.why), "%s", why);
	/* A client that does not read gets no answer. */
	(void)live_send(c->fd, &r, sizeof(r));
	if (answer != LIVE_HEARD) {
		own_close(&c->fd);
	}
}

/* Returns a free slot. If there is none, drops the client that has been silent for longest and
 * returns its slot. NULL: all clients wait for an answer. */
static struct keeper_client *find_slot(struct keeper *k)
{
	struct keeper_client *silent = NULL;

	for (size_t i = 0; i < MAX_LIVE_CLIENTS; i++) {
		struct keeper_client *c = &k->clients[i];
		if (c->fd < 0) {
			return c;
		}
		if (!c->asked && (silent == NULL || c->due < silent->due)) {
			silent = c;
		}
	}
	if (silent != NULL) {
		own_close(&silent->fd);
	}
	return silent;
}

void keeper_clients_accept(struct keeper *k)
{
	auto_fd fd = live_accept(k->listen);
	struct keeper_client *c = fd < 0 ? NULL : find_slot(k);

	if (c != NULL) {
		*c = (struct keeper_client){ .fd = steal_fd(&fd), .due = clock_ms() + ASK_MS };
		keeper_clients_hear(k, c); /* most clients have sent their request already */
	}
}

static bool is_within(const struct keeper *k, const char *session)
{
	return session[0] == '\0' || strcmp(k->run.session, session) == 0 ||
	       ARRAY_HAS(id, k->word.chain, SESSION_DEPTH, strcmp(*id, session) == 0);
}

static void begin_request(struct keeper *k, struct keeper_client *c, const struct live_request *q)
{
	switch ((enum live_op)q->op) {
	case LIVE_PING:
		send_reply(k, c, LIVE_DONE, "");
		break;
	case LIVE_KILL:
		keeper_kill(k, q->grace_ms, q->reason);
		if (k->dead) {
			send_reply(k, c, LIVE_DONE, "");
		}
		break;
	case LIVE_PAUSE:
		keeper_pause(k);
		if (k->dead || k->stands) {
			send_reply(k, c, LIVE_DONE, "");
		}
		break;
	case LIVE_RESUME:
		if (k->dead || k->killing) {
			send_reply(k, c, LIVE_REFUSED, "the run is being ended");
		} else if (!k->paused && !k->pause_sent) {
			send_reply(k, c, LIVE_DONE, "");
		} else {
			k->look_due = true; /* the store decides whether the run may resume */
		}
		break;
	case LIVE_OPS:
		break;
	}
}

void keeper_clients_hear(struct keeper *k, struct keeper_client *c)
{
	assert(c->fd >= 0);
	struct live_request q;
	int got = live_recv(c->fd, &q, sizeof(q));

	if (got == 0) {
		return;
	}
	/* A client may send only one request, and is dropped if it sends more. */
	if (got < 0 || c->asked || q.op >= LIVE_OPS) {
		own_close(&c->fd);
		return;
	}
	q.reason[sizeof(q.reason) - 1] = '\0';
	q.session[sizeof(q.session) - 1] = '\0';
	if (!is_within(k, q.session)) {
		send_reply(k, c, LIVE_OTHER, "");
		return;
	}
	c->asked = true;
	c->op = q.op;
	send_reply(k, c, LIVE_HEARD, "");
	begin_request(k, c, &q);
}

void keeper_clients_answer(struct keeper *k, enum live_op op, enum live_answer answer,
                           const char *why)
{
	for (size_t i = 0; i < MAX_LIVE_CLIENTS; i++) {
		struct keeper_client *c = &k->clients[i];
		if (c->fd >= 0 && c->asked && c->op == (uint32_t)op) {
			send_reply(k, c, answer, why);
		}
	}
}

void keeper_clients_drop_late(struct keeper *k)
{
	uint64_t now = clock_ms();

	for (size_t i = 0; i < MAX_LIVE_CLIENTS; i++) {
		struct keeper_client *c = &k->clients[i];
		if (c->fd >= 0 && !c->asked && now >= c->due) {
			own_close(&c->fd);
		}
	}
}
