/* cmd_approve.c - shows in plain words what a skill could do, and asks you. An approval is valid
 * only for exactly the files that were shown. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/own.h"
#include "base/shell_quote.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/consent_ask.h"
#include "cli/consent_show.h"
#include "cli/cli_record.h"
#include "cli/say.h"
#include "consent/risk.h"
#include "policy/decide.h"
#include "policy/owner.h"

static bool ask_to_confirm(const struct request *r)
{
	if (request_has(r, FLAG_YES)) {
		return true;
	}
	enum ask_answer a =
	        ask_yes(request_has(r, FLAG_ONCE) ? "approve this for one run?"
	                                          : "approve this until the skill changes?");
	if (a == ASKED_NOBODY) {
		say_errorf("approve needs a terminal to ask you, or --yes");
	} else if (a == ASKED_NO) {
		say_notef("nothing was approved");
	}
	return a == ASKED_YES;
}

/* Checks that each --without matches a request. Otherwise, after a typing mistake, the request that
 * you wanted to decline would be approved. */
static int check_without(const struct ssb_plan *p, const struct ssb_options *o)
{
	for (size_t i = 0; i < o->withhold.n; i++) {
		bool found = ARRAY_HAS(withheld, p->withheld, p->n_withheld,
		                       strcmp(withheld->what, o->withhold.v[i]) == 0);
		if (!found) {
			say_errorf("--without '%s': the skill does not ask for that; it asks for%s",
			           o->withhold.v[i], p->requested.n > 0 ? ":" : " nothing");
			for (size_t k = 0; k < p->requested.n; k++) {
				say_errorf("  '%s'", p->requested.v[k]);
			}
			return EXIT_USAGE;
		}
	}
	return EXIT_FINE;
}

/* Prints the requests that nothing can allow. The skill cannot be approved with them, because every
 * run would fail at them. */
static int refuse_never(const struct consent_view *v)
{
	for (size_t i = 0; i < v->abilities.n; i++) {
		if (v->abilities.v[i].never) {
			auto_buf item = BUF(SAY_MAX);

			shell_quote(&item, v->abilities.v[i].asked);
			const char *asked = item.failed ? "" : item.data;
			say_errorf("%s cannot be approved; approve the skill without it: "
			           "--without %s",
			           asked, asked);
		}
	}
	return EXIT_FINDINGS;
}

static int make_plan_with(const struct request *r, const struct owner *owner, const char *dir,
                          const struct consent_input *input, struct ssb_plan **ret,
                          struct ssb_error *err)
{
	const struct plan_request q = { .owner = owner,
		                        .options = r->options,
		                        .skill = dir,
		                        .consent = consent_input_plan(input) };

	return plan_decide(&q, ret, NULL, err);
}

/* Makes the plan that the approval would give, and prints its risk. Fails if something in that plan
 * would still be refused. */
static int judge_plan(const struct request *r, const struct owner *owner,
                      const struct consent_view *v)
{
	AUTO(plan_freep) struct ssb_plan *plan = NULL;
	AUTO(consent_input_done) struct consent_input input = { 0 };
	struct ssb_error err = { 0 };

	if (consent_view_input(v, &input, &err) != 0 ||
	    make_plan_with(r, owner, v->dir, &input, &plan, &err) != 0) {
		return exit_status_told(&err);
	}
	for (size_t i = 0; i < plan->n_refusals; i++) {
		/* The width is limited, because a long name must not hide the reason. */
		say_errorf("'%.300s' cannot be approved: %s", plan->refusals[i].what,
		           plan->refusals[i].why);
	}
	if (plan->n_refusals > 0) {
		return EXIT_FINDINGS;
	}
	say_notef("risk: %s", risk_level(plan));
	return EXIT_FINE;
}

static int give_approval(const struct request *r, const struct owner *owner,
                         const struct consent_view *v, int64_t expires, int64_t uses)
{
	char by[128];
	struct ssb_error err = { 0 };
	const struct lock *fresh = v->fresh;
	struct consent_terms terms = {
		.declined = &v->declined,
		.by = consent_by(owner, request_has(r, FLAG_YES) ? "by --yes" : "on terminal", by,
		                 sizeof(by)),
		.expires = expires,
		.uses = uses,
		.allowed = fresh != NULL ? fresh->allowed : NULL,
		.n_allowed = fresh != NULL ? fresh->n_allowed : 0,
	};

	if (consent_give(owner, v->dir, v->plan, &v->files, &terms, &err) != 0) {
		say_error(&err);
		return EXIT_SANDBOX;
	}
	if (fresh == NULL) {
		say_notef("approved; to remove the approval: skillsandbox approve --revoke DIR");
		return EXIT_FINE;
	}
	auto_buf out = BUF(SAY_MAX);
	buf_adds(&out, "skillsandbox: remembered until the skill changes; to forget it: "
	               "skillsandbox allow --revoke ");
	say_word(&out, v->dir);
	buf_addc(&out, '\n');
	(void)say_out(STDERR_FILENO, &out);
	return EXIT_FINE;
}

