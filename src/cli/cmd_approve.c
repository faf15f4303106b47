/* cmd_approve.c - what a skill asks for beyond what it may have, granted by its owner
 * for good; and the list of what was granted so. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hex.h"
#include "base/json.h"
#include "base/own.h"
#include "base/visible.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/say.h"
#include "serve/approved.h"

#define BY "command line"

/* What the plan lacks and can be approved; the rest is said to stay refused. */
static size_t gather(const struct ssb_plan *plan, char *dir, struct approved *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < plan->n_refusals; i++) {
		const struct refusal *r = &plan->refusals[i];
		auto_buf line;
		buf_init(&line, SAY_MAX);
		bool can = r->value != NULL && approved_option_name(r->option) != NULL;
		buf_adds(&line, can ? "  " : "  (cannot be approved) ");
		visible_text(&line, r->what, false);
		buf_adds(&line, ": ");
		visible_text(&line, can ? r->why : r->remedy, false);
		buf_addc(&line, '\n');
		(void)say_out(STDERR_FILENO, &line);
		if (can) {
			ret[n] = (struct approved){
				.skill = dir, .option = r->option, .value = r->value, .by = BY
			};
			memcpy(ret[n++].manifest, plan->manifest_digest, sizeof(ret->manifest));
		}
	}
	return n;
}

static bool confirmed(const struct request *r)
{
	if (request_has(r, FLAG_YES)) {
		return true;
	}
	enum asked a = ask_yes("grant this for good, while the manifest stays as it is?");
	if (a == ASKED_NOBODY) {
		say_errorf("approving needs a terminal, or --yes");
	} else if (a == ASKED_NO) {
		say_notef("nothing was granted");
	}
	return a == ASKED_YES;
}

static int take_back(const struct owner *owner, const char *dir)
{
	struct ssb_error err = { 0 };
	size_t n = 0;

	if (approved_remove(owner, dir, &n, &err) != 0) {
		say_error(&err);
		return EXIT_SANDBOX;
	}
	say_notef("%zu approval%s taken back", n, n == 1 ? " was" : "s were");
	return EXIT_FINE;
}

static int approve(struct request *r, const struct owner *owner, char *dir)
{
	AUTO(plan_freep) struct ssb_plan *plan = NULL;
	struct ssb_error err = { 0 };

	if (ssb_plan_skill(r->options, dir, NULL, &plan, NULL, &err) != 0) {
		say_error(&err);
		return exit_from_error(&err, false);
	}
	if (plan->n_refusals == 0) {
		say_notef("it asks for nothing that it may not have already");
		return EXIT_FINE;
	}
	auto_free struct approved *v = calloc(plan->n_refusals, sizeof(*v));
	if (v == NULL) {
		say_errorf("out of memory");
		return EXIT_SANDBOX;
	}
	say_notef("the skill asks for what it may not have:");
	size_t n = gather(plan, dir, v);
	if (n == 0) {
		say_errorf("none of it can be approved");
		return EXIT_FINDINGS;
	}
	if (!confirmed(r)) {
		return EXIT_FINDINGS;
	}
	if (approved_add(owner, v, n, &err) != 0) {
		say_error(&err);
		return EXIT_SANDBOX;
	}
	say_notef("granted; 'skillsandbox approve --revoke' takes it back");
	return EXIT_FINE;
}

int cmd_approve(struct request *r)
{
	AUTO(owner_done) struct owner owner = { 0 };
	struct ssb_error err = { 0 };

	if (r->operands.n != 1 || r->operands.dashes) {
		say_errorf("approve needs one DIR");
		return EXIT_USAGE;
	}
	if (owner_load(&owner, &err) != 0) {
		say_error(&err);
		return EXIT_SANDBOX;
	}
	auto_free char *dir = realpath(r->operands.v[0], NULL);
	if (dir == NULL) {
		say_errorf("%s: there is no such directory", r->operands.v[0]);
		return EXIT_USAGE;
	}
	return request_has(r, FLAG_REVOKE) ? take_back(&owner, dir) : approve(r, &owner, dir);
}

static void row_json(struct json *j, const struct approved *a)
{
	char digest[65];

	hex_encode(a->manifest, sizeof(a->manifest), digest);
	json_open(j, '{');
	json_kstr(j, "skill", a->skill);
	json_kstr(j, "option", approved_option_name(a->option));
	json_kstr(j, "value", a->value);
	json_kstr(j, "manifest_sha256", digest);
	json_kstr(j, "at", a->at);
	json_kstr(j, "by", a->by);
	json_close(j, '}');
}

static void row_text(struct buf *out, const struct approved *a)
{
	visible_text(out, a->skill, false);
	buf_addf(out, ": --%s ", approved_option_name(a->option));
	visible_text(out, a->value, false);
	buf_addf(out, "  (%.19s, ", a->at);
	visible_text(out, a->by, false);
	buf_adds(out, ")\n");
}

int cmd_approvals(struct request *r)
{
	AUTO(approved_done) struct approved_list l = { 0 };
	AUTO(owner_done) struct owner owner = { 0 };
	bool as_json = request_has(r, FLAG_JSON);
	struct ssb_error err = { 0 };
	struct json j;
	auto_buf out;

	buf_init(&out, SAY_MAX);
	if (owner_load(&owner, &err) != 0 || approved_load(&owner, &l, &err) != 0) {
		say_error(&err);
		return EXIT_SANDBOX;
	}
	if (as_json) {
		json_init(&j, &out, true);
		json_open(&j, '[');
	}
	for (size_t i = 0; i < l.n; i++) {
		if (as_json) {
			row_json(&j, &l.v[i]);
		} else {
			row_text(&out, &l.v[i]);
		}
	}
	if (as_json) {
		json_close(&j, ']');
		buf_addc(&out, '\n');
	}
	return say_out(STDOUT_FILENO, &out);
}
