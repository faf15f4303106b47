/* approve_say.c - the words of a question to the owner, and of a refusal. */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/own.h"
#include "base/shell_quote.h"
#include "base/visible.h"
#include "consent/diff.h"
#include "consent/words.h"
#include "serve/approve_priv.h"

#define MAX_TEXT    (64UL * 1024)
#define MAX_QUOTED  200 /* bytes of one text of a manifest in a question */
#define MAX_CHANGES 24  /* lines of additional requests in a question */
#define MAX_CHANGED 12  /* changed files */
#define MAX_DIFF    (16UL << 20)

const struct approve_choice_row APPROVE_CHOICES[CHOICE_COUNT] = {
	[CHOICE_DENY] = { "deny", "Deny" },
	[CHOICE_ONCE] = { "once", "Allow for this run" },
	[CHOICE_SESSION] = { "session",
	                     "Allow for this session: until the client or the server ends" },
	[CHOICE_ALWAYS] = { "always", "Always allow, while the skill stays as it is" },
};

void approve_key(unsigned round, char ret[APPROVE_KEY])
{
	snprintf(ret, APPROVE_KEY, "approve%u", round);
}

/* ---- the question -------------------------------------------------------- */

static void quote_text(struct buf *out, const char *text)
{
	size_t len = strlen(text);

	visible_bytes(out, text, len < MAX_QUOTED ? len : MAX_QUOTED, false);
	buf_adds(out, len > MAX_QUOTED ? "..." : "");
}

/* Writes each line with a bar before it, because lines can contain names of the skill's files.
 * Returns false if there were more than `most` lines. */
static bool put_barred(struct buf *out, const struct buf *text, size_t most)
{
	const char *line = text->data != NULL ? text->data : "";

	for (size_t i = 0; i < most && *line != '\0'; i++) {
		size_t n = strcspn(line, "\n");
		buf_adds(out, "| ");
		visible_bytes(out, line, n < MAX_QUOTED ? n : MAX_QUOTED, false);
		buf_addc(out, '\n');
		line += n + (line[n] == '\n');
	}
	return *line == '\0';
}

/* Requests and files are limited separately: a long list of requests must not hide a changed
 * file. */
void approve_changes(struct buf *out, const struct consent_found *f, const struct ssb_plan *plan)
{
	AUTO(diff_done) struct diff d = { 0 };
	auto_buf asks = BUF(MAX_DIFF);
	auto_buf files = BUF(MAX_DIFF);

	if (f->state != CONSENT_CHANGED || diff_make(&f->lock, &f->now, plan, &d) != 0) {
		return;
	}
	diff_asks(&asks, &d, false);
	diff_files(&files, &d, false, MAX_CHANGED);
	bool all = put_barred(out, &asks, MAX_CHANGES) && !asks.failed;
	all = put_barred(out, &files, SIZE_MAX) && !files.failed && all && d.n_files <= MAX_CHANGED;
	buf_adds(out,
	         all ? "" : "There are more changes; to see them: skillsandbox diff --all DIR\n");
}

static void put_changes(struct buf *out, const struct approve_case *k)
{
	if (k->decision.found.state == CONSENT_CHANGED && k->files.changes != NULL) {
		buf_adds(out, k->files.changes);
	}
}

/* Writes everything that the skill could do, in the words of the command line. Dangerous abilities
 * are never left out. */
static void put_abilities(struct buf *out, const struct approve_case *k)
{
	const struct string_list *without = &k->decision.found.lock.declined;
	AUTO(abilities_done) struct abilities a = { 0 };

	if (k->decision.found.state == CONSENT_HOLDS) {
		return; /* the approval already includes these abilities */
	}
	if (abilities_of(k->decision.plan, &a) != 0) {
		out->failed = true;
		return;
	}
	buf_adds(out, "When it runs, it can:\n");
	(void)abilities_lines(out, &a, &(struct words_look){ .most = MAX_SHOWN_ITEMS });
	for (size_t i = 0; i < without->n; i++) {
		buf_adds(out, "  (taken out) ");
		words_quote(out, without->v[i]);
		buf_addc(out, '\n');
	}
	if (a.worst != NULL) {
		buf_adds(out, "The worst of it:\n");
		words_fold(out, "  ", a.worst, WORDS_COLUMNS);
	}
	if (abilities_dangerous(&a) > 0) {
		buf_adds(out, "Items marked ! are given only if you approve them.\n");
	}
}

