/* session_line.c - formats one line of a session's ledger for people. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/stamp.h"
#include "base/visible.h"
#include "cli/say.h"
#include "cli/session_view.h"
#include "report/render.h"

typedef void line_fn(struct buf *out, const struct line *l);

static void text_of(struct buf *out, const struct line *l, const char *name)
{
	render_text(out, line_get(l, name), "?");
}

/* Formats a number of dollars as money. */
static void money_of(struct buf *out, const struct line *l, const char *name)
{
	const struct json_node *n = line_get(l, name);
	char text[MONEY_TEXT];
	micros m = 0;

	if (json_is(n, JSON_NUMBER) && money_parse(n->str, &m, NULL)) {
		buf_adds(out, money_show(m, text));
	} else {
		buf_addc(out, '$');
		render_text(out, n, "?");
	}
}

static bool has_value(const struct line *l, const char *name)
{
	const struct json_node *n = line_get(l, name);

	return json_is(n, JSON_STRING) || json_is(n, JSON_NUMBER);
}

/* Appends `form` with the values of the line. "{name}" is replaced by the member `name`, and
 * "{$name}" by a member that is money. Text in "[ ]" is written only if the member that it
 * names is a string or a number. */
static void add_form(struct buf *out, const struct line *l, const char *form)
{
	for (; *form != '\0'; form++) {
		char name[32];
		if (*form != '[' && *form != '{') {
			buf_add(out, form, *form != ']');
			continue;
		}
		const char *member = strchr(form, '{') + 1;
		bool money = *member == '$';
		member += money;
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(member, "}"), member);
		if (*form == '{') {
			(money ? money_of : text_of)(out, l, name);
			form = strchr(form, '}');
		} else if (!has_value(l, name)) {
			form = strchr(form, ']');
		}
	}
}

static void add_reason(struct buf *out, const struct line *l, const char *between)
{
	const char *reason = line_text(l, "reason");

	if (reason != NULL && reason[0] != '\0') {
		buf_adds(out, between);
		text_of(out, l, "reason");
	}
}

/* Appends the reason if the act is log or block. Any harder act has a ledger line of its own with
 * the reason. */
static void mildly_because(struct buf *out, const struct line *l)
{
	enum session_act act = session_act_from(line_text(l, "act"));

	if (act == ACT_LOG || act == ACT_BLOCK) {
		add_reason(out, l, "; ");
	}
}

static void line_settled(struct buf *out, const struct line *l)
{
	buf_adds(out, line_true(l, "released")    ? " (released)"
	              : line_true(l, "timed_out") ? " (timed out)"
	              : line_true(l, "late")      ? " (late)"
	                                          : "");
	add_form(out, l, "; spent {$session_total_cost_usd}");
	mildly_because(out, l);
}

static void line_refused(struct buf *out, const struct line *l)
{
	add_reason(out, l, ": ");
}

static void line_reason(struct buf *out, const struct line *l)
{
	add_reason(out, l, "");
}

/* Appends the members of an object as "name 3, other 4". Returns the separator that must precede
 * further members. */
static const char *add_members(struct buf *out, const struct line *l, const char *name,
                               const char *between)
{
	const struct json_node *object = line_get(l, name);

	JSON_EACH (n, &l->doc, object) {
		buf_adds(out, between);
		visible_addf(out, "%s ", n->key != NULL ? n->key : "?");
		render_text(out, n, "?");
		between = ", ";
	}
	return between;
}

static void line_usage(struct buf *out, const struct line *l)
{
	(void)add_members(out, l, "violations", add_members(out, l, "used", ": "));
	mildly_because(out, l);
}

static void line_child(struct buf *out, const struct line *l)
{
	(void)add_members(out, l, "changed", ": ");
}

static void line_signature(struct buf *out, const struct line *l)
{
	const char *key = line_text(l, "key");

	visible_bytes(out, key != NULL ? key : "?", key != NULL ? strnlen(key, 16) : 1, false);
	buf_adds(out, "...");
}

static void line_other(struct buf *out, const struct line *l)
{
	visible_text(out, l->kind_name, false);
	add_reason(out, l, ": ");
}

static const struct kind {
	const char *word; /* NULL: lines of this kind are not in a ledger */
	enum say_colour colour;
	const char *form;
	line_fn *rest; /* appends what `form` cannot express; may be NULL */
} KINDS[EV_OTHER + 1] = {
	[EV_SESSION_CREATED] = { "STARTED", SAY_BOLD,
	                         "budget {$budget_limit}, agent {agent_id}[, in session {parent}]",
	                         NULL },
	[EV_ACTION_ALLOWED] = { "ALLOWED", SAY_PLAIN,
	                        "{action}, {$cost_usd} reserved as {reservation}", mildly_because },
	[EV_ACTION_BLOCKED] = { "REFUSED", SAY_RED, "{action}[, {$cost_usd}]", line_refused },
	[EV_ACTION_SETTLED] = { "SETTLED", SAY_PLAIN,
	                        "{action}, {$cost_usd} for reservation {reservation} of "
	                        "{$estimated_cost_usd}",
	                        line_settled },
	[EV_CHILD] = { "CHILD", SAY_PLAIN, "{child}, {event}", line_child },
	[EV_BUDGET_ALERT] = { "ALERT", SAY_YELLOW, "", line_reason },
	[EV_VIOLATION] = { "VIOLATION", SAY_RED,
	                   "{violation_type}, number {cumulative_count}[ (threshold {threshold})]"
	                   "[: {details}]",
	                   mildly_because },
	[EV_RUN_BEGUN] = { "RUN", SAY_PLAIN, "run {run} begins on {host}", mildly_because },
	[EV_RUN_ENDED] = { "RUN", SAY_PLAIN,
	                   "run {run}[ ({run_id})]: {end}, exit status {exit_code}", NULL },
	[EV_USAGE] = { "USED", SAY_PLAIN, "run {run}", line_usage },
	[EV_SESSION_PAUSED] = { "PAUSED", SAY_YELLOW, "", line_reason },
	[EV_SESSION_RESUMED] = { "RESUMED", SAY_GREEN, "", line_reason },
	[EV_SESSION_KILLED] = { "KILLED", SAY_RED, "", line_reason },
	[EV_SESSION_COMPLETED] = { "COMPLETED", SAY_GREEN, "", line_reason },
	[EV_SESSION_EXPIRED] = { "EXPIRED", SAY_RED, "", line_reason },
	[EV_NOTIFICATION] = { "MESSAGE", SAY_PLAIN,
	                      "{type} [{url}]: [{event} ]{status}[ {status_code}][, {error}]",
	                      NULL },
	[EV_SIGNATURE] = { "SIGNED", SAY_PLAIN, "with the key ", line_signature },
};

void session_view_line(struct buf *out, const struct line *l)
{
	static const struct kind other = { "OTHER", SAY_PLAIN, "", line_other };
	const struct kind *k = KINDS[l->kind].word != NULL ? &KINDS[l->kind] : &other;
	char word[16];
	int64_t us = 0;

	/* Show the time in UTC, as in the line itself, because people in several time zones read
	 * the same ledger. */
	buf_addf(out, "  %4" PRId64 " %.12s ", l->seq,
	         stamp_parse(l->time, &us) ? l->time + 11 : "--:--:--.---");
	snprintf(word, sizeof(word), "%-9s", k->word);
	say_colour(out, STDOUT_FILENO, k->colour, word);
	buf_addc(out, ' ');
	add_form(out, l, k->form);
	if (k->rest != NULL) {
		k->rest(out, l);
	}
	buf_addc(out, '\n');
}
