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

static void add_reason(struct buf *out, const struct line *l, const char *between)
{
	const char *reason = line_text(l, "reason");

	if (reason != NULL && reason[0] != '\0') {
		buf_adds(out, between);
		text_of(out, l, "reason");
	}
}

/* Appends the reason of a mild act (log or block). Harder acts have their own line in the ledger.
 */
static void mildly_because(struct buf *out, const struct line *l)
{
	enum session_act act = session_act_from(line_text(l, "act"));

	if (act == ACT_LOG || act == ACT_BLOCK) {
		add_reason(out, l, "; ");
	}
}

static void line_created(struct buf *out, const struct line *l)
{
	buf_adds(out, "budget ");
	money_of(out, l, "budget_limit");
	buf_adds(out, ", agent ");
	text_of(out, l, "agent_id");
	if (json_is(line_get(l, "parent"), JSON_STRING)) {
		buf_adds(out, ", in session ");
		text_of(out, l, "parent");
	}
}

static void line_allowed(struct buf *out, const struct line *l)
{
	text_of(out, l, "action");
	buf_adds(out, ", ");
	money_of(out, l, "cost_usd");
	buf_adds(out, " reserved as ");
	text_of(out, l, "reservation");
	mildly_because(out, l);
}

static void line_blocked(struct buf *out, const struct line *l)
{
	text_of(out, l, "action");
	if (line_get(l, "cost_usd") != NULL) {
		buf_adds(out, ", ");
		money_of(out, l, "cost_usd");
	}
	add_reason(out, l, ": ");
}

static void line_settled(struct buf *out, const struct line *l)
{
	text_of(out, l, "action");
	buf_adds(out, ", ");
	money_of(out, l, "cost_usd");
	buf_adds(out, " for reservation ");
	text_of(out, l, "reservation");
	buf_adds(out, " of ");
	money_of(out, l, "estimated_cost_usd");
	buf_adds(out, line_true(l, "released")    ? " (released)"
	              : line_true(l, "timed_out") ? " (timed out)"
	              : line_true(l, "late")      ? " (late)"
	                                          : "");
	buf_adds(out, "; spent ");
	money_of(out, l, "session_total_cost_usd");
	mildly_because(out, l);
}

static void line_violation(struct buf *out, const struct line *l)
{
	text_of(out, l, "violation_type");
	buf_adds(out, ", number ");
	text_of(out, l, "cumulative_count");
	if (json_is(line_get(l, "threshold"), JSON_NUMBER)) {
		buf_adds(out, " (threshold ");
		text_of(out, l, "threshold");
		buf_addc(out, ')');
	}
	if (json_is(line_get(l, "details"), JSON_STRING)) {
		buf_adds(out, ": ");
		text_of(out, l, "details");
	}
	mildly_because(out, l);
}

static void line_reason(struct buf *out, const struct line *l)
{
	add_reason(out, l, "");
}

static void line_begun(struct buf *out, const struct line *l)
{
	buf_adds(out, "run ");
	text_of(out, l, "run");
	buf_adds(out, " begins on ");
	text_of(out, l, "host");
	mildly_because(out, l);
}

static void line_ended(struct buf *out, const struct line *l)
{
	buf_adds(out, "run ");
	text_of(out, l, "run");
	if (json_is(line_get(l, "run_id"), JSON_STRING)) {
		buf_adds(out, " (");
		text_of(out, l, "run_id");
		buf_addc(out, ')');
	}
	buf_adds(out, ": ");
	text_of(out, l, "end");
	buf_adds(out, ", exit status ");
	text_of(out, l, "exit_code");
}

/* Appends the members of an object as "name 3, other 4". Returns the separator for further members.
 */
static const char *add_members(struct buf *out, const struct line *l, const char *name,
                               const char *between)
{
	const struct json_node *object = line_get(l, name);

	for (const struct json_node *n = json_first(&l->doc, object); n != NULL;
	     n = json_next(&l->doc, n)) {
		buf_adds(out, between);
		visible_text(out, n->key != NULL ? n->key : "?", false);
		buf_addc(out, ' ');
		render_text(out, n, "?");
		between = ", ";
	}
	return between;
}

