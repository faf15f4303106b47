/* relay.h - the standard streams, carried byte for byte.
 *
 * A pump moves bytes from one fd to another through a small buffer. It never
 * waits: the supervisor polls and lets it do what can be done. A stream that
 * has a limit is cut exactly there; what comes later is read and dropped, so
 * that the skill is never blocked by it. */
#ifndef SANDBOX_RELAY_H
#define SANDBOX_RELAY_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/trace.h"

#define PUMP_BYTES 16384
#define LINE_BYTES 1024

struct pump {
	int from;       /* -1: at its end */
	int to;         /* -1: drop what comes */
	bool owns_from; /* closed at the end: the skill learns that nobody reads */
	bool owns_to;   /* closed at the end: the skill learns that no more comes */
	uint64_t limit; /* UINT64_MAX: none */
	uint64_t done;  /* bytes delivered */
	bool cut;
	bool open;           /* they do not end with a newline */
	int error;           /* of the first write that failed, though somebody reads; 0: none */
	struct trace *trace; /* NULL: not recorded */
	enum event_kind kind;
	size_t head;
	size_t len;
	size_t line_len;
	char buf[PUMP_BYTES];
	char line[LINE_BYTES];
};

void pump_init(struct pump *p, int from, int to, uint64_t limit);

void pump_done(struct pump *p); /* closes what it owns */

/* What to wait for; events 0 and fd -1 when there is nothing to do. */
struct pollfd pump_wants(const struct pump *p);

/* Does what poll said is possible. */
void pump_turn(struct pump *p, short revents);

/* Everything was delivered, or can no longer be. */
bool pump_finished(const struct pump *p);

/* The rest of a last line without newline, into the trace. */
void pump_flush_line(struct pump *p);

#endif
