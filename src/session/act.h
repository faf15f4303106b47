/* act.h - decisions are enforced: runs are ended, paused or resumed, the owner is told.
 * The calls of session.h do this themselves.
 *
 * Every run of a session has a keeper (keeper.c), which listens on a socket in
 * <state_dir>/live. All are asked at once. One that does not answer in time is
 * ended by its init's pidfd, if that is still the same process: start time and
 * boot id say so. */
#ifndef SESSION_ACT_H
#define SESSION_ACT_H

#include "session/session.h"

/* From now on decisions of this store wait, for a caller that must answer somebody else
 * before it may wait for runs to end. At most one waits: the next decision and
 * session_store_close() enforce it. */
void session_defer(struct session_store *ss);
/* Takes the decision that waits, if there is one; the caller must pass it to session_act(). */
bool session_deferred(struct session_store *ss, struct decision *ret);

/* Enforces a deferred decision, and fills d->runs, ->undone and ->unsent. Kills, pauses or
 * resumes the runs of d->acted (d->decided if that is empty) and their descendants. Does
 * nothing to runs if no state changed, or only to alert. Starts the herald (herald.h) if a
 * message waits. `except` is the caller's own run, which the caller ends or pauses itself;
 * NULL: none. Returns when all runs are dead or stopped; does not wait for webhooks.
 *
 * `ss` NULL: the store is lost. Then, and if the store cannot name all runs, every keeper
 * of this machine is asked whether its run is one of them. */
void session_act(struct session_store *ss, const struct owner *o, struct decision *d,
                 const struct session_run *except);

/* Kills the session `id` on this machine alone, without the store: only its keepers are
 * asked, and nothing is written down. */
void session_kill_unstored(const struct owner *o, const char *id, uint64_t grace_ms,
                           const char *reason, struct decision *ret);
/* Ends runs of a session that is over already: an earlier kill may have been cut short.
 * Does nothing to a session that is not over. */
int session_kill_left(struct session_store *ss, const char *id, uint64_t grace_ms,
                      struct decision *ret, struct ssb_error *err);

/* Ends what still runs of runs whose keeper is gone (it was killed, or the machine went
 * down), because no process meters it, and writes down the end. Runs of this machine
 * only; those that have a keeper are left alone. */
int session_close_lost(struct session_store *ss, const struct owner *o, const char *id,
                       const struct session_run *except, size_t *ret_closed, struct ssb_error *err);

#endif
