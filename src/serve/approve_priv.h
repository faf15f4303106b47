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

/* Each round's question has its own key, so that the answer to one question cannot be used as the
 * answer to another. */
#define APPROVE_KEY 24
void approve_key(unsigned round, char ret[APPROVE_KEY]);

bool approve_items_has(const struct approve_items *items, enum ssb_option option,
                       const char *value);
void approve_items_done(struct approve_items *items);
/* Returns true if an approval could lift this refusal. */
bool approve_can_lift(const struct refusal *r);

/* Does the step ASK and returns its answer. ANSWER_NONE: the client has just been asked.
 * ANSWER_NO: k->why is set. */
enum consent_answer approve_ask(struct approvals *a, struct approve_case *k);
/* Adds to the decision the items that the plan lacks and that were granted for the client's
 * session. Returns true if there was such an item. */
bool approve_recall(const struct approvals *a, struct approve_case *k);
/* Writes the state that the client sends back with its answer: the manifest and the files, the
 * number of rounds, the items that were given so far, and the items that are asked for. */
void approve_state(struct buf *out, const struct approve_case *k,
                   const struct approve_items *asked);

/* Asks the client. Returns -1 if the question is too long to be shown whole; then the client was
 * not asked. */
int approve_put(struct approve_case *k, const struct approve_items *asked);
/* Answers the call with a refusal. `plan` lists what is missing. */
void approve_say_refused(struct approve_case *k, const struct ssb_plan *plan, const char *why);
/* Writes what changed since the approval. `plan` may be NULL. *f must come from consent_look(). */
void approve_changes(struct buf *out, const struct consent_found *f, const struct ssb_plan *plan);

#endif
