/* herald_body.c - writes one event in the form of each kind of receiver. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/utf8.h"
#include "session/herald.h"

/* Limits in bytes. Receivers count characters, and a text never has more characters than bytes. */
#define SLACK_TEXT    3000 /* for a section, and for the whole message */
#define SLACK_FIELD   2000
#define PAGER_SUMMARY 1024
#define PAGER_SOURCE  255
#define SHORT_ID      12

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */
#define ELLIPSIS    "\xe2\x80\xa6"

static const struct word {
	const char *event;
	const char *title;
	const char *severity;
} WORDS[] = {
	{ "session_killed", "Session killed", "critical" },
	{ "session_paused", "Session paused", "error" },
	{ "session_expired", "Session expired", "error" },
	{ "budget_alert", "Budget alert", "warning" },
	{ NULL, "Session event", "warning" }, /* any other event */
};

/* The event after parsing. */
struct herald_event {
	struct json_doc doc;
	const struct json_node *top;
	const struct word *word;
};

static const struct json_node *event_member(const struct herald_event *e, const char *name)
{
	return json_member(&e->doc, e->top, name);
}

static const char *text_of(const struct herald_event *e, const char *name)
{
	return json_string(event_member(e, name), "");
}

static void event_done(struct herald_event *e)
{
	json_doc_done(&e->doc);
}

static int event_read(struct herald_event *e, const char *body, struct ssb_error *err)
{
	const char *why = NULL;

	if (json_read(&e->doc, body, strlen(body), &why) != 0) {
		return ssb_fail(err, SSB_E_USAGE, 0, "notify", "the event is not JSON: %s", why);
	}
	e->top = json_top(&e->doc);
	if (!json_is(e->top, JSON_OBJECT)) {
		return ssb_fail(err, SSB_E_USAGE, 0, "notify", "the event is not a JSON object");
	}
	e->word = WORDS;
	while (e->word->event != NULL && strcmp(e->word->event, text_of(e, "event")) != 0) {
		e->word++;
	}
	return 0;
}

/* ---- text --------------------------------------------------------------- */

/* Returns true for a character that is invisible, or that changes how other characters are
 * shown. */
static bool is_unseen(uint32_t cp)
{
	return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0x061c || cp == 0x200e ||
	       cp == 0x200f || (cp >= 0x2028 && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x2069) ||
	       cp == 0xfeff || (cp >= 0xe0000 && cp <= 0xe007f);
}

static const char *slack_entity(uint32_t cp)
{
	return cp == '&' ? "&amp;" : cp == '<' ? "&lt;" : cp == '>' ? "&gt;" : NULL;
}

/* Appends text, but only until `out` has `most` bytes. If the text is cut, it ends with an
 * ellipsis. It is never cut within a character or an entity. */
static void add_text(struct buf *out, const char *s, size_t len, bool slack, size_t most)
{
	size_t room = sizeof(ELLIPSIS) - 1;

	for (size_t i = 0; i < len;) {
		uint32_t cp = 0;
		size_t n = utf8_decode(s + i, len - i, &cp);
		const char *as = NULL;
		if (n == 0 || is_unseen(cp)) {
			as = n != 0 && (cp == '\n' || cp == '\t') ? " " : REPLACEMENT;
		} else if (slack) {
			as = slack_entity(cp);
		}
		size_t size = as != NULL ? strlen(as) : n;
		if (out->len + size + room > most) {
			buf_adds(out, ELLIPSIS);
			return;
		}
		buf_add(out, as != NULL ? as : s + i, size);
		i += n != 0 ? n : 1;
	}
}

static void add_str(struct buf *out, const char *s, bool slack, size_t most)
{
	add_text(out, s, strlen(s), slack, most);
}

/* ---- plain JSON --------------------------------------------------------- */

/* Copies the value and cleans its texts. The recursion is limited, because the JSON reader limits
 * the depth. */
