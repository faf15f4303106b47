/* consent_ask.h - the question that `run` puts to the owner, about a skill that was not
 * approved, or that is not any more what was approved.
 *
 * Asked on a terminal alone (standard input and standard error, in its foreground). No is
 * what anything but one of the answers means: an empty line, the end of the input, Ctrl-C.
 * What was typed before the question stood there answers nothing. */
#ifndef CLI_CONSENT_ASK_H
#define CLI_CONSENT_ASK_H

#include "cli/cli.h"
#include "consent/consent.h"

enum answer {
	ANSWER_NOBODY, /* there is no terminal: the policy file decides */
	ANSWER_NO,     /* nothing is to run */
	ANSWER_ONCE,   /* *ret_word has what was granted and taken out, and *ret_shown the files
	                * that were shown: plan again, by these */
	ANSWER_ALWAYS, /* it is stored: look and plan anew */
};

/* Does the plan ask for anything that the owner did not say on this command line? If
 * not, nobody has to be asked. */
bool consent_needed(const struct request *r, const struct ssb_plan *plan);

/* Shows what the skill in `dir` (real, absolute) could do and, where it was approved, what
 * changed since. `plan` was made of r->options and what `f` declines. *ret_shown (the caller's,
 * zero) are the files that the answer is about; it stays zero where they cannot be pinned. */
enum answer consent_ask(const struct request *r, const struct owner *o, const char *dir,
                        const struct consent_found *f, const struct ssb_plan *plan,
                        struct consent_word *ret_word, struct skill_files *ret_shown);

#endif
