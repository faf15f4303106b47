/* relay.h - copies the standard streams byte for byte.
 *
 * A pump moves bytes from one fd to another through a small buffer. It never waits: the supervisor
 * polls, and the pump then does one read or write. A stream with a limit is cut exactly at the
 * limit; later bytes are read and dropped, so that they never block the skill. */
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
	int from;       /* -1: the stream has ended */
	int to;         /* -1: drop the bytes */
	bool owns_from; /* `from` is closed at the end, so that the skill's writes fail */
	bool owns_to;   /* `to` is closed at the end, so that the skill reads the end of file */
	uint64_t limit; /* UINT64_MAX: no limit */
	uint64_t done;  /* bytes delivered */
	uint64_t total; /* bytes read, with those that were cut off */
	bool cut;
	bool open;           /* the last byte that was read is not a newline */
	int error;           /* errno of the first failed write while a reader exists; 0: none */
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

/* Returns the fd and events to poll for; fd is -1 if there is nothing to do. */
struct pollfd pump_wants(const struct pump *p);

/* Reads or writes once, if poll() reported in `revents` that this is possible. */
void pump_turn(struct pump *p, short revents);

/* True if all bytes were delivered, or if those that are left cannot be delivered. */
bool pump_finished(const struct pump *p);

/* Writes a last line that has no newline into the trace. */
void pump_flush_line(struct pump *p);

#endif
