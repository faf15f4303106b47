/* decision.h - decides whether a skill may run now, for the command line and for the server.
 *
 *   LOOK ──► PLAN ──► ASK ──► PLAN ──► ... ──► RUN or STOP
 *     ▲                └───► KEEP ──┐
 *     └─────────────────────────────┘
 *
 * The decision knows which step is needed next and makes the last check before RUN: what is
 * about to run is what was approved, or what the owner was shown and agreed to. It never waits,
 * asks or stores anything itself. Four callbacks of the caller do that, and each one reports its
 * result with the function that is named beside it below.
 *
 * A callback that cannot report at once (it started a process, or the client has to answer)
 * returns CONSENT_WAITS. consent_decide() then returns, and the caller calls it again when the
 * result has been reported. */
#ifndef CONSENT_DECISION_H
#define CONSENT_DECISION_H

#include "consent/consent.h"

enum consent_step {
	CONSENT_LOOK, /* compare the skill's files with its approval: consent_looked() */
	CONSENT_PLAN, /* plan with consent_word_plan(&d->word): consent_planned() */
	CONSENT_ASK,  /* ask the owner about d->plan: consent_answered() */
	CONSENT_KEEP, /* store the approval: consent_kept() */
	CONSENT_RUN,  /* d->plan may run */
	CONSENT_STOP, /* it must not run */
};

enum consent_answer {
	CONSENT_UNASKED,
	CONSENT_NOBODY, /* the owner cannot be asked, so the policy file decides */
	CONSENT_NO,
	CONSENT_ONCE,   /* yes to this run, with d->word, d->as_it_is and d->shown */
	CONSENT_ALWAYS, /* yes to every run; must be stored first */
};

/* All zero: a decision that has not begun. */
struct consent_decision {
	const struct owner *owner; /* borrowed */
	const char *dir;           /* the skill's directory: real, absolute, borrowed */
	bool dry;                  /* nothing will run: d->plan is only shown, and not checked */

	enum consent_step next;
	struct consent_found found;
	bool all;  /* LOOK must look at all of the skill's files: the owner is going to be asked */
	bool read; /* LOOK did so */
	bool copied; /* the copy to run from is known to exist */
	bool kept;   /* KEEP stored an approval */

	const struct ssb_plan *plan; /* borrowed from the caller; NULL until it is planned */
	struct consent_word word;    /* the input of planning; ASK adds to `given` and `declined` */

	enum consent_answer answer;
	bool as_it_is;            /* the owner agreed to the files as they are, approved or not */
	struct skill_files shown; /* ONCE: the files that were shown, or only their digest */
	bool pinned;              /* `shown` is filled; if not, only the manifest can be compared */
	char by[128];             /* ONCE: who agreed, for the record */
	uint8_t manifest[SHA256_BYTES]; /* digest of the manifest of the plan that was shown */
};
void consent_decision_done(struct consent_decision *d);

#define CONSENT_WAITS 1

/* Each callback does one step. It returns 0 after it has reported its result, CONSENT_WAITS, or -1
 * with *err. */
typedef int consent_way(void *arg, struct ssb_error *err);
struct consent_ways {
	consent_way *look;
	consent_way *plan;
	consent_way *ask;
	consent_way *keep;
};

/* Does the necessary steps. Returns 0 if d->plan may run (or be shown, if dry), or CONSENT_WAITS.
 * Returns -1 if a step failed, or if the skill must not run; d->next is then CONSENT_STOP. */
int consent_decide(struct consent_decision *d, const struct consent_ways *ways, void *arg,
                   struct ssb_error *err);

/* Reports the result of LOOK, and takes *found. `read` may be false unless d->all is set. An answer
 * about other files is forgotten. */
void consent_looked(struct consent_decision *d, struct consent_found *found, bool read,
                    bool copied);
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
