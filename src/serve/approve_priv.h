/* approve_priv.h - between approve.c, which decides, and approve_say.c. */
#ifndef SERVE_APPROVE_PRIV_H
#define SERVE_APPROVE_PRIV_H

#include "serve/approve.h"
#include "consent/consent.h"

enum choice { CHOICE_DENY, CHOICE_ONCE, CHOICE_SESSION, CHOICE_ALWAYS, CHOICE_COUNT };

struct choice_row {
	const char *name;
	const char *title;
};
extern const struct choice_row CHOICES[CHOICE_COUNT];

/* Of the question of a round: an answer to another one is none to this. */
#define APPROVE_KEY 24
void approve_key(unsigned round, char ret[APPROVE_KEY]);

/* What a question is about. */
struct approve_case {
	struct mcp_call *call;
	const struct skill *skill;
	const struct ssb_plan *plan;
	const struct looked *looked;
	bool word; /* it does not run as it is unless the owner says so */
};

bool approved_for_has(const struct approved_for *f, enum ssb_option option, const char *value);
/* A word of the owner's would lift the refusal. */
bool approve_askable(const struct refusal *r);
/* The state of a question: for which manifest and which files; what was given so far, then
 * what is asked for, each by option and value. */
void approve_state(struct buf *out, const struct approve_case *k, const struct approved_for *given,
                   const struct approved_for *asked);

/* What changed since it was approved; `plan` may be NULL. Needs all of *f: for errands. */
void approve_changes(struct buf *out, const struct consent_found *f, const struct ssb_plan *plan);

/* Asks. */
enum approval approve_put(const struct serve *s, const struct approve_case *k,
                          struct approved_for *given, const struct approved_for *asked);
/* Answers the call. `can_approve`: a command of the owner's would help. */
enum approval approve_refuse(const struct serve *s, const struct approve_case *k, bool can_approve,
                             const char *why);

#endif