static void copy_node(struct json *j, const struct json_doc *doc, const struct json_node *n)
{
	auto_buf text = BUF(MAX_NOTIFY_BODY);

	if (n->key != NULL) {
		add_str(&text, n->key, false, MAX_NOTIFY_BODY);
		json_key(j, text.data != NULL ? text.data : "");
		buf_reset(&text);
	}
	switch (n->type) {
	case JSON_OBJECT:
	case JSON_ARRAY:
		json_open(j, n->type == JSON_OBJECT ? '{' : '[');
		JSON_EACH (c, doc, n) {
			copy_node(j, doc, c);
		}
		json_close(j, n->type == JSON_OBJECT ? '}' : ']');
		break;
	case JSON_STRING:
		add_text(&text, n->str, n->len, false, MAX_NOTIFY_BODY);
		json_strn(j, text.data != NULL ? text.data : "", text.len);
		break;
	case JSON_NUMBER:
		json_raw(j, n->str, n->len);
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		json_bool(j, n->type == JSON_TRUE);
		break;
	case JSON_NULL:
		json_null(j);
		break;
	}
	j->out->failed = j->out->failed || text.failed;
}

static int body_json(const struct outbox_item *item, const struct herald_event *e, struct json *j,
                     struct ssb_error *err)
{
	(void)item;
	(void)err;
	copy_node(j, &e->doc, e->top);
	return 0;
}

/* ---- Slack -------------------------------------------------------------- */

/* Writes a text for Slack. `verbatim` tells Slack not to turn parts of foreign text into links or
 * mentions. */
static void slack_text(struct json *j, const struct buf *text)
{
	json_open(j, '{');
	json_kstr(j, "type", "mrkdwn");
	json_key(j, "text");
	json_strn(j, text->data, text->len);
	json_kbool(j, "verbatim", true);
	json_close(j, '}');
	j->out->failed = j->out->failed || text->failed;
}

static void slack_field(struct json *j, const char *label, const char *value)
{
	auto_buf text = BUF(SLACK_FIELD);

	buf_addf(&text, "*%s:*\n", label);
	add_str(&text, value, true, SLACK_FIELD);
	slack_text(j, &text);
}

static void slack_section(struct json *j, const struct buf *text)
{
	json_open(j, '{');
	json_kstr(j, "type", "section");
	json_key(j, "text");
	slack_text(j, text);
	json_close(j, '}');
}

static void slack_header(struct json *j, const struct herald_event *e)
{
	json_open(j, '{');
	json_kstr(j, "type", "header");
	json_kopen(j, "text", '{');
	json_kstr(j, "type", "plain_text");
	json_kstr(j, "text", e->word->title);
	json_close(j, '}');
	json_close(j, '}');
}

static void short_id(const char *id, char ret[SHORT_ID + sizeof(ELLIPSIS)])
{
	snprintf(ret, SHORT_ID + sizeof(ELLIPSIS), "%.*s%s", SHORT_ID, id,
	         strlen(id) > SHORT_ID ? ELLIPSIS : "");
}

static void slack_facts(struct json *j, const struct herald_event *e)
{
	const struct json_node *cost = event_member(e, "session_cost_usd");
	char id[SHORT_ID + sizeof(ELLIPSIS)];
	char dollars[64];
	char actions[32];

	short_id(text_of(e, "session_id"), id);
	snprintf(dollars, sizeof(dollars), "$%.4f",
	         json_is(cost, JSON_NUMBER) ? strtod(cost->str, NULL) : 0.0);
	snprintf(actions, sizeof(actions), "%" PRId64,
	         json_integer(event_member(e, "action_count"), 0));
	json_open(j, '{');
	json_kstr(j, "type", "section");
	json_kopen(j, "fields", '[');
	slack_field(j, "Agent", text_of(e, "agent_id"));
	slack_field(j, "Session", id);
	slack_field(j, "Cost", dollars);
	slack_field(j, "Actions", actions);
	json_close(j, ']');
	json_close(j, '}');
}

static void slack_violations(struct json *j, const struct herald_event *e)
{
	const struct json_node *counts = event_member(e, "violation_counts");
	const struct json_node *first = json_first(&e->doc, counts);
	auto_buf list = BUF(MAX_NOTIFY_BODY);
	auto_buf text = BUF(SLACK_TEXT);

	for (const struct json_node *n = first; n != NULL; n = json_next(&e->doc, n)) {
		buf_addf(&list, "%s%s: %" PRId64, n != first ? ", " : "",
		         n->key != NULL ? n->key : "", json_integer(n, 0));
	}
	buf_adds(&text, "*Violations:*\n");
	add_str(&text, first != NULL && !list.failed ? list.data : "none", true, SLACK_TEXT);
	slack_section(j, &text);
	j->out->failed = j->out->failed || list.failed;
}

