/* act.h - enforces decisions: ends, pauses or resumes runs, and starts the process that sends
 * messages to the owner. The functions of session.h call this by themselves.
 *
 * Every run of a session has a keeper (keeper.c), which listens on a socket in
 * <state_dir>/live. All keepers are asked at once. A run whose keeper does not answer in
 * time is ended by the pidfd of its init, but only if that is still the same process, which
 * its start time and boot id prove. */
#ifndef SESSION_ACT_H
#define SESSION_ACT_H

#include "session/session.h"

/* Makes this store defer its decisions from now on, for a caller that must send an answer before it
 * may wait for runs to end. At most one decision is deferred: the next decision and
 * session_store_close() enforce the previous one. `ss` must not be NULL. */
void session_defer(struct session_store *ss);
/* Takes the deferred decision and returns true. The caller must pass it to session_act(). Returns
 * false if there is none, and leaves `*ret` untouched. */
bool session_deferred(struct session_store *ss, struct decision *ret);

/* Enforces a deferred decision, and fills d->runs, ->undone and ->unsent. Kills, pauses or
 * resumes the runs of d->acted (of d->decided if that list is empty) and of their
 * descendants. Leaves runs alone if no state changed, or if it changed only to alert.
 * Starts the herald (herald.h) if a message waits. `except` is the caller's own run, which
 * the caller must end or pause itself; NULL means none. Returns when all runs are dead or
 * stopped; does not wait for webhooks.
 *
 * `ss` is NULL if the store is lost. Then, and if the store cannot name all runs, every
 * keeper of this machine is asked whether its run belongs to the session. */
void session_act(struct session_store *ss, const struct owner *o, struct decision *d,
                 const struct session_run *except);

/* Kills the session `id` on this machine only, and without the store: asks the keepers of the
 * session, and records nothing. */
void session_kill_unstored(const struct owner *o, const char *id, uint64_t grace_ms,
                           const char *reason, struct decision *ret);
/* Ends the runs of a session that is over already, because an earlier kill may have been
 * interrupted. Does nothing to a session that is not over. */
int session_kill_left(struct session_store *ss, const char *id, uint64_t grace_ms,
                      struct decision *ret, struct ssb_error *err);

/* Ends runs whose keeper is gone because it was killed or the machine went down: the processes
 * that are left would not be metered. Records the end of these runs. Does not change runs of
 * other machines or runs that have a keeper. */
int session_close_lost(struct session_store *ss, const struct owner *o, const char *id,
                       const struct session_run *except, size_t *ret_closed, struct ssb_error *err);

#endif