static const char *title_of(const struct approve_case *k)
{
	if (!consent_is_required(&k->decision)) {
		return "A skill asks for something that you have not granted.";
	}
	switch (k->decision.found.state) {
	case CONSENT_CHANGED:
		return "A skill changed since you approved it.";
	case CONSENT_OVER:
		return "Your approval of a skill has ended.";
	default:
		return "You have not approved this skill.";
	}
}

static void put_text(struct buf *out, const struct approve_case *k,
                     const struct approve_items *asked)
{
	const struct ssb_plan *plan = k->decision.plan;
	size_t number = 0;

	buf_addf(out,
	         "%s Lines that begin with a bar contain the skill's directory and the skill's own "
	         "words:\n| ",
	         title_of(k));
	quote_text(out, k->skill.dir);
	buf_addc(out, '\n');
	put_changes(out, k);
	if (plan->by_script) {
		buf_adds(out, "It runs the script that the caller names:\n| ");
		quote_text(out, plan->scripts != NULL ? plan->scripts : "any of its scripts");
		buf_addc(out, '\n');
	}
	buf_adds(out, k->files.large ? SNAPSHOT_TOO_LARGE "\n" : "");
	put_abilities(out, k);
	for (size_t i = 0; i < plan->n_refusals; i++) {
		const struct refusal *r = &plan->refusals[i];
		if (approve_can_lift(r) && approve_items_has(asked, r->option, r->value)) {
			buf_addf(out, "%zu. ", ++number);
			quote_text(out, r->why);
			buf_adds(out, "\n| ");
			quote_text(out, r->what);
			buf_addc(out, '\n');
		}
	}
	if (number < plan->n_refusals) {
		buf_addf(out,
		         "The skill asks for %zu more item%s; the next question is about the "
		         "rest.\n",
		         plan->n_refusals - number, plan->n_refusals - number == 1 ? "" : "s");
	}
	buf_adds(out, "Nothing of this is allowed unless you allow it.");
}

static void put_schema(struct json *j)
{
	json_open(j, '{');
	json_kstr(j, "type", "object");
	json_kopen(j, "properties", '{');
	json_kopen(j, "decision", '{');
	json_kstr(j, "type", "string");
	json_kstr(j, "title", "Allow it?");
	json_kopen(j, "enum", '[');
	for (int i = 0; i < CHOICE_COUNT; i++) {
		json_str(j, APPROVE_CHOICES[i].name);
	}
	json_close(j, ']');
	json_kopen(j, "enumNames", '[');
	for (int i = 0; i < CHOICE_COUNT; i++) {
		json_str(j, APPROVE_CHOICES[i].title);
	}
	json_close(j, ']');
	json_kstr(j, "default", APPROVE_CHOICES[CHOICE_DENY].name);
	json_close(j, '}');
	json_close(j, '}');
	json_kopen(j, "required", '[');
	json_str(j, "decision");
	json_close(j, ']');
	json_close(j, '}');
}