static int body_slack(const struct outbox_item *item, const struct herald_event *e, struct json *j,
                      struct ssb_error *err)
{
	auto_buf text = BUF(SLACK_TEXT);

	(void)item;
	(void)err;
	buf_addf(&text, "%s: ", e->word->title);
	add_str(&text, text_of(e, "agent_id"), true, SLACK_TEXT / 2);
	buf_adds(&text, ": ");
	add_str(&text, text_of(e, "reason"), true, SLACK_TEXT);
	json_open(j, '{');
	json_key(j, "text");
	json_strn(j, text.data, text.len);
	json_kopen(j, "blocks", '[');
	slack_header(j, e);
	slack_facts(j, e);
	buf_reset(&text);
	buf_adds(&text, "*Reason:*\n");
	add_str(&text, text_of(e, "reason"), true, SLACK_TEXT);
	slack_section(j, &text);
	slack_violations(j, e);
	json_close(j, ']');
	json_close(j, '}');
	return 0;
}

/* ---- PagerDuty ---------------------------------------------------------- */

static void clean_kstr(struct json *j, const char *key, const char *s, size_t most)
{
	auto_buf text = BUF(most);

	add_str(&text, s, false, most);
	json_key(j, key);
	json_strn(j, text.data != NULL ? text.data : "", text.len);
}

static void pager_payload(struct json *j, const struct herald_event *e)
{
	const char *agent = text_of(e, "agent_id");
	auto_buf summary = BUF(MAX_NOTIFY_BODY);

	buf_addf(&summary, "%s: agent %s, session %s: %s", e->word->title, agent,
	         text_of(e, "session_id"), text_of(e, "reason"));
	json_open(j, '{');
	clean_kstr(j, "summary", summary.failed ? e->word->title : summary.data, PAGER_SUMMARY);
	clean_kstr(j, "source", agent[0] != '\0' ? agent : "skillsandbox", PAGER_SOURCE);
	json_kstr(j, "severity", e->word->severity);
	clean_kstr(j, "timestamp", text_of(e, "timestamp"), PAGER_SOURCE);
	json_kstr(j, "component", "skillsandbox");
	if (text_of(e, "code")[0] != '\0') {
		clean_kstr(j, "class", text_of(e, "code"), PAGER_SOURCE);
	}
	json_key(j, "custom_details");
	copy_node(j, &e->doc, e->top);
	json_close(j, '}');
}

static int body_pagerduty(const struct outbox_item *item, const struct herald_event *e,
                          struct json *j, struct ssb_error *err)
{
	if (item->secret == NULL || item->secret[0] == '\0') {
		return ssb_fail(err, SSB_E_USAGE, 0, "notify", "the message has no routing key");
	}
	json_open(j, '{');
	clean_kstr(j, "routing_key", item->secret, PAGER_SOURCE);
	json_kstr(j, "event_action", "trigger");
	/* All messages of one session belong to one incident. */
	clean_kstr(j, "dedup_key", text_of(e, "session_id"), PAGER_SOURCE);
	json_key(j, "payload");
	pager_payload(j, e);
	json_close(j, '}');
	return 0;
}

int herald_body(const struct outbox_item *item, struct buf *out, struct ssb_error *err)
{
	static int (*const BODIES[])(const struct outbox_item *, const struct herald_event *,
	                             struct json *, struct ssb_error *) = {
		[NOTIFY_SLACK] = body_slack,
		[NOTIFY_JSON] = body_json,
		[NOTIFY_PAGERDUTY] = body_pagerduty,
	};
	AUTO(event_done) struct herald_event e = { 0 };
	struct json j = JSON_TO(out, false);

	assert(item->body != NULL);
	if ((size_t)item->kind >= ARRAY_LEN(BODIES)) {
		return ssb_fail(err, SSB_E_USAGE, 0, "notify", "no such kind of receiver: %d",
		                (int)item->kind);
	}
	if (event_read(&e, item->body, err) != 0) {
		return -1;
	}
	if (BODIES[item->kind](item, &e, &j, err) != 0) {
		return -1;
	}
	if (out->failed) {
		return ssb_fail(err, SSB_E_USAGE, 0, "notify", "the event is too large");
	}
	return 0;
}
