/* session_cli.c - what all session commands use. See session_cli.h. */
#include "cli/session_cli.h"

#include "base/error.h"
#include "base/name.h"
#include "base/number.h"
#include "base/own.h"
#include "cli/line.h"
#include "cli/say.h"
#include "report/session_json.h"
#include "session/herald.h"
#include "session/prices.h"

#define MAX_TOKENS 999999999999999

/* ---- the store ----------------------------------------------------------- */

/* Returns the exit status of an error. An error without `where` is about the user's request.
 * An error with `where` is about a file or the store. */
static int fail_status(const struct ssb_error *err)
{
	bool asked = err->where[0] == '\0';

	switch (err->code) {
	case SSB_E_USAGE:
		return EXIT_USAGE;
	case SSB_E_NOT_FOUND:
		return asked ? EXIT_USAGE : EXIT_SANDBOX;
	case SSB_E_POLICY:
	case SSB_E_LIMIT:
		return asked ? EXIT_FINDINGS : EXIT_SANDBOX;
	default:
		return EXIT_SANDBOX;
	}
}

int session_cli_out(const struct buf *json)
{
	auto_buf out = BUF(64 * SAY_MAX);

	if (json->failed) {
		return say_out(STDOUT_FILENO, json);
	}
	line_render_raw(&out, json->data, json->len, STDOUT_FILENO);
	return say_out(STDOUT_FILENO, &out);
}

static void fail_json(const struct session_cli *c, const struct ssb_error *err, int status)
{
	auto_buf out = BUF(SAY_MAX);
	struct json j = JSON_TO(&out, true);

	json_open(&j, '{');
	json_kstr(&j, "session_id", c->r->command->bit == ON_S_SETTLE ? NULL : c->id);
	json_kbool(&j, "action_allowed", false);
	json_kstr(&j, "action_taken", "block");
	json_kstr(&j, "code", status == EXIT_FINDINGS ? "refused" : name_of_code(err->code));
	json_kstr(&j, "reason", err->text);
	json_kint(&j, "exit_status", status);
	json_close(&j, '}');
	buf_addc(&out, '\n');
	(void)session_cli_out(&out);
}

int session_cli_fail(const struct session_cli *c, const struct ssb_error *err)
{
	int status = fail_status(err);

	if (!c->told) {
		say_error(err);
	}
	if (request_has(c->r, FLAG_JSON)) {
		fail_json(c, err, status);
	}
	return status;
}

void session_cli_findings(struct session_cli *c, const struct ssb_diags *found)
{
	say_diags(found, SSB_ERROR);
	c->told = diag_has_errors(found);
}

static int take_operand(struct session_cli *c, const struct request *r, struct ssb_error *err)
{
	const char *wanted = r->command->operands;
	bool optional = wanted[0] == '[';

	if (wanted[0] == '\0' && r->operands.n > 0) {
		return ssb_fail(err, SSB_E_USAGE, 0, "", "%s takes no argument", r->command->name);
	}
	if (r->operands.n > 1 || (wanted[0] != '\0' && !optional && r->operands.n == 0)) {
		return ssb_fail(err, SSB_E_USAGE, 0, "", "%s needs one %s", r->command->name,
		                wanted);
	}
	c->id = r->operands.n > 0 ? r->operands.v[0] : NULL;
	return 0;
}

int session_cli_begin(struct session_cli *c, const struct request *r)
{
	struct ssb_error err = { 0 };

	*c = (struct session_cli){ .r = r };
	if (take_operand(c, r, &err) != 0) {
		return session_cli_fail(c, &err);
	}
	return owner_load(&c->owner, &err) == 0 ? EXIT_FINE : session_cli_fail(c, &err);
}

int session_cli_open(struct session_cli *c, struct ssb_error *err)
{
	if (session_store_open(&c->owner, &c->store, err) == 0) {
		return 0;
	}
	/* An error of the store is never a mistake of the user. */
	err->code = err->code == SSB_E_USAGE ? SSB_E_SYS : err->code;
	if (err->where[0] == '\0') {
		snprintf(err->where, sizeof(err->where), "store");
	}
	return -1;
}

void session_cli_done(struct session_cli *c)
{
	session_store_close(c->store);
	owner_done(&c->owner);
}

/* ---- cost ---------------------------------------------------------------- */

static int parse_tokens(const struct request *r, enum cli_flag flag, const char *name,
                        uint64_t *ret, struct ssb_error *err)
{
	const char *text = request_value(r, flag);

	if (text == NULL) {
		return 0;
	}
	if (!number_parse(text, 0, MAX_TOKENS, ret)) {
		return ssb_fail(err, SSB_E_USAGE, 0, "",
		                "%s: '%.40s' is not a number of tokens; write one such as 1500",
		                name, text);
	}
	return 0;
}

static int model_cost(struct session_cli *c, const char *model, micros *ret, struct ssb_error *err)
{
	AUTO(diags_freep) struct ssb_diags *diags = ssb_diags_new();
	AUTO(prices_done) struct prices prices = { 0 };
	uint64_t in = 0;
	uint64_t out = 0;

	if (diags == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "prices", "out of memory");
	}
	if (parse_tokens(c->r, FLAG_TOKENS_IN, "--tokens-in", &in, err) != 0 ||
	    parse_tokens(c->r, FLAG_TOKENS_OUT, "--tokens-out", &out, err) != 0) {
		return -1;
	}
	if (prices_load(&c->owner, &prices, diags, err) != 0) {
		session_cli_findings(c, diags);
		return -1;
	}
	if (prices_cost(&prices, model, in, out, ret, err) != 0) {
		/* The model comes from the command line, so an unknown model is a mistake of the
		 * user. */
		err->code = err->code == SSB_E_NOT_FOUND ? SSB_E_USAGE : err->code;
		return -1;
	}
	return 0;
}

