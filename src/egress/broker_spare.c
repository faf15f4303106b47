/* broker_spare.c - the next connection to a server, aimed beforehand.
 *
 * Who connects to the same server again and again need not wait for the dialler
 * each time. A spare is a socket that the dialler has aimed at a judged address
 * and not connected: nothing has left the machine. It is fired, by sending
 * nothing, when a connection has passed its checks, and leads nowhere but to
 * that address. It is good for as long as the name's address is; a server that
 * does not answer it at once is left to the dialler. */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/own.h"
#include "egress/broker_priv.h"
#include "os/clone.h"

#define OFTEN_MS 2000 /* two connections within this time: a third is likely */

static struct spare *spare_for(struct broker *b, const struct conn *c)
{
	for (size_t i = 0; i < N_SPARES; i++) {
		struct spare *s = &b->spares[i];
		if (s->slot == c->slot && s->rule == c->rule && s->port == c->port) {
			return s;
		}
	}
	return NULL;
}

static void spare_drop(struct spare *s)
{
	if (s->slot != NULL && s->fd >= 0) {
		own_close(&s->fd);
	}
}

/* The place of the server that was not used for the longest time. */
static struct spare *spare_new(struct broker *b, const struct conn *c)
{
	struct spare *oldest = &b->spares[0];

	for (size_t i = 1; i < N_SPARES; i++) {
		if (b->spares[i].used_ms < oldest->used_ms) {
			oldest = &b->spares[i];
		}
	}
	spare_drop(oldest);
	*oldest = (struct spare){ .slot = c->slot, .rule = c->rule, .port = c->port, .fd = -1 };
	return oldest;
}

void spare_ask(struct broker *b, struct conn *c)
{
	struct spare *s = spare_for(b, c);
	uint64_t now = clock_ms();
	bool often = s != NULL && now - s->used_ms < OFTEN_MS;

	s = s != NULL ? s : spare_new(b, c);
	s->used_ms = now;
	if (!often || s->fd >= 0 || (s->id != 0 && now - s->asked_ms < OFTEN_MS)) {
		return; /* not worth it, there, or on its way */
	}
	struct dial_request q = {
		.id = ++b->next_id, .rule = (uint32_t)c->rule, .port = c->port, .spare = true
	};
	snprintf(q.name, sizeof(q.name), "%s", c->slot->name);
	s->id = msg_send(b->c->dial, &q, sizeof(q), NULL) == 0 ? q.id : 0;
	s->asked_ms = now;
}

bool spare_arrived(struct broker *b, const struct dial_reply *r, int fd)
{
	for (size_t i = 0; i < N_SPARES; i++) {
		struct spare *s = &b->spares[i];
		if (s->id == 0 || s->id != r->id) {
			continue;
		}
		s->id = fd >= 0 ? 0 : s->id; /* a refusal holds for a while */
		s->fd = fd;
		s->address = r->address;
		s->until_us = clock_us() + r->micros;
		return true;
	}
	return false;
}

int spare_fire(struct broker *b, struct conn *c)
{
	struct spare *s = spare_for(b, c);

	if (s == NULL || s->fd < 0) {
		return -1;
	}
	auto_fd fd = steal_fd(&s->fd);
	if (clock_us() >= s->until_us ||
	    (send(fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL) != 0 && errno != EINPROGRESS) ||
	    send(fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL) != 0) {
		return -1;
	}
	c->dialled = s->address;
	return steal_fd(&fd);
}

void spare_tick(struct broker *b)
{
	uint64_t now = clock_us();

	for (size_t i = 0; i < N_SPARES; i++) {
		if (now >= b->spares[i].until_us) {
			spare_drop(&b->spares[i]);
		}
	}
}