static void line_usage(struct buf *out, const struct line *l)
{
	buf_adds(out, "run ");
	text_of(out, l, "run");
	(void)add_members(out, l, "violations", add_members(out, l, "used", ": "));
	mildly_because(out, l);
}

static void line_child(struct buf *out, const struct line *l)
{
	text_of(out, l, "child");
	buf_adds(out, ", ");
	text_of(out, l, "event");
	(void)add_members(out, l, "changed", ": ");
}

static void line_notification(struct buf *out, const struct line *l)
{
	text_of(out, l, "type");
	buf_addc(out, ' ');
	render_text(out, line_get(l, "url"), "");
	buf_adds(out, ": ");
	if (line_get(l, "event") != NULL) {
		text_of(out, l, "event");
		buf_addc(out, ' ');
	}
	text_of(out, l, "status");
	if (line_get(l, "status_code") != NULL) {
		buf_addc(out, ' ');
		text_of(out, l, "status_code");
	}
	if (line_get(l, "error") != NULL) {
		buf_adds(out, ", ");
		text_of(out, l, "error");
	}
}

static void line_signature(struct buf *out, const struct line *l)
{
	const char *key = line_text(l, "key");

	buf_adds(out, "with the key ");
	visible_bytes(out, key != NULL ? key : "?", key != NULL ? strnlen(key, 16) : 1, false);
	buf_adds(out, "...");
}

static void line_other(struct buf *out, const struct line *l)
{
	visible_text(out, l->kind_name, false);
	add_reason(out, l, ": ");
}

static const struct kind {
	const char *word; /* NULL: not a line of a ledger */
	enum say_colour colour;
	line_fn *fn;
} KINDS[EV_OTHER + 1] = {
	[EV_SESSION_CREATED] = { "STARTED", SAY_BOLD, line_created },
	[EV_ACTION_ALLOWED] = { "ALLOWED", SAY_PLAIN, line_allowed },
	[EV_ACTION_BLOCKED] = { "REFUSED", SAY_RED, line_blocked },
	[EV_ACTION_SETTLED] = { "SETTLED", SAY_PLAIN, line_settled },
	[EV_CHILD] = { "CHILD", SAY_PLAIN, line_child },
	[EV_BUDGET_ALERT] = { "ALERT", SAY_YELLOW, line_reason },
	[EV_VIOLATION] = { "VIOLATION", SAY_RED, line_violation },
	[EV_RUN_BEGUN] = { "RUN", SAY_PLAIN, line_begun },
	[EV_RUN_ENDED] = { "RUN", SAY_PLAIN, line_ended },
	[EV_USAGE] = { "USED", SAY_PLAIN, line_usage },
	[EV_SESSION_PAUSED] = { "PAUSED", SAY_YELLOW, line_reason },
	[EV_SESSION_RESUMED] = { "RESUMED", SAY_GREEN, line_reason },
	[EV_SESSION_KILLED] = { "KILLED", SAY_RED, line_reason },
	[EV_SESSION_COMPLETED] = { "COMPLETED", SAY_GREEN, line_reason },
	[EV_SESSION_EXPIRED] = { "EXPIRED", SAY_RED, line_reason },
	[EV_NOTIFICATION] = { "MESSAGE", SAY_PLAIN, line_notification },
	[EV_SIGNATURE] = { "SIGNED", SAY_PLAIN, line_signature },
};

void session_view_line(struct buf *out, const struct line *l)
{
	static const struct kind other = { "OTHER", SAY_PLAIN, line_other };
	const struct kind *k = KINDS[l->kind].word != NULL ? &KINDS[l->kind] : &other;
	char word[16];
	int64_t us = 0;

	/* Shows UTC, as the line itself does, because people in several time zones read the same
	 * ledger. */
	buf_addf(out, "  %4" PRId64 " %.12s ", l->seq,
	         stamp_parse(l->time, &us) ? l->time + 11 : "--:--:--.---");
	snprintf(word, sizeof(word), "%-9s", k->word);
	say_colour(out, STDOUT_FILENO, k->colour, word);
	buf_addc(out, ' ');
	k->fn(out, l);
	buf_addc(out, '\n');
}
