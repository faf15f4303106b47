/* govern_priv.h - declarations that govern.c and govern_tell.c share. */
#ifndef SANDBOX_GOVERN_PRIV_H
#define SANDBOX_GOVERN_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/trace.h"
#include "sandbox/govern.h"
#include "sandbox/governed.h"
#include "sandbox/meter.h"

struct used {
	uint64_t cpu_ms, wall_ms, bytes_out, bytes_in;
};

struct governed {
	int fd; /* borrowed */
	bool gone;
	struct trace_tally tally; /* violations that were not reported to the governor yet */
	struct meter meter;
	struct used told;
	/* when to measure the use of CPU time and bytes again; 0: the sandbox does not exist yet */
	uint64_t used_at;
	uint64_t start_us; /* time of the skill's start */
	bool owes_stands, owes_goes;

	bool killed;
	uint64_t kill_at;
	char reason[sizeof(((struct govern_msg *)0)->kill.reason)];

	/* names of connections that were not reported to the governor yet */
	char (*names)[sizeof(((struct govern_msg *)0)->connection.name)];
	size_t n_names, room;
};

/* Sends everything that was not reported to the governor yet, except the use (see
 * govern_tell_used()). Returns false if a message cannot be sent now. */
bool govern_tell(struct governed *g);
bool govern_owes(const struct governed *g);
bool govern_tell_used(struct run *r);
/* Measures the use (CPU time, bytes, wall time), sends it if it changed, and sets the time of the
 * next measurement. */
void govern_look_and_tell(struct run *r);
/* The function that egress.opened calls for a new connection: stores its name. */
void govern_keep_name(void *arg, const char *name);
/* Returns false if the message cannot be sent now. If the governor is gone, the result is always
 * true. */
bool govern_say(const struct governed *g, const struct govern_msg *m);

#endif
