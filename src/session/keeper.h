/* keeper.h - a run inside a session.
 *
 * The keeper is a process beside the supervisor. It has the store; the
 * supervisor has none, and pays for none of its libraries. They talk by
 * sandbox/govern.h. The keeper
 *  - asks the store whether the run may begin, before anything is built,
 *  - holds the control socket by which a kill or a pause reaches the run,
 *  - adds up what the run uses, and tells the supervisor to end or pause it,
 *  - hears of kills on other machines (PostgreSQL),
 *  - writes down the end.
 * The end of either is the end of the run: no skill goes on unmetered. */
#ifndef SESSION_KEEPER_H
#define SESSION_KEEPER_H

#include "session/session.h"

/* ssb_run() in the session `id`. Where the session does not allow it: -1,
 * SSB_E_POLICY with its reason. A run that the session ended has
 * SSB_END_SESSION and exit status 125. */
int session_run(struct ssb_plan *plan, const char *id, const int stdio[3],
                struct ssb_result *ret_result, struct ssb_error *err);

#endif
