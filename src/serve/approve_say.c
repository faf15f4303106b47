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
#define MAX_QUOTED  200 /* bytes of a manifest's word in a question */
#define MAX_CHANGES 24  /* lines of what it asks for more, in the same */
#define MAX_CHANGED 12  /* files that changed, in the same */
#define MAX_DIFF    (16UL << 20)

const struct choice_row CHOICES[CHOICE_COUNT] = {
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

static void quote(struct buf *out, const char *text)
{
	size_t len = strlen(text);

	visible_bytes(out, text, len < MAX_QUOTED ? len : MAX_QUOTED, false);
	buf_adds(out, len > MAX_QUOTED ? "..." : "");
}

/* Line by line behind a bar: there are names of its files in them. False: not all of it. */
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

/* What it asks for stands in the question again; however much that is, it hides no file. */
void approve_changes(struct buf *out, const struct consent_found *f, const struct ssb_plan *plan)
{
	AUTO(diff_done) struct diff d = { 0 };
	auto_buf asks, files;

	buf_init(&asks, MAX_DIFF);
	buf_init(&files, MAX_DIFF);
	if (f->state != CONSENT_CHANGED || diff_make(&f->lock, &f->now, plan, &d) != 0) {
		return;
	}
	diff_asks(&asks, &d, false);
	diff_files(&files, &d, false, MAX_CHANGED);
	bool all = put_barred(out, &asks, MAX_CHANGES) && !asks.failed;
	all = put_barred(out, &files, SIZE_MAX) && !files.failed && all && d.n_files <= MAX_CHANGED;
	buf_adds(out, all ? "" : "There is more: skillsandbox diff --all DIR.\n");
}

static void put_changes(struct buf *out, const struct approve_case *k)
{
	if (k->looked->found.state == CONSENT_CHANGED && k->looked->changes != NULL) {
		buf_adds(out, k->looked->changes);
	}
}

/* All that it could do, in words, as at a terminal: what is dangerous is never left out. */
static void put_abilities(struct buf *out, const struct approve_case *k)
{
	const struct string_list *without = &k->looked->found.lock.declined;
	AUTO(abilities_done) struct abilities a = { 0 };

	if (k->looked->found.state == CONSENT_HOLDS) {
		return; /* that was agreed to */
	}
	if (abilities_of(k->plan, &a) != 0) {
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
		buf_adds(out, "What is marked with ! it gets by your word alone.\n");
	}
}

static const char *title(const struct approve_case *k)
{
	const enum consent state = k->looked->found.state;

	return !k->word                   ? "A skill asks for what you have not granted."
	       : state == CONSENT_CHANGED ? "A skill is not any more what you approved."
	       : state == CONSENT_OVER    ? "Your approval of a skill is over."
	                                  : "You have not approved this skill.";
}

static void question_text(struct buf *out, const struct approve_case *k,
                          const struct approved_for *asked)
{
	const struct ssb_plan *plan = k->plan;
	size_t number = 0;

	buf_addf(out, "%s Its directory and its words stand behind a bar:\n| ", title(k));
	quote(out, k->skill->dir);
	buf_addc(out, '\n');
	put_changes(out, k);
	buf_adds(out, k->looked->large ? SNAPSHOT_TOO_LARGE "\n" : "");
	put_abilities(out, k);
	for (size_t i = 0; i < plan->n_refusals; i++) {
		const struct refusal *r = &plan->refusals[i];
		if (approve_askable(r) && approved_for_has(asked, r->option, r->value)) {
			buf_addf(out, "%zu. ", ++number);
			quote(out, r->why);
			buf_adds(out, "\n| ");
			quote(out, r->what);
			buf_addc(out, '\n');
		}
	}
	if (number < plan->n_refusals) {
		buf_addf(out, "It asks for %zu more, about which you are asked next.\n",
		         plan->n_refusals - number);
	}
	buf_adds(out, "Nothing of it is allowed unless you say so.");
}

static void question_schema(struct json *j)
{
	json_open(j, '{');
	json_kstr(j, "type", "object");
	json_key(j, "properties");
	json_open(j, '{');
	json_key(j, "decision");
	json_open(j, '{');
	json_kstr(j, "type", "string");
	json_kstr(j, "title", "Allow it?");
	json_key(j, "enum");
	json_open(j, '[');
	for (int i = 0; i < CHOICE_COUNT; i++) {
		json_str(j, CHOICES[i].name);
	}
	json_close(j, ']');
	json_key(j, "enumNames");
	json_open(j, '[');
	for (int i = 0; i < CHOICE_COUNT; i++) {
		json_str(j, CHOICES[i].title);
	}
	json_close(j, ']');
	json_kstr(j, "default", CHOICES[CHOICE_DENY].name);
	json_close(j, '}');
	json_close(j, '}');
	json_key(j, "required");
	json_open(j, '[');
	json_str(j, "decision");
	json_close(j, ']');
	json_close(j, '}');
}

enum approval approve_put(const struct serve *s, const struct approve_case *k,
                          struct approved_for *given, const struct approved_for *asked)
{
	struct mcp_call *c = k->call;
	auto_buf text, params, state;
	char key[APPROVE_KEY];
	struct json j;

	buf_init(&text, MAX_TEXT);
	buf_init(&params, 8 * MAX_TEXT);
	buf_init(&state, MAX_TEXT);
	question_text(&text, k, asked);
	json_init(&j, &params, false);
	json_open(&j, '{');
	json_kstr(&j, "message", text.failed ? "" : text.data);
	json_key(&j, "requestedSchema");
	question_schema(&j);
	json_close(&j, '}');
	given->rounds++;
	approve_state(&state, k, given, asked);
	if (text.failed || params.failed || state.failed) {
		/* Half a question would be agreed to unseen. */
		return approve_refuse(s, k, true, "the skill asks for more than a question holds");
	}
	approve_key(given->rounds, key);
	mcp_ask(c, key, "elicitation/create", params.data);
	mcp_wait(c, state.data);
	return APPROVAL_WAIT;
}

/* ---- the refusal --------------------------------------------------------- */

static void needs_view_json(struct json *j, const struct refusal *r)
{
	auto_buf grant;

	buf_init(&grant, MAX_TEXT);
	json_open(j, '{');
	json_kstr(j, "what", r->what);
	json_kstr(j, "why", r->why);
	json_kstr(j, "where", r->where);
	json_kstr(j, "fix", r->remedy);
	if (approve_askable(r)) {
		buf_addf(&grant, "--%s %s", lock_option_name(r->option), r->value);
	}
	json_kstr(j, "grant", grant.len > 0 ? grant.data : NULL);
	json_close(j, '}');
}

static void refuse_text(struct buf *out, const struct approve_case *k, const char *why,
                        const char *command)
{
	const struct ssb_plan *plan = k->plan;

	buf_addf(out, "approval_required: %s. Nothing was run.\n", why);
	put_changes(out, k);
	for (size_t i = 0; i < plan->n_refusals; i++) {
		buf_adds(out, "- ");
		quote(out, plan->refusals[i].what);
		buf_adds(out, ": ");
		quote(out, plan->refusals[i].why);
		buf_adds(out, "; ");
		visible_text(out, plan->refusals[i].remedy, false);
		buf_addc(out, '\n');
	}
	if (command != NULL) {
		buf_adds(out, "The owner approves it with: ");
		visible_text(out, command, false);
		buf_addc(out, '\n');
	}
}

/* By the policy file that refused: another one may ask for something else. */
static void approve_command(struct buf *out, const struct serve *s, const struct skill *skill)
{
	const char *named = s->opt->owner != NULL ? s->opt->owner->policy_file : NULL;
	auto_free char *real = named != NULL && named[0] != '\0' ? realpath(named, NULL) : NULL;

	buf_adds(out, "skillsandbox approve ");
	if (named != NULL) {
		buf_adds(out, "--policy ");
		shell_quote(out, real != NULL ? real : named);
		buf_addc(out, ' ');
	}
	shell_quote(out, skill->dir);
}

enum approval approve_refuse(const struct serve *s, const struct approve_case *k, bool can_approve,
                             const char *why)
{
	const struct ssb_plan *plan = k->plan;
	struct mcp_call *c = k->call;
	auto_buf text, data, command;
	struct json j;

	buf_init(&text, 4 * MAX_TEXT);
	buf_init(&data, 16 * MAX_TEXT);
	buf_init(&command, MAX_TEXT);
	if (can_approve) {
		approve_command(&command, s, k->skill);
	}
	refuse_text(&text, k, why, can_approve ? command.data : NULL);
	json_init(&j, &data, false);
	json_open(&j, '{');
	json_key(&j, "error");
	json_open(&j, '{');
	json_kstr(&j, "code", "approval_required");
	json_kstr(&j, "message", why);
	json_kstr(&j, "fix",
	          can_approve ? "the owner approves it with the command"
	                      : "the owner changes what it needs, or grants it");
	json_kstr(&j, "command", can_approve ? command.data : NULL);
	json_key(&j, "needs");
	json_open(&j, '[');
	for (size_t i = 0; i < plan->n_refusals; i++) {
		needs_view_json(&j, &plan->refusals[i]);
	}
	json_close(&j, ']');
	json_close(&j, '}');
	json_close(&j, '}');
	if (data.failed || text.failed || command.failed) {
		mcp_fail(c, MCP_E_INTERNAL, "the refusal is too long to be told");
		return APPROVAL_DENIED;
	}
	mcp_tool_done(c, text.data, data.data, true);
	return APPROVAL_DENIED;
}
