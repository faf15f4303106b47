/* listen.h - makes the sockets in the sandbox's network on which the broker listens.
 *
 * init makes them in the sandbox's network namespace before it gives up its rights, and passes them
 * to the supervisor. */
#ifndef EGRESS_LISTEN_H
#define EGRESS_LISTEN_H

#include <stddef.h>

#include "egress/table.h"

#define MAX_LISTENERS 512

enum listener_kind { LISTEN_DNS_UDP, LISTEN_DNS_TCP, LISTEN_TCP, LISTEN_UDP };

struct listeners {
	size_t n;
	int fd[MAX_LISTENERS];
	enum listener_kind kind[MAX_LISTENERS];
};

/* Makes routes and sockets for every slot of the table. On failure `l` contains the sockets made so
 * far, and the caller must call listeners_close(). */
int listeners_make(const struct egress_table *t, struct listeners *l, struct ssb_error *err);
void listeners_close(struct listeners *l);

#endif