int approve_put(struct approve_case *k, const struct approve_items *asked)
{
	auto_buf text = BUF(MAX_TEXT);
	auto_buf params = BUF(8 * MAX_TEXT);
	auto_buf state = BUF(MAX_TEXT);
	char key[APPROVE_KEY];
	struct json j = JSON_TO(&params, false);

	put_text(&text, k, asked);
	json_open(&j, '{');
	json_kstr(&j, "message", text.failed ? "" : text.data);
	json_key(&j, "requestedSchema");
	put_schema(&j);
	json_close(&j, '}');
	k->rounds++;
	approve_state(&state, k, asked);
	if (text.failed || params.failed || state.failed) {
		return -1; /* if the text were cut, the owner would approve what is not shown */
	}
	approve_key(k->rounds, key);
	mcp_ask(k->call, key, "elicitation/create", params.data);
	mcp_wait(k->call, state.data);
	return 0;
}

/* ---- the refusal --------------------------------------------------------- */

static void put_need(struct json *j, const struct refusal *r)
{
	auto_buf grant = BUF(MAX_TEXT);

	json_open(j, '{');
	json_kstr(j, "what", r->what);
	json_kstr(j, "why", r->why);
	json_kstr(j, "where", r->where);
	json_kstr(j, "fix", r->remedy);
	if (approve_can_lift(r)) {
		buf_addf(&grant, "--%s %s", lock_option_name(r->option), r->value);
	}
	json_kstr(j, "grant", grant.len > 0 ? grant.data : NULL);
	json_close(j, '}');
}

static void put_refusal(struct buf *out, const struct approve_case *k, const struct ssb_plan *plan,
                        const char *why, const char *command)
{
	buf_addf(out, "approval_required: %s. Nothing was run.\n", why);
	put_changes(out, k);
	for (size_t i = 0; i < plan->n_refusals; i++) {
		buf_adds(out, "- ");
		quote_text(out, plan->refusals[i].what);
		buf_adds(out, ": ");
		quote_text(out, plan->refusals[i].why);
		visible_addf(out, "; %s\n", plan->refusals[i].remedy);
	}
	if (command != NULL) {
		buf_adds(out, "The owner can approve the skill with: ");
		visible_text(out, command, false);
		buf_addc(out, '\n');
	}
}

/* Names the policy file that refused the skill, because another policy file may refuse something
 * else. */
static void put_command(struct buf *out, const struct approve_case *k)
{
	const struct ssb_options *o = k->serve->opt->owner;
	const char *named = o != NULL ? o->policy_file : NULL;
	auto_free char *real = named != NULL && named[0] != '\0' ? realpath(named, NULL) : NULL;

	buf_adds(out, "skillsandbox approve ");
	if (named != NULL) {
		buf_adds(out, "--policy ");
		shell_quote(out, real != NULL ? real : named);
		buf_addc(out, ' ');
	}
	shell_quote(out, k->skill.dir);
}

void approve_say_refused(struct approve_case *k, const struct ssb_plan *plan, const char *why)
{
	auto_buf text = BUF(4 * MAX_TEXT);
	auto_buf data = BUF(16 * MAX_TEXT);
	auto_buf command = BUF(MAX_TEXT);
	struct json j = JSON_TO(&data, false);

	if (!k->hopeless) {
		put_command(&command, k);
	}
	put_refusal(&text, k, plan, why, k->hopeless ? NULL : command.data);
	json_open(&j, '{');
	json_kopen(&j, "error", '{');
	json_kstr(&j, "code", "approval_required");
	json_kstr(&j, "message", why);
	json_kstr(&j, "fix",
	          k->hopeless ? "the owner can change what the skill needs, or grant it"
	                      : "the owner can approve it with this command");
	json_kstr(&j, "command", k->hopeless ? NULL : command.data);
	json_kopen(&j, "needs", '[');
	for (size_t i = 0; i < plan->n_refusals; i++) {
		put_need(&j, &plan->refusals[i]);
	}
	json_close(&j, ']');
	json_close(&j, '}');
	json_close(&j, '}');
	if (data.failed || text.failed || command.failed) {
		mcp_fail(k->call, MCP_E_INTERNAL, "the refusal is too long for an answer");
	} else {
		mcp_tool_done(k->call, text.data, data.data, true);
	}
}
