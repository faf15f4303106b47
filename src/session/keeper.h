/* keeper.h - a run inside a session. */
#ifndef SESSION_KEEPER_H
#define SESSION_KEEPER_H

#include "sandbox/sandbox.h"

/* Runs sandbox_run() in the session `id`, as ssb_run_in_session() describes. If `id` is NULL, the
 * run does not join a session. The request must not have a governor. `ret_prepared` may be NULL. */
int keeper_run(const struct run_request *q, const char *id, struct ssb_result *ret_result,
               struct prepared *ret_prepared, struct ssb_error *err);

#endif
