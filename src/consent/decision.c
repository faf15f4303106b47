/* decision.c - chooses the next step of a consent decision, and makes the last check. */
#include "consent/decision.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"

#define WHERE "approval"

void consent_decision_done(struct consent_decision *d)
{
	consent_input_done(&d->input);
	consent_found_done(&d->found);
	skill_files_done(&d->shown);
	*d = (struct consent_decision){ 0 };
}

bool consent_is_required(const struct consent_decision *d)
{
	assert(d->plan != NULL);
	switch (d->found.state) {
	case CONSENT_HOLDS:
		return false;
	case CONSENT_NONE:
		return d->plan->consent.refuse;
	default:
		return true;
	}
}

/* ---- the input of planning ------------------------------------------------------- */

/* Fills d->input for the next plan. Items that the owner gave or declined in this decision stay in
 * it. */
static int update_input(struct consent_decision *d, struct ssb_error *err)
{
	const bool holds = d->found.state == CONSENT_HOLDS;

	if (holds || d->answer != ANSWER_ONCE || !d->pinned) {
		return consent_by_approval(d->owner, &d->found, d->copied, &d->input, err);
	}
	if (consent_once(d->owner, d->dir, &d->shown, d->copied, d->by, &d->input, err) != 0) {
		return -1;
	}
	d->input.lock = &d->found.lock; /* items that the approval declines stay declined */
	return 0;
}

/* Forgets the answer, because it is valid only for the files that the owner was shown. */
static void forget_answer(struct consent_decision *d)
{
	consent_input_done(&d->input);
	skill_files_done(&d->shown);
	d->pinned = d->as_it_is = false;
	d->answer = ANSWER_NONE;
}

/* ---- results of the steps -------------------------------------------------------- */

void consent_looked(struct consent_decision *d, struct consent_found *found, bool all, bool copied)
{
	assert(d->next == CONSENT_LOOK && (all || !d->look_at_all));
	if (d->pinned && memcmp(d->shown.tree, found->now.tree, sizeof(d->shown.tree)) != 0) {
		forget_answer(d);
	}
	d->input.lock = NULL; /* `lock` may point into d->found, which is freed now */
	consent_found_done(&d->found);
	d->found = *found;
	*found = (struct consent_found){ 0 };
	d->looked_at_all = all;
	d->copied = copied;
	d->next = CONSENT_PLAN;
}

void consent_planned(struct consent_decision *d, const struct ssb_plan *plan, bool wanted)
{
	assert(d->next == CONSENT_PLAN && plan != NULL);
	d->plan = plan;
	if (d->found.state == CONSENT_HOLDS && !consent_fits(&d->found.lock, plan)) {
		/* The owner's own manifest of the skill is not among the skill's files. It changed
		 * since the approval, so the approval grants nothing. */
		d->found.state = CONSENT_CHANGED;
		return; /* plan again */
	}
	if (d->kept && d->found.state != CONSENT_HOLDS) {
		d->next = CONSENT_STOP; /* the skill changed again while the approval was stored */
	} else if (!wanted && (d->as_it_is || !consent_is_required(d))) {
		d->next = CONSENT_RUN;
	} else {
		d->look_at_all = true;
		d->next = d->looked_at_all ? CONSENT_ASK : CONSENT_LOOK;
	}
}

void consent_answered(struct consent_decision *d, enum consent_answer answer)
{
	assert(d->next == CONSENT_ASK && d->plan != NULL && answer != ANSWER_NONE);
	d->answer = answer;
	memcpy(d->manifest, d->plan->manifest_digest, sizeof(d->manifest));
	switch (answer) {
	case ANSWER_ONCE:
		d->next = CONSENT_PLAN;
		break;
	case ANSWER_ALWAYS:
		d->next = CONSENT_KEEP;
		break;
	case ANSWER_IMPOSSIBLE:
		d->next = d->dry || !consent_is_required(d) ? CONSENT_RUN : CONSENT_STOP;
		break;
	default:
		d->next = CONSENT_STOP;
	}
}

