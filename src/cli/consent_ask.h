/* consent_ask.h - the question that `run` asks the owner about a skill that is not approved, or
 * that changed since it was approved.
 *
 * The question is asked only if standard input and standard error are a terminal, and this
 * process is in its foreground. Any answer that the question does not offer means no: an empty
 * line, the end of the input, Ctrl-C. Keys that were pressed before the question was shown are
 * discarded. */
#ifndef CLI_CONSENT_ASK_H
#define CLI_CONSENT_ASK_H

#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/consent_show.h"
#include "consent/decision.h"

#define CONSENT_BY_TERMINAL "on terminal"

/* Returns true if the plan has anything that the owner did not give on this command line.
 * Otherwise there is nothing to ask about. */
bool consent_needed(const struct request *r, const struct ssb_plan *plan);

/* Shows what the skill could do by d->plan (made with r->options and with what d->found
 * declines) and, if it was approved, what changed since. Returns the answer. The answer "once"
 * fills d->input, d->shown, d->by and d->as_it_is. *ret_view must be zeroed. Afterwards it
 * contains what was shown; if the answer is "always", the caller stores an approval of this. */
enum consent_answer consent_ask(const struct request *r, struct consent_decision *d,
                                struct consent_view *ret_view);

/* Shows what the skill could do, and asks whether to remember that (skillsandbox allow). The owner
 * can take items out. For dangerous items, the owner must type "yes". */
enum ask_answer consent_ask_remember(struct consent_view *v, const char *title);

#endif
