/* govern_priv.h - what govern.c and govern_tell.c share. */
#ifndef SANDBOX_GOVERN_PRIV_H
#define SANDBOX_GOVERN_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/trace.h"
#include "sandbox/govern.h"
#include "sandbox/governed.h"
#include "sandbox/meter.h"

enum motion { GOES, STOPS, STANDS };

struct used {
	uint64_t cpu_ms, wall_ms, bytes_out, bytes_in;
};

struct governed {
	int fd; /* borrowed */
	bool gone;
	struct trace_tally tally; /* since the last message */
	struct meter meter;
	struct used told;
	uint64_t used_at;  /* when to look again; 0: nothing runs yet */
	uint64_t start_us; /* of the skill */
	uint64_t paused_us;
	bool owes_stands, owes_goes;

	enum motion motion;
	bool wanted; /* a pause was requested before there was anything to pause */
	bool by_group;
	uint32_t number; /* of the pause */
	uint64_t since_us;
	uint64_t look_at;
	uint64_t time_left; /* rest of the run's own time limit */

	bool killed;
	uint64_t kill_at;
	char reason[sizeof(((struct govern_msg *)0)->kill.reason)];

	char (*names)[sizeof(((struct govern_msg *)0)->connection.name)]; /* connections that the
	                                                                     governor was not told
	                                                                     of yet */
	size_t n_names, room;
};

/* Sends all that the governor was not told of, except what was used. Returns false if some
 * of it has to wait. */
bool govern_tell(struct governed *g);
bool govern_owes(const struct governed *g);
bool govern_tell_used(struct run *r);
/* Looks at what was used, sends it, and sets when to look again. */
void govern_look_and_tell(struct run *r);
/* The handler of egress.opened: stores the name of a new connection. */
void govern_keep_name(void *arg, const char *name);
/* Returns false if the message cannot be sent now. For a governor that is gone, every
 * message counts as sent. */
bool govern_say(const struct governed *g, const struct govern_msg *m);

#endif