int session_cli_cost(struct session_cli *c, micros *ret, bool *ret_given, struct ssb_error *err)
{
	const char *cost = request_value(c->r, FLAG_COST);
	const char *model = request_value(c->r, FLAG_MODEL);
	const char *why = NULL;
	bool tokens = request_has(c->r, FLAG_TOKENS_IN) || request_has(c->r, FLAG_TOKENS_OUT);

	*ret_given = cost != NULL || model != NULL;
	if (cost != NULL && (model != NULL || tokens)) {
		return ssb_fail(err, SSB_E_USAGE, 0, "",
		                "--cost and --model both give the cost: remove one of them");
	}
	if ((model != NULL) != tokens) {
		return ssb_fail(err, SSB_E_USAGE, 0, "",
		                "--model and the tokens go together: --model NAME --tokens-in N "
		                "--tokens-out N");
	}
	if (model != NULL) {
		return model_cost(c, model, ret, err);
	}
	if (cost != NULL && !money_parse(cost, ret, &why)) {
		return ssb_fail(err, SSB_E_USAGE, 0, "",
		                "--cost: '%.40s' %s; write for example --cost 0.50", cost, why);
	}
	return 0;
}

/* ---- messages about a decision -------------------------------------------- */

static void warn_unsent(const char *why)
{
	say_warningf("messages to you are still in the outbox, because the process that sends them "
	             "cannot be started: %s",
	             why);
}

void session_cli_mail(const struct session_cli *c)
{
	struct ssb_error err = { 0 };
	bool due = false;

	if (herald_due(c->store, &due, &err) == 0 && due && herald_start(&c->owner, &err) != 0) {
		warn_unsent(err.text);
	}
}

/* Returns whether the decision concerns runs. A change to the state "alert" does not, unless the
 * owner caused it: if the owner resumes a session that was in "alert" before its pause, it is in
 * "alert" again, and its runs resume. */
static bool reaches_runs(const struct decision *d)
{
	return d->changed && (d->state != SESSION_ALERT || d->verdict.code == VERDICT_OWNER);
}

int session_cli_done_status(const struct decision *d)
{
	if (d->unsent[0] != '\0') {
		warn_unsent(d->unsent);
	}
	if (d->warning[0] != '\0') {
		say_warningf("%s", d->warning);
	}
	if (d->undone.code != SSB_OK) {
		say_error(&d->undone);
		return EXIT_SANDBOX;
	}
	return EXIT_FINE;
}

void session_cli_runs(struct buf *out, const struct decision *d)
{
	const struct act_report *runs = &d->runs;
	const char *done = session_is_over(d->state)    ? "ended"
	                   : d->state == SESSION_PAUSED ? "stopped"
	                                                : "resumed";

	if (!reaches_runs(d)) {
		return;
	}
	buf_addf(out, "; %zu run%s %s", runs->runs - runs->left,
	         runs->runs - runs->left == 1 ? "" : "s", done);
	if (runs->runs > 0) {
		buf_addf(out, " in %.1f ms", (double)runs->took_us / 1000);
	}
	if (runs->forced > 0) {
		buf_addf(out, ", %zu by force", runs->forced);
	}
	if (runs->elsewhere > 0) {
		buf_addf(out,
		         "; %zu on other machines will follow when those machines read the store",
		         runs->elsewhere);
	}
}

/* ---- JSON ---------------------------------------------------------------- */

static void json_report(struct json *j, const struct act_report *r)
{
	json_kopen(j, "runs", '{');
	json_kuint(j, "found", r->runs);
	json_kuint(j, "reached", r->reached);
	json_kuint(j, "forced", r->forced);
	json_kuint(j, "elsewhere", r->elsewhere);
	json_kuint(j, "left", r->left);
	json_kmillionths(j, "seconds", (int64_t)r->took_us);
	json_close(j, '}');
}

static void json_snapshot(struct json *j, const struct decision *d, const char *action)
{
	const struct session *s = &d->after;

	json_kopen(j, "session_state_snapshot", '{');
	json_kmillionths(j, "total_cost", s->spent);
	json_kmillionths(j, "reserved_cost", s->reserved);
	json_kuint(j, "action_count", s->actions);
	json_kuint(j, "violations", s->violations);
	json_kmillionths(j, "duration_seconds", session_age_us(s));
	json_kmillionths(j, "estimated_cost", d->amount);
	json_kstr(j, "action", action);
	json_close(j, '}');
}

int session_cli_json(const struct decision *d, const struct session_told *told)
{
	const struct verdict *v = &d->verdict;
	auto_buf out = BUF(SAY_MAX);
	struct json j = JSON_TO(&out, true);

	json_open(&j, '{');
	json_kstr(&j, "session_id", d->session);
	json_kstr(&j, "state", session_state_name(d->after.state));
	json_kbool(&j, "action_allowed", v->allowed);
	json_kstr(&j, "action_taken", session_act_name(v->act));
	json_kstr(&j, "code", session_code_name(v->code));
	json_kstr(&j, "reason", v->reason);
	if (told->type != NULL || !v->allowed) {
		json_kstr(&j, "violation_type",
		          told->type != NULL ? told->type : session_code_name(v->code));
	}
	json_kstr(&j, "decided_by", d->decided);
	json_kbool(&j, "changed", d->changed);
	json_key(&j, "reservation");
	if (d->reservation > 0) {
		json_int(&j, d->reservation);
	} else {
		json_null(&j);
	}
	json_snapshot(&j, d, told->action);
	if (reaches_runs(d)) {
		json_report(&j, &d->runs);
	}
	json_close(&j, '}');
	buf_addc(&out, '\n');
	return session_cli_out(&out);
}
