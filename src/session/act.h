/* act.h - what follows from a decision, for those that live: runs are ended,
 * stopped or let go on, the owner is told.
 *
 * Every run of a session has a keeper (keeper.c), which listens on a socket in
 * <state_dir>/live. All are asked at once. One that does not answer in time is
 * ended by its init's pidfd, if that is still the same process: start time and
 * boot id say so. */
#ifndef SESSION_ACT_H
#define SESSION_ACT_H

#include "session/session.h"

struct act_report {
	size_t runs;      /* that lived on this machine */
	size_t reached;   /* by their keeper */
	size_t forced;    /* ended by pidfd */
	size_t elsewhere; /* on other machines: those hear of it from the store */
	size_t left;      /* neither: still alive when we gave up */
	size_t silent;    /* keepers that did not say whose run is theirs; only where the store
	                   * could not say it either */
	uint64_t took_us; /* until the last process was dead, or stood still */
};

/* Kills, pauses or resumes the runs of d->acted (d->decided where that has none) and
 * their descendants, as the decision says (nothing where it changed nothing; an
 * alert is nothing to a run), and starts the herald (notify.h). `except` is the run
 * of the caller, which looks after itself; NULL: none. Returns when all are dead, or
 * stopped; waits for no webhook.
 *
 * `ss` NULL: the store is lost. Then, and where the store cannot name all runs,
 * every keeper of this machine is asked whether its run is one of them. Where it
 * fails, all that could be reached was: `*ret` says how many in that case, too. */
int session_act(struct session_store *ss, const struct owner *o, const struct decision *d,
                const struct session_run *except, struct act_report *ret, struct ssb_error *err);

/* Runs of this machine whose keeper is gone (it was killed, or the machine went
 * down): what still lives of one is ended, for nobody meters it, and its end is
 * written down. Those that have a keeper are left alone. */
int session_close_lost(struct session_store *ss, const struct owner *o, const char *id,
                       const struct session_run *except, size_t *ret_closed, struct ssb_error *err);

#endif
