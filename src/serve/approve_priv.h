/* approve_priv.h - shared by approve.c (memory and answers), approve_steps.c (the steps of a
 * decision) and approve_say.c (the words). */
#ifndef SERVE_APPROVE_PRIV_H
#define SERVE_APPROVE_PRIV_H

#include "serve/approve.h"

enum approve_choice { CHOICE_DENY, CHOICE_ONCE, CHOICE_SESSION, CHOICE_ALWAYS, CHOICE_COUNT };

struct approve_choice_row {
	const char *name;
	const char *title;
};
extern const struct approve_choice_row APPROVE_CHOICES[CHOICE_COUNT];

/* The key of the question of one round: an answer to another question is not an answer to it. */
#define APPROVE_KEY 24
void approve_key(unsigned round, char ret[APPROVE_KEY]);

bool approve_items_has(const struct approve_items *items, enum ssb_option option,
                       const char *value);
void approve_items_done(struct approve_items *items);
/* Could an approval lift this refusal? */
bool approve_can_lift(const struct refusal *r);

/* The answer to the step ASK. CONSENT_UNASKED: the client was asked. CONSENT_NO: k->why is set. */
enum consent_answer approve_ask(struct approvals *a, struct approve_case *k);
/* Gives what was granted for the client's session and is missing in the plan. True: something. */
bool approve_recall(const struct approvals *a, struct approve_case *k);
/* The state that the client sends back with its answer: for which manifest and files, how many
 * rounds, what was given so far, and what is asked for. */
void approve_state(struct buf *out, const struct approve_case *k,
                   const struct approve_items *asked);

/* Asks the client. -1: the question is too long to be shown as a whole, and nothing was asked. */
int approve_put(struct approve_case *k, const struct approve_items *asked);
/* Answers the call. `plan` lists what is missing. */
void approve_say_refused(struct approve_case *k, const struct ssb_plan *plan, const char *why);
/* What changed since the approval; `plan` may be NULL. *f must be of consent_look(). */
void approve_changes(struct buf *out, const struct consent_found *f, const struct ssb_plan *plan);

#endif
