/* listen.h - the ends of the sandbox's network that the broker holds.
 *
 * Made in the sandbox's network namespace by init, before it gives up its
 * rights, and handed out. */
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

/* Routes and sockets for every slot of the table. On failure what was made is
 * in `l` all the same: listeners_close. */
int listeners_make(const struct egress_table *t, struct listeners *l, struct ssb_error *err);
void listeners_close(struct listeners *l);

#endif
