/* broker_spare.c - prepares sockets for the next connections to a server.
 *
 * A skill that connects to the same server again and again need not wait for the dialler each time.
 * A spare is a socket that the dialler has aimed at an allowed address but not connected, so
 * nothing has left the machine yet. When a connection has passed its checks, the broker fires the
 * spare: it sends an empty message, which makes the kernel connect the socket. The spare can reach
 * only that address. It is valid as long as the resolved address of the name is.
 *
 * If two spares in a row are not connected to their server at once, this server gets no spares for
 * the next minute: the dialler makes all connections to it. Several spares are requested at a time:
 * waking the dialler for each would cost as much as a spare saves, and the next connection may come
 * before the dialler has answered. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/array.h"
#include "base/own.h"
#include "egress/broker_priv.h"

#define OFTEN_MS 2000  /* if two connections come within this time, a third is likely */
#define FEW      2     /* if no more than this many are left, request more */
#define FAR      2     /* after so many failures in a row, the server counts as far away */
#define FAR_MS   60000 /* how long a far server gets no spares: each would cost a second SYN */

static struct spare *spare_for(struct broker *b, const struct conn *c)
{
	return ARRAY_FIND(s, b->spares, N_SPARES,
	                  s->slot == c->slot && s->rule == c->rule && s->port == c->port);
}

static void spare_drop(struct spare *s)
{
	while (s->n > 0) {
		own_close(&s->fd[--s->n]);
	}
}

/* Replaces the server that was not used for the longest time. */
static struct spare *spare_new(struct broker *b, const struct conn *c)
{
	struct spare *oldest = &b->spares[0];

	for (size_t i = 1; i < N_SPARES; i++) {
		if (b->spares[i].used_ms < oldest->used_ms) {
			oldest = &b->spares[i];
		}
	}
	spare_drop(oldest);
	*oldest = (struct spare){ .slot = c->slot, .rule = c->rule, .port = c->port };
	return oldest;
}

void spare_ask(struct broker *b, struct conn *c)
{
	struct spare *s = spare_for(b, c);
	uint64_t now = clock_ms();
	bool often = s != NULL && now - s->used_ms < OFTEN_MS;

	s = s != NULL ? s : spare_new(b, c);
	s->used_ms = now;
	if (!often || s->n > FEW || now < s->rest_ms) {
		return; /* a spare is not worth it, exists already, or was already requested */
	}
	struct dial_request q = { .id = { ++b->next_id, DIAL_SPARES },
		                  .rule = (uint32_t)c->rule,
		                  .port = c->port,
		                  .spares = (uint8_t)(MAX_SPARES - s->n) };
	snprintf(q.name, sizeof(q.name), "%s", c->slot->name);
	s->id = msg_fds_send(b->c->dial, &q, sizeof(q), NULL) == 0 ? q.id.serial : 0;
	s->rest_ms = now + OFTEN_MS; /* if the dialler refuses, none are requested for a while */
}

void spare_arrived(struct broker *b, const struct dial_reply *r, struct msg_fds *fds)
{
	for (size_t i = 0; i < N_SPARES; i++) {
		struct spare *s = &b->spares[i];
		if (s->id == 0 || s->id != r->id.serial) {
			continue;
		}
		uint64_t until_us = clock_us() + r->valid_us;
		if (memcmp(&s->address, &r->address, sizeof(s->address)) != 0) {
			spare_drop(s);
		}
		s->until_us = s->n > 0 && s->until_us < until_us ? s->until_us : until_us;
		s->id = 0;
		s->rest_ms = fds->n > 0 && s->in_vain < FAR ? 0 : s->rest_ms;
		s->address = r->address;
		for (size_t k = 0; k < fds->n && s->n < MAX_SPARES; k++) {
			s->fd[s->n++] = steal_fd(&fds->v[k]);
		}
		break;
	}
	msg_fds_close(fds); /* closes the fds that do not fit, and those of a replaced server */
}

int spare_fire(struct broker *b, struct conn *c)
{
	struct spare *s = spare_for(b, c);

	if (s == NULL || s->n == 0) {
		return -1;
	}
	auto_fd fd = s->fd[--s->n];
	if (clock_us() >= s->until_us) {
		return -1;
	}
	if ((send(fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL) != 0 && errno != EINPROGRESS) ||
	    send(fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL) != 0) {
		if (++s->in_vain >= FAR) {
			spare_drop(s);
			s->rest_ms = clock_ms() + FAR_MS;
		}
		return -1;
	}
	s->in_vain = 0;
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