/* Asks whether the grants that the owner adds are to be remembered. */
static int ask_and_remember(struct request *r, const struct owner *owner, struct consent_view *v,
                            const struct consent_found *before)
{
	const bool holds = before->state == CONSENT_HOLDS;
	const char *title = holds ? "is approved; (new) marks what you add."
	                          : "would be approved as it is now; (new) marks what you add.";

	if (request_has(r, FLAG_YES)) {
		consent_show(v, title);
	} else {
		enum ask_answer a = consent_ask_remember(v, title);
		if (a == ASKED_NOBODY) {
			say_errorf("allow needs a terminal to ask you, or --yes");
		} else if (a == ASKED_NO) {
			say_notef("nothing was remembered");
		}
		if (a != ASKED_YES) {
			return EXIT_FINDINGS;
		}
	}
	int status = consent_view_never(v) > 0 ? refuse_never(v) : judge_plan(r, owner, v);
	return status != EXIT_FINE ? status
	                           : give_approval(r, owner, v, holds ? before->lock.expires : 0,
	                                           holds ? before->lock.uses : -1);
}

static int ask_and_give(struct request *r, const struct owner *owner, struct consent_view *v,
                        const struct consent_found *before, int64_t expires)
{
	if (!v->pinned) {
		say_error(&v->no_pin);
		return EXIT_SANDBOX;
	}
	if (before->state == CONSENT_CHANGED) {
		consent_show_changes(&before->lock, &v->files, v->plan, v->fresh);
	}
	if (v->fresh != NULL) {
		return ask_and_remember(r, owner, v, before);
	}
	consent_show(v, "asks for your approval.");
	int status = consent_view_never(v) > 0 ? refuse_never(v) : judge_plan(r, owner, v);
	if (status != EXIT_FINE) {
		return status;
	}
	return ask_to_confirm(r)
	               ? give_approval(r, owner, v, expires, request_has(r, FLAG_ONCE) ? 1 : -1)
	               : EXIT_FINDINGS;
}

/* Returns true if the skill asks for an item of `declined`, which you took out of an earlier
 * approval. */
static bool is_narrowed(const struct ssb_plan *p, const struct string_list *declined)
{
	return ARRAY_HAS(withheld, p->withheld, p->n_withheld,
	                 string_list_has(declined, withheld->what));
}

/* Adds the new grants in `fresh` to an approval that was read, so that the next plan asks for them.
 * They are no longer declined. Returns -1 if there is no memory. */
static int add_fresh(struct lock *l, const struct lock *fresh)
{
	for (size_t i = 0; fresh != NULL && i < fresh->n_allowed; i++) {
		const struct given *g = &fresh->allowed[i];
		auto_free char *item = given_item(g->option, g->value);
		if (item == NULL || lock_allow(l, g) != 0) {
			return -1;
		}
		string_list_drop(&l->declined, item);
	}
	return 0;
}

int cmd_approve_with(struct request *r, const struct owner *owner, const char *dir,
                     const struct lock *fresh)
{
	AUTO(plan_freep) struct ssb_plan *plan = NULL;
	AUTO(consent_found_done) struct consent_found before = { 0 };
	AUTO(consent_view_done) struct consent_view v = { 0 };
	const struct consent_input declined = { .lock = &before.lock };
	const char *until = request_value(r, FLAG_EXPIRES);
	struct ssb_error err = { 0 };
	struct ssb_error none = { 0 };
	int64_t expires = 0;

	consent_view_read(&v, dir);
	v.fresh = fresh;
	/* If the old approval cannot be read, it is ignored: the new one replaces it. */
	(void)consent_look_known(owner, dir, v.files.tree, &before, &none);
	const size_t known = before.lock.n_allowed;
	if (add_fresh(&before.lock, fresh) != 0) {
		return say_fail(EXIT_SANDBOX, "more grants than an approval can contain");
	}
	if (fresh != NULL && before.state == CONSENT_HOLDS && before.lock.n_allowed == known) {
		say_notef("the approval of the skill has these grants already");
		return EXIT_FINE;
	}
	if ((until != NULL && cli_record_until(until, &expires, &err) != 0) ||
	    make_plan_with(r, owner, dir, &declined, &plan, &err) != 0) {
		return exit_status_told(&err);
	}
	int status = check_without(plan, r->options);
	if (status != EXIT_FINE) {
		return status;
	}
	if (is_narrowed(plan, &before.lock.declined)) {
		say_notef("what you took out of an earlier approval is left out of this one, too; "
		          "to grant it, first remove the earlier approval (--revoke)");
	}
	if (consent_view_make(&v, plan, r->options, &before.lock.declined) != 0) {
		return say_fail(EXIT_SANDBOX, "out of memory");
	}
	return ask_and_give(r, owner, &v, &before, expires);
}

int cmd_approve(struct request *r)
{
	AUTO(owner_done) struct owner owner = { 0 };
	struct ssb_error err = { 0 };

	if (r->operands.n != 1 || r->operands.dashes) {
		return say_fail(EXIT_USAGE, "approve needs one DIR");
	}
	if (owner_load(&owner, &err) != 0) {
		say_error(&err);
		return EXIT_SANDBOX;
	}
	if (request_has(r, FLAG_REVOKE)) {
		return cmd_approvals_revoke(&owner, r->operands.v[0]);
	}
	auto_free char *dir = realpath(r->operands.v[0], NULL);
	if (dir == NULL) {
		return say_fail(EXIT_SANDBOX, "%s: directory not found", r->operands.v[0]);
	}
	return cmd_approve_with(r, &owner, dir, NULL);
}
