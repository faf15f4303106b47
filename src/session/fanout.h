/* fanout.h - one wish, told to many keepers at once; see act.c for what that
 * amounts to. */
#ifndef SESSION_FANOUT_H
#define SESSION_FANOUT_H

#include "session/live.h"
#include "session/session.h"

struct target {
	struct session_run run;
	int sock;     /* -1: no keeper, or none that takes another client */
	int init;     /* pidfd; -1: not known, or gone */
	bool unsure;  /* only its keeper knows whether it is concerned */
	bool other;   /* it is not */
	bool silent;  /* that keeper said nothing */
	bool gone;    /* nobody listens there */
	bool foreign; /* another owner's, whose keepers hear of it from the store */
	bool heard;
	bool done;
	bool forced;
	bool lost; /* done, and nobody has written that down */
};

struct targets {
	struct target *v;
	size_t n;
	bool full; /* there were more */
};

/* `unsure` has a socket's name only. False: no room, and `full` is set. */
bool targets_add(struct targets *t, const struct target *one);
void targets_done(struct targets *t);

/* Returns when all are dead, stand still, or were given up. `dir` is that of
 * live.h; -1: nobody listens. */
void fanout(struct targets *t, int dir, const struct live_request *q);

#endif
