#include "cli/consent_run.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "cli/consent_ask.h"
#include "cli/consent_show.h"
#include "cli/say.h"
#include "policy/decide.h"
#include "policy/owner.h"

struct asking {
	struct request *r;
	const struct owner *owner;
	char *dir; /* real */
	struct consent_found found;
	struct consent_word word; /* what planning is told of it */
	struct planned *p;
	bool runs;                /* if not, the plan is only shown */
	enum answer answer;       /* ANSWER_NOBODY: nobody was asked, or there */
	struct skill_files shown; /* ANSWER_ONCE: the files that it is about */
};

static void asking_done(struct asking *a)
{
	free(a->dir);
	consent_word_done(&a->word);
	consent_found_done(&a->found);
	skill_files_done(&a->shown);
}

/* ---- planning ------------------------------------------------------------------- */

static int forget_diags(const struct asking *a)
{
	struct ssb_diags *none = ssb_diags_new();

	if (none == NULL) {
		return -1;
	}
	ssb_diags_free(a->p->diags);
	a->p->diags = none;
	return 0;
}

/* By what the owner said of it so far. */
static int plan(struct asking *a, struct ssb_error *err)
{
	struct plan_consent consent = consent_word_plan(&a->word);
	char **v = a->r->operands.v;
	char **args = v + 1;

	if (!a->runs && a->dir != NULL) { /* for programs that run it by other means: python/ */
		consent.state = consent_name(a->found.state);
	}
	if (args[0] != NULL && strcmp(args[0], "--") == 0) {
		args++;
	}
	const struct plan_request q = { .owner = a->owner,
		                        .options = a->r->options,
		                        .skill = v[0],
		                        .args = args,
		                        .consent = consent };
	ssb_plan_free(steal_ptr(&a->p->plan));
	if (forget_diags(a) != 0) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "plan", "out of memory");
	}
	if (plan_decide(&q, &a->p->plan, a->p->diags, err) != 0) {
		return -1;
	}
	/* The word may be a symlink that leads elsewhere by now. */
	return a->dir == NULL || strcmp(a->p->plan->skill_dir, a->dir) == 0
	               ? 0
	               : ssb_fail(err, SSB_E_POLICY, 0, "skill",
	                          "its directory was moved while it was looked at");
}

static int plan_by_found(struct asking *a, struct ssb_error *err)
{
	consent_word_done(&a->word);
	return consent_by_approval(a->owner, &a->found, false, &a->word, err) != 0 ? -1
	                                                                           : plan(a, err);
}

static int plan_by_approval(struct asking *a, struct ssb_error *err)
{
	consent_found_done(&a->found);
	if (consent_look(a->owner, a->dir, &a->found, err) != 0 || plan_by_found(a, err) != 0) {
		return -1;
	}
	if (a->found.state != CONSENT_HOLDS || consent_fits(&a->found.lock, a->p->plan)) {
		return 0;
	}
	a->found.state = CONSENT_CHANGED; /* the owner's manifest of it is another one now */
	return plan_by_found(a, err);
}

/* ---- saying --------------------------------------------------------------------- */

/* What to type is said with what changed. */
static void say_changes(const struct asking *a)
{
	auto_buf out;

	consent_show_changes(&a->found, a->p->plan);
	buf_init(&out, SAY_MAX);
	buf_adds(&out, "  to see more:    skillsandbox diff ");
	say_word(&out, a->dir);
	buf_adds(&out, "\n  to approve it:  skillsandbox approve ");
	say_word(&out, a->dir);
	buf_addc(&out, '\n');
	(void)say_out(STDERR_FILENO, &out);
}

static void say_withheld(const struct ssb_plan *plan)
{
	for (size_t i = 0; i < plan->n_withheld; i++) {
		const struct refusal *w = &plan->withheld[i];
		say_notef("withheld: %.300s: %s%s%s", w->what, w->why,
		          w->remedy[0] != '\0' ? "; " : "", w->remedy);
	}
}

/* Approved without it, by a client of the server say: it is not there, and that is said. */
static void say_left_out(const struct asking *a)
{
	const struct ssb_plan *plan = a->p->plan;

	for (size_t i = 0; i < plan->n_withheld; i++) {
		const struct refusal *w = &plan->withheld[i];
		if (w->value != NULL && owner_getenv(a->owner, w->value) != NULL) {
			say_notef("withheld: %s: it is no part of the approval; %s", w->what,
			          w->remedy);
		}
	}
}

