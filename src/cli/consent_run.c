/* consent_run.c - the steps of a consent decision (consent/decision.h) on the command line. No step
 * waits for anything but the owner's answer. */
#include "cli/consent_run.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "cli/ask.h"
#include "cli/consent_ask.h"
#include "cli/consent_show.h"
#include "cli/say.h"
#include "cli/screen.h"
#include "policy/decide.h"
#include "policy/owner.h"
#include "skill/skill.h"

struct asking {
	struct request *r;
	const struct owner *owner;
	struct skill_dir dir;
	struct planned *p;
	struct consent_decision decision;
	struct consent_view view; /* what the owner was shown; `dir` is NULL if nothing was shown */
};

static void asking_done(struct asking *a)
{
	consent_decision_done(&a->decision);
	consent_view_done(&a->view);
	skill_dir_close(&a->dir);
}

/* ---- steps ----------------------------------------------------------------------- */

static int look_at_files(void *arg, struct ssb_error *err)
{
	struct asking *a = arg;
	struct consent_found found = { 0 };

	if (consent_look(a->owner, a->dir.path, &found, err) != 0) {
		return -1;
	}
	consent_looked(&a->decision, &found, true, false);
	return 0;
}

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

static int decide_plan(const struct asking *a, const struct plan_consent *consent,
                       struct ssb_error *err)
{
	char **args = a->r->operands.v + 1;

	if (args[0] != NULL && strcmp(args[0], "--") == 0) {
		args++;
	}
	const struct plan_request q = { .owner = a->owner,
		                        .options = a->r->options,
		                        .dir = &a->dir,
		                        .args = args,
		                        .consent = *consent };
	ssb_plan_free(steal_ptr(&a->p->plan));
	if (forget_diags(a) != 0) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "plan", "out of memory");
	}
	return plan_decide(&q, &a->p->plan, a->p->diags, err);
}

/* Returns true if the plan refuses a flag of this run, such as a path that does not exist. The
 * owner's answer cannot change that. */
static bool refuses_flag(const struct ssb_plan *plan)
{
	return ARRAY_HAS(e, plan->refusals, plan->n_refusals,
	                 e->value == NULL && strncmp(e->where, "--", 2) == 0);
}

static int make_plan(void *arg, struct ssb_error *err)
{
	struct asking *a = arg;
	struct consent_decision *d = &a->decision;
	struct plan_consent consent = consent_input_plan(&d->input);

	/* A dry run prints the plan for programs that run the skill by other means. They
	 * need the state of the approval, too. */
	if (d->dry) {
		consent.state = consent_state_name(d->found.state);
	}
	if (decide_plan(a, &consent, err) != 0) {
		return -1;
	}
	const struct ssb_plan *plan = a->p->plan;
	assert(plan != NULL);
	/* If the script is missing, or a flag cannot be granted, the owner is not asked: the caller
	 * reports this and runs nothing. */
	d->dry |= plan_lacks_script(plan) || refuses_flag(plan);
	const bool wanted = !d->dry && d->found.state == CONSENT_NONE && d->answer == ANSWER_NONE &&
	                    consent_needed(a->r, plan);
	consent_planned(d, plan, wanted);
	return 0;
}

static int ask_owner(void *arg, struct ssb_error *err)
{
	struct asking *a = arg;

	(void)err;
	consent_answered(&a->decision, a->decision.dry ? ANSWER_IMPOSSIBLE
	                                               : consent_ask(a->r, &a->decision, &a->view));
	return 0;
}

static int keep_approval(void *arg, struct ssb_error *err)
{
	struct asking *a = arg;
	const struct consent_view *v = &a->view;
	char by[128];
	const struct consent_terms terms = { .declined = &v->declined,
		                             .by = consent_by(a->owner, CONSENT_BY_TERMINAL, by,
		                                              sizeof(by)),
		                             .uses = -1 };

	assert(v->plan == a->p->plan); /* the plan that was shown */
	if (consent_give(a->owner, a->dir.path, v->plan, &v->files, &terms, err) != 0) {
		return -1;
	}
	say_notef(
	        "approved as it is now; to remove the approval: skillsandbox approve --revoke DIR");
	consent_kept(&a->decision);
	return 0;
}

static const struct consent_steps STEPS = {
	.look = look_at_files, .plan = make_plan, .ask = ask_owner, .keep = keep_approval
};

/* ---- messages ------------------------------------------------------------------------ */

static void say_changes(const struct asking *a)
{
	auto_buf out;

	consent_show_changes(&a->decision.found.lock, &a->decision.found.now, a->p->plan, NULL);
	buf_init(&out, SAY_MAX);
	buf_adds(&out, "  to see more:    skillsandbox diff ");
	say_word(&out, a->dir.path);
	buf_adds(&out, "\n  to approve it:  skillsandbox approve ");
	say_word(&out, a->dir.path);
	buf_addc(&out, '\n');
	(void)screen_text(STDERR_FILENO, &out);
}

