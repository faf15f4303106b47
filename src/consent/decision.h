/* decision.h - decides whether a skill may run now, for the command line and for the server.
 *
 *   LOOK ──► PLAN ──► ASK ──► PLAN ──► ... ──► RUN or STOP
 *     ▲                └───► KEEP ──┐
 *     └─────────────────────────────┘
 *
 * struct consent_decision knows which step is next. Before RUN it makes the last check: what is
 * about to run is what was approved, or what the owner was shown and agreed to. The code here
 * never waits, asks or stores anything. The caller does each step, and reports its result with
 * the function that is named beside the step below.
 *
 * A step whose result cannot be reported at once (a process was started, or the client has to
 * answer) returns CONSENT_WAITS. consent_decide() then returns, and the caller calls it again when
 * the result has been reported. */
#ifndef CONSENT_DECISION_H
#define CONSENT_DECISION_H

#include "consent/consent.h"

enum consent_step {
	CONSENT_LOOK, /* look at the skill's files and its approval: consent_looked() */
	CONSENT_PLAN, /* plan with consent_input_plan(&d->input): consent_planned() */
	CONSENT_ASK,  /* ask the owner about d->plan: consent_answered() */
	CONSENT_KEEP, /* store the approval: consent_kept() */
	CONSENT_RUN,  /* d->plan may run */
	CONSENT_STOP, /* the skill must not run */
};

enum consent_answer {
	ANSWER_NONE,       /* not asked, or not answered yet */
	ANSWER_IMPOSSIBLE, /* the owner cannot be asked, so the policy file decides */
	ANSWER_NO,
	ANSWER_ONCE,   /* yes to this run, with d->input, d->as_it_is and d->shown */
	ANSWER_ALWAYS, /* yes to every run, if KEEP can store the approval */
};

/* If all members are zero, the decision has not begun. */
struct consent_decision {
	const struct owner *owner; /* borrowed */
	const char *dir;           /* the skill's directory: real, absolute, borrowed */
	bool dry;                  /* nothing will run: d->plan is only shown, and not checked */

	enum consent_step next;
	struct consent_found found;
	bool look_at_all;   /* LOOK must look at all files, because the owner will be asked */
	bool looked_at_all; /* LOOK has looked at all files */
	bool copied;        /* it is known that the copy to run from exists */
	bool kept;          /* KEEP has stored an approval */

	const struct ssb_plan *plan; /* borrowed from the caller; NULL until PLAN is done */
	struct consent_input input;  /* ASK adds to its `given` and `declined` */

	enum consent_answer answer;
	bool as_it_is;            /* the owner agreed to the files as they are, approved or not */
	struct skill_files shown; /* ANSWER_ONCE: the files that were shown, or only a digest */
	bool pinned;              /* `shown` is filled; if not, only the manifest can be compared */
	char by[128];             /* for ANSWER_ONCE: who agreed, for the record */
	uint8_t manifest[SHA256_BYTES]; /* digest of the manifest of the plan that was shown */
};
void consent_decision_done(struct consent_decision *d);

#define CONSENT_WAITS 1

/* Does one step. Returns 0 if it has reported the result, CONSENT_WAITS if the result comes
 * later, or -1 with *err. */
typedef int consent_step_fn(void *arg, struct ssb_error *err);
struct consent_steps {
	consent_step_fn *look;
	consent_step_fn *plan;
	consent_step_fn *ask;
	consent_step_fn *keep;
};

/* Does the necessary steps. Returns 0 if d->plan may run (or be shown, if dry), or CONSENT_WAITS.
 * Returns -1 if a step failed, or if the skill must not run; d->next is then CONSENT_STOP. */
int consent_decide(struct consent_decision *d, const struct consent_steps *steps, void *arg,
                   struct ssb_error *err);

/* Reports the result of LOOK, and takes *found. `all` may be false unless d->look_at_all is
 * set. If the files changed since the owner answered, the answer is forgotten. */
void consent_looked(struct consent_decision *d, struct consent_found *found, bool all, bool copied);
/* Reports the result of PLAN. If `wanted` is true, the owner is asked about this plan even if
 * consent does not require it. */
void consent_planned(struct consent_decision *d, const struct ssb_plan *plan, bool wanted);
void consent_answered(struct consent_decision *d, enum consent_answer answer);
void consent_kept(struct consent_decision *d);

/* Returns true if the skill may run in its present state only with the owner's agreement: it
 * changed since it was approved, the approval is over, or the policy file refuses skills without an
 * approval. */
bool consent_is_required(const struct consent_decision *d);

#endif
