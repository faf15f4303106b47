/* approve_say.c - the words of a question to the owner, and of a refusal. */
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/shell_quote.h"
#include "base/visible.h"
#include "serve/approve_priv.h"

#define MAX_TEXT   (64UL * 1024)
#define MAX_QUOTED 200 /* bytes of a manifest's word in a question */

const struct choice_row CHOICES[CHOICE_COUNT] = {
	[CHOICE_DENY] = { "deny", "Deny" },
	[CHOICE_ONCE] = { "once", "Allow for this run" },
	[CHOICE_SESSION] = { "session",
	                     "Allow for this session: until the client or the server ends" },
	[CHOICE_ALWAYS] = { "always", "Always allow, while the skill's manifest stays as it is" },
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

static void question_text(struct buf *out, const struct skill *skill, const struct ssb_plan *plan,
                          const struct approved_for *asked)
{
	size_t number = 0;

	buf_adds(out, "The skill in ");
	quote(out, skill->dir);
	buf_adds(out, " asks for what you have not granted:\n");
	for (size_t i = 0; i < plan->n_refusals; i++) {
		const struct refusal *r = &plan->refusals[i];
		if (approve_askable(r) && approved_for_has(asked, r->option, r->value)) {
			buf_addf(out, "%zu. ", ++number);
			quote(out, r->what);
			buf_adds(out, ": ");
			quote(out, r->why);
			buf_addc(out, '\n');
		}
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

enum approval approve_put(struct mcp_call *c, const struct skill *skill,
                          const struct ssb_plan *plan, struct approved_for *given,
                          const struct approved_for *asked)
{
	auto_buf text, params, state;
	char key[APPROVE_KEY];
	struct json j;

	buf_init(&text, MAX_TEXT);
	buf_init(&params, MAX_TEXT);
	buf_init(&state, MAX_TEXT);
	question_text(&text, skill, plan, asked);
	json_init(&j, &params, false);
	json_open(&j, '{');
	json_kstr(&j, "message", text.failed ? "The skill asks for more." : text.data);
	json_key(&j, "requestedSchema");
	question_schema(&j);
	json_close(&j, '}');
	given->rounds++;
	approve_state(&state, plan, given, asked);
	if (params.failed || state.failed) {
		mcp_fail(c, MCP_E_INTERNAL, "the question is too long");
		return APPROVAL_DENIED;
	}
	approve_key(given->rounds, key);
	mcp_ask(c, key, "elicitation/create", params.data);
	mcp_wait(c, state.data);
	return APPROVAL_WAIT;
}

/* ---- the refusal --------------------------------------------------------- */

static void need_json(struct json *j, const struct refusal *r)
{
	auto_buf grant;

	buf_init(&grant, MAX_TEXT);
	json_open(j, '{');
	json_kstr(j, "what", r->what);
	json_kstr(j, "why", r->why);
	json_kstr(j, "where", r->where);
	json_kstr(j, "fix", r->remedy);
	if (approve_askable(r)) {
		buf_addf(&grant, "--%s %s", approved_option_name(r->option), r->value);
	}
	json_kstr(j, "grant", grant.len > 0 ? grant.data : NULL);
	json_close(j, '}');
}

static void refuse_text(struct buf *out, const struct ssb_plan *plan, const char *why,
                        const char *command)
{
	buf_addf(out, "approval_required: %s. Nothing was run.\n", why);
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

enum approval approve_refuse(const struct serve *s, struct mcp_call *c, const struct skill *skill,
                             const struct ssb_plan *plan, bool can_approve, const char *why)
{
	auto_buf text, data, command;
	struct json j;

	buf_init(&text, 4 * MAX_TEXT);
	buf_init(&data, 16 * MAX_TEXT);
	buf_init(&command, MAX_TEXT);
	if (can_approve) {
		approve_command(&command, s, skill);
	}
	refuse_text(&text, plan, why, can_approve ? command.data : NULL);
	json_init(&j, &data, false);
	json_open(&j, '{');
	json_key(&j, "error");
	json_open(&j, '{');
	json_kstr(&j, "code", "approval_required");
	json_kstr(&j, "message", why);
	json_kstr(&j, "command", can_approve ? command.data : NULL);
	json_key(&j, "needs");
	json_open(&j, '[');
	for (size_t i = 0; i < plan->n_refusals; i++) {
		need_json(&j, &plan->refusals[i]);
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