void consent_kept(struct consent_decision *d)
{
	assert(d->next == CONSENT_KEEP);
	d->kept = true;
	d->next = CONSENT_LOOK;
}

/* ---- the end --------------------------------------------------------------------- */

static int fail_stopped(const struct consent_decision *d, struct ssb_error *err)
{
	if (d->answer == ANSWER_NO) {
		return ssb_fail(err, SSB_E_POLICY, 0, WHERE,
		                "the skill was not approved; nothing was run");
	}
	switch (d->found.state) {
	case CONSENT_CHANGED:
		return ssb_fail(err, SSB_E_POLICY, 0, WHERE,
		                "the skill changed since it was approved; nothing was run");
	case CONSENT_OVER:
		return ssb_fail(err, SSB_E_POLICY, 0, WHERE,
		                "the approval of the skill %s; nothing was run. Approve it again: "
		                "skillsandbox approve DIR",
		                d->found.lock.uses == 0 ? "has no runs left" : "has expired");
	default:
		if (d->kept) {
			return ssb_fail(
			        err, SSB_E_POLICY, 0, WHERE,
			        "the skill is not approved: its approval was removed again; "
			        "nothing was run");
		}
		return ssb_fail(err, SSB_E_POLICY, 0, WHERE,
		                "the skill is not approved, and the policy file refuses skills "
		                "without an approval; approve it: skillsandbox approve DIR");
	}
}

/* Returns true if d->plan is the plan that the owner agreed to: its manifest is the one that was
 * shown, and is one of the files that were shown. */
static bool is_as_shown(const struct consent_decision *d)
{
	return memcmp(d->manifest, d->plan->manifest_digest, sizeof(d->manifest)) == 0 &&
	       (d->shown.v == NULL || consent_fits_files(d->plan, &d->shown));
}

static bool is_as_approved(const struct consent_decision *d)
{
	const struct plan_approval *a = d->plan->approved;
	char tree[DIGEST_TEXT];

	return a != NULL && strcmp(a->tree, digest_text(d->found.lock.files.tree, tree)) == 0 &&
	       consent_fits(&d->found.lock, d->plan);
}

/* The last check before the run. It is made after any sequence of steps. */
static int check_plan(struct consent_decision *d, struct ssb_error *err)
{
	assert(d->plan != NULL);
	if (d->dry) {
		return 0;
	}
	if (d->answer == ANSWER_ONCE && !is_as_shown(d)) {
		d->next = CONSENT_STOP;
		return ssb_fail(err, SSB_E_POLICY, 0, WHERE,
		                "the skill changed while you looked at it; nothing was run");
	}
	const bool holds = d->found.state == CONSENT_HOLDS;
	if (holds ? is_as_approved(d) : d->as_it_is || !consent_is_required(d)) {
		return 0;
	}
	d->next = CONSENT_STOP;
	return fail_stopped(d, err);
}

int consent_decide(struct consent_decision *d, const struct consent_steps *steps, void *arg,
                   struct ssb_error *err)
{
	int rc = 0;

	assert(d->owner != NULL && d->dir != NULL);
	while (rc == 0) {
		switch (d->next) {
		case CONSENT_LOOK:
			rc = steps->look(arg, err);
			break;
		case CONSENT_PLAN:
			d->plan = NULL; /* from here on the caller may free the plan */
			rc = update_input(d, err) != 0 ? -1 : steps->plan(arg, err);
			break;
		case CONSENT_ASK:
			rc = steps->ask(arg, err);
			break;
		case CONSENT_KEEP:
			rc = steps->keep(arg, err);
			break;
		case CONSENT_RUN:
			return check_plan(d, err);
		case CONSENT_STOP:
			return fail_stopped(d, err);
		}
	}
	return rc;
}
