/* act.h - what a session decided reaches its runs, and the server does not wait: a policy
 * may leave them an hour to end. */
#ifndef SERVE_ACT_H
#define SERVE_ACT_H

#include "serve/serve.h"
#include "session/session.h"

/* From the loop, once: all runs are dead or stand still; or not all could be reached; or
 * they have so much time that nobody waits for it any longer. */
typedef void act_fn(void *arg, bool reached);

/* Does what session_act() does, in a process of its own, which also outlives the server.
 * No store is open when it is called. */
int act_start(struct serve *s, const struct decision *d, act_fn *done, void *arg,
              struct ssb_error *err);
void act_leave_all(struct serve *s); /* `done` is called for all */

#endif