static int stop(const struct asking *a, struct ssb_error *err)
{
	switch (a->found.state) {
	case CONSENT_CHANGED:
		say_changes(a);
		return ssb_fail(err, SSB_E_POLICY, 0, "approval",
		                "the skill changed since it was approved; nothing was run");
	case CONSENT_OVER:
		return ssb_fail(err, SSB_E_POLICY, 0, "approval",
		                "the approval of the skill %s; nothing was run. Approve it again: "
		                "skillsandbox approve DIR",
		                a->found.lock.uses == 0 ? "was for so many runs, which are made"
		                                        : "has expired");
	default:
		return ssb_fail(err, SSB_E_POLICY, 0, "approval",
		                "nobody approved the skill, and by the policy file no such skill "
		                "runs; approve it: skillsandbox approve DIR");
	}
}

/* ---- deciding ------------------------------------------------------------------- */

/* Off a terminal: the policy file's word. */
static int decide_alone(const struct asking *a, struct ssb_error *err)
{
	const struct ssb_plan *plan = a->p->plan;

	if (a->found.state != CONSENT_NONE || plan->consent.refuse) {
		(void)forget_diags(a); /* what the plan lacks is not why it stops */
		return stop(a, err);
	}
	if (plan->n_refusals == 0) {
		say_withheld(plan);
	}
	return 0;
}

/* A new plan by the answer, of the manifest that the owner was shown, and of the files. */
static int plan_shown(struct asking *a, struct ssb_error *err)
{
	uint8_t shown[sizeof(a->p->plan->manifest_digest)];

	assert(a->p->plan != NULL); /* it was shown */
	memcpy(shown, a->p->plan->manifest_digest, sizeof(shown));
	if (plan(a, err) != 0) {
		return -1;
	}
	assert(a->p->plan != NULL); /* for readers that do not see into the library */
	/* What cannot be pinned is bound by its manifest alone. */
	if (memcmp(shown, a->p->plan->manifest_digest, sizeof(shown)) == 0 &&
	    (a->shown.v == NULL || consent_fits_files(a->p->plan, &a->shown))) {
		return 0;
	}
	return ssb_fail(err, SSB_E_POLICY, 0, "approval",
	                "the skill changed while you looked at it; nothing was run");
}

static int decide(struct asking *a, struct ssb_error *err)
{
	struct consent_word answered = { 0 };

	a->answer =
	        consent_ask(a->r, a->owner, a->dir, &a->found, a->p->plan, &answered, &a->shown);
	switch (a->answer) {
	case ANSWER_ONCE:
		consent_word_done(&a->word);
		a->word = answered;
		return plan_shown(a, err);
	case ANSWER_ALWAYS:
		return plan_by_approval(a, err);
	case ANSWER_NO:
		/* What it lacks has been shown. */
		(void)forget_diags(a);
		return ssb_fail(err, SSB_E_POLICY, 0, "approval",
		                "the skill was not approved; nothing was run");
	case ANSWER_NOBODY:
		break;
	}
	return decide_alone(a, err);
}

/* Has anybody to say anything about it before it runs? */
static bool is_open(const struct asking *a)
{
	const struct ssb_plan *plan = a->p->plan;

	switch (a->found.state) {
	case CONSENT_HOLDS:
		return false;
	case CONSENT_NONE:
		return plan->consent.refuse || consent_needed(a->r, plan);
	default:
		return true;
	}
}

/* The last word, whatever way led here: what is about to run is what was approved, or what
 * was shown and answered with "once", or nobody had to say anything about it. */
static int check(const struct asking *a, struct ssb_error *err)
{
	const struct ssb_plan *plan = a->p->plan;
	bool fine = a->answer == ANSWER_ONCE;

	if (a->found.state == CONSENT_HOLDS) {
		fine = plan->approved != NULL;
	} else if (a->found.state == CONSENT_NONE && a->answer == ANSWER_NOBODY) {
		fine = !plan->consent.refuse;
	}
	if (fine) {
		return 0;
	}
	(void)forget_diags(a);
	return stop(a, err);
}

int consent_plan(struct request *r, struct planned *inout, struct ssb_error *err)
{
	AUTO(asking_done) struct asking a = { .r = r, .p = inout };

	a.owner = request_owner(r, err);
	if (a.owner == NULL) {
		return -1;
	}
	a.dir = realpath(r->operands.v[0], NULL);
	if (a.dir == NULL) {
		return plan(&a, err); /* which says what is wrong with it */
	}
	a.runs = r->command->bit == ON_RUN && !request_has(r, FLAG_DRY_RUN);
	if (plan_by_approval(&a, err) != 0) {
		return -1;
	}
	if (!a.runs && (a.found.state == CONSENT_CHANGED || a.found.state == CONSENT_OVER)) {
		say_notef("the approval of this skill does not hold any more (%s)",
		          consent_name(a.found.state));
	}
	/* Where no script was named nothing will run, and that is said first. */
	if (!a.runs || inout->plan->no_entry != NULL) {
		return 0;
	}
	if (a.found.state == CONSENT_HOLDS) {
		say_left_out(&a);
	}
	return is_open(&a) && decide(&a, err) != 0 ? -1 : check(&a, err);
}
