/* fanout.h - sends one request to many keepers at once. act.c decides what to do with the
 * results. */
#ifndef SESSION_FANOUT_H
#define SESSION_FANOUT_H

#include "session/live.h"
#include "session/session.h"

struct target {
	struct session_run run;
	int sock;     /* -1: there is no keeper, or it accepts no further client */
	int init;     /* pidfd; -1: unknown, or dead */
	bool unsure;  /* only the keeper knows whether the request concerns this run */
	bool other;   /* the keeper answered that its run is not in the session */
	bool silent;  /* the keeper did not answer */
	bool gone;    /* no process listens on the socket */
	bool foreign; /* belongs to another owner; its keeper gets the request from the store */
	bool heard;
	bool done;
	bool forced;
	bool lost; /* the run is dead, but its end is not recorded */
};

struct targets {
	struct target *v;
	size_t n;
	bool full; /* there was no room for some targets */
};

/* Copies `one`. If one->unsure is true, only run.socket must be set. Returns false and sets
 * `full` if there was no room. */
bool targets_add(struct targets *t, const struct target *one);
void targets_done(struct targets *t);

/* Returns when every run is dead or stopped, or when fanout() has given it up. `dir` is the
 * directory of live.h (borrowed); -1: no keeper is listening. */
void fanout(struct targets *t, int dir, const struct live_request *q);

#endif