/* Prints the withheld items: all of them, or only files that the arguments name. The skill runs
 * without them, because each needs the owner's yes, and the owner was not asked. */
static void say_withheld(const struct ssb_plan *plan, bool all)
{
	for (size_t i = 0; i < plan->n_withheld; i++) {
		const struct refusal *w = &plan->withheld[i];
		if (!all && !w->named) {
			continue;
		}
		say_notef("withheld: %.300s: %s%s%s", w->what, w->why,
		          w->remedy[0] != '\0' ? "; " : "", w->remedy);
	}
}

/* Prints the credentials that the approval does not include. An approval that was given
 * through the server never includes credentials, but the owner may expect them. */
static void say_left_out(const struct asking *a)
{
	const struct ssb_plan *plan = a->p->plan;
	assert(plan != NULL);

	for (size_t i = 0; i < plan->n_withheld; i++) {
		const struct refusal *w = &plan->withheld[i];
		if (w->value != NULL && owner_getenv(a->owner, w->value) != NULL) {
			say_notef("withheld: %s: the approval does not include it; %s", w->what,
			          w->remedy);
		}
	}
}

static void say_planned(const struct asking *a)
{
	const struct consent_decision *d = &a->decision;

	if (d->dry) {
		return;
	}
	if (d->found.state == CONSENT_HOLDS) {
		say_left_out(a);
	}
	say_withheld(d->plan, d->found.state != CONSENT_HOLDS && d->answer == ANSWER_IMPOSSIBLE &&
	                              d->plan->n_refusals == 0);
}

static void say_stopped(const struct asking *a)
{
	const struct consent_decision *d = &a->decision;

	if (d->next == CONSENT_STOP) {
		/* The findings are not shown: they do not say why the skill must not run. */
		(void)forget_diags(a);
		if (d->found.state == CONSENT_CHANGED && d->answer != ANSWER_NO) {
			say_changes(a);
		}
	}
}

/* ---- files that the arguments name ----------------------------------------------------- */

/* Asks whether this run may read the files that the arguments name and that the manifest does not
 * ask for. The question shows every file that the answer grants. The usual answer is no. */
static bool ask_named(const struct string_list *files)
{
	char answer[8] = "";
	auto_buf out = BUF(SAY_MAX);

	buf_adds(&out, files->n == 1 ? "" : "skillsandbox: the arguments name files:\n");
	for (size_t i = 0; files->n > 1 && i < files->n; i++) {
		buf_adds(&out, "  ");
		words_quote(&out, files->v[i]);
		buf_addc(&out, '\n');
	}
	buf_adds(&out, "skillsandbox: read ");
	if (files->n == 1) {
		words_quote(&out, files->v[0]);
	} else {
		buf_addf(&out, "these %zu", files->n);
	}
	buf_adds(&out, " for this run? [y/N]: ");
	return !out.failed && ask_line(out.data, answer, sizeof(answer)) &&
	       (strcmp(answer, "y") == 0 || strcmp(answer, "yes") == 0);
}

/* Plans again with the files that the owner agreed to, if the owner was asked. */
static int grant_named(struct asking *a, struct ssb_error *err)
{
	const struct ssb_plan *plan = a->p->plan;
	struct consent_decision *d = &a->decision;

	if (d->dry || plan->named.n == 0 || plan->n_refusals > 0 || request_has(a->r, FLAG_QUIET) ||
	    !ask_terminal() || !ask_named(&plan->named)) {
		return 0;
	}
	for (size_t i = 0; i < plan->named.n; i++) {
		if (consent_input_give(&d->input, SSB_OPT_READ, plan->named.v[i]) != 0) {
			return ssb_fail(err, SSB_E_NOMEM, 0, "arguments", "out of memory");
		}
	}
	d->next = CONSENT_PLAN;
	return consent_decide(d, &STEPS, a, err);
}

/* ---- all steps ----------------------------------------------------------------------- */

int consent_plan(struct request *r, struct planned *inout, struct ssb_error *err)
{
	assert(r->operands.n > 0 && inout->plan == NULL);

	AUTO(asking_done) struct asking a = { .r = r, .p = inout, .dir = SKILL_DIR_NONE };

	a.owner = request_owner(r, err);
	if (a.owner == NULL) {
		return -1;
	}
	if (skill_dir_open(r->operands.v[0], &a.dir, err) != 0) {
		return -1;
	}
	const bool runs = (r->command->bit & ON_RUNS) != 0 && !request_has(r, FLAG_DRY_RUN);
	a.decision = (struct consent_decision){ .owner = a.owner, .dir = a.dir.path, .dry = !runs };
	if (consent_decide(&a.decision, &STEPS, &a, err) != 0 || grant_named(&a, err) != 0) {
		say_stopped(&a);
		return -1;
	}
	const enum consent_state state = a.decision.found.state;
	if (!runs && (state == CONSENT_CHANGED || state == CONSENT_OVER)) {
		say_notef("the approval of this skill is no longer valid (%s)",
		          consent_state_name(state));
	}
	say_planned(&a);
	return 0;
}
