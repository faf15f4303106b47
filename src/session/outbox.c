/* outbox.c - messages to the owner. A message is written in the transaction that it reports. Each
 * message is taken by one herald at a time. */
#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/json_read.h"
#include "session/store.h"

#define BODY_BYTES ((size_t)64 * 1024)
#define TAKE_TRIES 16

/* ---- writing ------------------------------------------------------------- */

/* Writes the event as JSON. herald_body() makes the form for each receiver from it. */
static int put_event(struct call *c, const struct row *row, enum event_kind event,
                     const char *reason, struct buf *out, struct ssb_error *err)
{
	struct json j = JSON_TO(out, false);
	struct stamp stamp = STAMP_NONE;

	json_open(&j, '{');
	json_kstr(&j, "event", RECORD_KINDS[event]);
	json_kstr(&j, "session_id", row->s.id);
	json_kstr(&j, "agent_id", row->s.agent);
	json_kstr(&j, "state", session_state_name(row->s.state));
	json_kstr(&j, "reason", reason);
	json_kstr(&j, "timestamp", stamp_text_us(&stamp, c->now));
	json_kmillionths(&j, "session_cost_usd", row->s.spent);
	json_kmillionths(&j, "budget_usd", row->s.policy->max_cost_per_session);
	json_kuint(&j, "action_count", row->s.actions);
	json_key(&j, "violation_counts");
	if (entry_counts(c->ss, row->n, &j, err) != 0) {
		return -1;
	}
	json_key(&j, "snapshot");
	entry_snapshot(&j, &row->s);
	json_close(&j, '}');
	return out->failed ? ssb_fail(err, SSB_E_LIMIT, 0, "outbox", "the message is too long") : 0;
}

int outbox_put(struct call *c, struct row *row, enum event_kind event, const char *reason,
               struct ssb_error *err)
{
	auto_buf body = BUF(BODY_BYTES);

	assert(c->open);
	if (row->s.policy == NULL || row->s.policy->n_notify == 0) {
		return 0;
	}
	if (put_event(c, row, event, reason, &body, err) != 0) {
		return -1;
	}
	for (size_t i = 0; i < row->s.policy->n_notify; i++) {
		const struct session_notify *to = &row->s.policy->notify[i];
		if (db_run(c->ss->db,
		           "INSERT INTO outbox (session, kind, url, secret, body, tries, due,"
		           " leased, state) VALUES ($1, $2, $3, $4, $5, 0, $6, 0, 0)",
		           DB_ARGS(DB_I(row->n), DB_I(to->kind),
		                   DB_T(to->url != NULL ? to->url : ""),
		                   DB_T(to->secret != NULL ? to->secret : ""),
		                   DB_TN(body.data, body.len), DB_I(c->now)),
		           NULL, NULL, err) != 0) {
			return -1;
		}
		c->notify = true;
	}
	return 0;
}

/* ---- taking -------------------------------------------------------------- */

struct taken {
	struct outbox_item item;
	int64_t leased;
	bool found;
	bool bad;
};

static char *copy_text(const struct db_value *v)
{
	return v->type == DB_TEXT ? strndup(v->s, v->n) : NULL;
}

static int take_row(void *arg, const struct db_value *v, size_t n)
{
	struct taken *t = arg;
	int64_t kind = 0;
	int64_t tries = 0;

	t->found = true;
	if (n != 8 || !store_number(&v[0], 1, INT64_MAX, &t->item.n) ||
	    !store_text(&v[1], t->item.session, sizeof(t->item.session)) ||
	    !store_number(&v[2], NOTIFY_SLACK, NOTIFY_PAGERDUTY, &kind) ||
	    !store_number(&v[6], 0, UINT32_MAX, &tries) ||
	    !store_number(&v[7], 0, INT64_MAX, &t->leased)) {
		t->bad = true;
		return -1;
	}
	t->item.kind = (enum notify_kind)kind;
	t->item.tries = (unsigned)tries;
	t->item.url = copy_text(&v[3]);
	t->item.secret = v[4].n > 0 ? copy_text(&v[4]) : NULL;
	t->item.body = copy_text(&v[5]);
	t->bad = t->item.url == NULL || t->item.body == NULL ||
	         (v[4].n > 0 && t->item.secret == NULL);
	return t->bad ? -1 : 0;
}

void outbox_item_done(struct outbox_item *item)
{
	free(item->url);
	free(item->secret);
	free(item->body);
	item->url = item->secret = item->body = NULL;
}

static void taken_done(struct taken *t)
{
	outbox_item_done(&t->item);
}

/* Tries to take the next message. Returns 1 if this process got it, 0 if another process took it, 2
 * if there is no message. */
static int take_one(struct session_store *ss, int64_t now, uint64_t lease_ms, void *arg,
                    struct ssb_error *err)
{
	struct taken *t = arg;

	if (db_run(ss->db,
	           "SELECT o.n, s.id, o.kind, o.url, o.secret, o.body, o.tries, o.leased"
	           " FROM outbox o JOIN sessions s ON s.n = o.session WHERE o.state = 0"
	           " AND o.due <= $1 AND o.leased <= $1 ORDER BY o.due LIMIT 1",
	           DB_ARGS(DB_I(now)), take_row, t, err) != 0 ||
	    t->bad) {
		return store_damaged(err, "a message in the outbox is not valid");
	}
	if (!t->found) {
		return 2;
	}
	if (db_run(ss->db,
	           "UPDATE outbox SET leased = $1 WHERE n = $2 AND leased = $3 AND state = 0",
	           DB_ARGS(DB_I(now + (int64_t)lease_ms * 1000), DB_I(t->item.n), DB_I(t->leased)),
	           NULL, NULL, err) != 0) {
		return -1;
	}
	return db_changes(ss->db) == 1 ? 1 : 0;
}

int outbox_take(struct session_store *ss, uint64_t lease_ms, struct outbox_item *ret,
                struct ssb_error *err)
{
	for (int i = 0; i < TAKE_TRIES; i++) {
		AUTO(taken_done) struct taken t = { 0 };
		int got = call_take(ss, take_one, lease_ms, &t, err);
		if (got < 0) {
			return -1;
		}
		if (got == 1) {
			*ret = t.item;
			t.item = (struct outbox_item){ 0 };
		}
		if (got != 0) {
			/* Messages have priority over parts of ledgers: messages are few, and
			 * people wait for them. */
			return got == 1 ? 1 : send_take(ss, lease_ms, ret, err);
		}
	}
	return 0;
}

int outbox_first(void *arg, const struct db_value *v, size_t n)
{
	int64_t *first = arg;

	/* If there is no message, the query returns one row with NULL. */
	return n == 1 && (v[0].type == DB_NULL || store_number(&v[0], 0, INT64_MAX, first)) ? 0
	                                                                                    : -1;
}

int outbox_wait(struct session_store *ss, int64_t *ret_ms, struct ssb_error *err)
{
	struct call c = { .ss = ss };
	int64_t first = -1;
	int64_t sends = -1;

	if (call_time(&c, err) != 0 ||
	    db_run(ss->db,
	           "SELECT MIN(CASE WHEN leased > due THEN leased ELSE due END) FROM outbox"
	           " WHERE state = 0",
	           NULL, 0, outbox_first, &first, err) != 0 ||
	    send_wait(ss, &sends, err) != 0) {
		return -1;
	}
	first = first < 0 || (sends >= 0 && sends < first) ? sends : first;
	*ret_ms = first < 0 ? -1 : first <= c.now ? 0 : (first - c.now) / 1000 + 1;
	return 0;
}

/* ---- delivered, or not --------------------------------------------------- */

/* Writes the receiver's URL without its path, because the path of a webhook is a secret. */
static void put_place(struct json *j, const char *url)
{
	const char *host = strstr(url, "://");
	size_t len = host != NULL ? (size_t)(host - url) + 3 : 0;

	json_key(j, "url");
	json_strn(j, url, len + strcspn(url + len, "/?#"));
}

/* Writes the name of the event that the message reports. */
static void put_told(struct json *j, const char *body)
{
	struct json_doc doc = { 0 };
	const char *why = NULL;

	if (json_read(&doc, body, strlen(body), &why) == 0) {
		json_kstr(j, "event", json_string(json_member(&doc, json_top(&doc), "event"), ""));
	}
	json_doc_done(&doc);
}

int outbox_entry(struct call *c, const struct outbox_item *item, unsigned code, const char *error,
                 enum outbox_state state, struct ssb_error *err)
{
	assert(c->open && item->url != NULL);

	struct row *own = call_own(c);
	struct json *j = entry_begin(c, own, EV_NOTIFICATION);
	char text[SESSION_REASON];

	json_kstr(j, "type", session_notify_name(item->kind));
	put_place(j, item->url);
	if (item->kind == NOTIFY_OTEL) {
		json_kstr(j, "what", item->span ? "span" : "lines");
		json_kuint(j, "lines", item->lines);
	} else {
		put_told(j, item->body);
	}
	json_kstr(j, "status", session_outbox_name(state));
	if (code != 0) {
		json_kuint(j, "status_code", code);
	}
	if (error != NULL && error[0] != '\0') {
		snprintf(text, sizeof(text), "%s", error);
		json_kstr(j, "error", text);
	}
	json_kuint(j, "tries", item->tries + 1);
	return entry_end(c, own, err);
}

int outbox_done(struct session_store *ss, const struct outbox_item *item, unsigned status,
                const char *error, uint64_t retry_ms, struct ssb_error *err)
{
	AUTO(call_done) struct call c = { 0 };
	enum outbox_state state = status >= 200 && status < 300 ? OUTBOX_DELIVERED
	                          : retry_ms > 0                ? OUTBOX_WAITING
	                                                        : OUTBOX_GIVEN_UP;

	if (item->kind == NOTIFY_OTEL) {
		return send_done(ss, item, status, error, retry_ms, err);
	}
	if (call_enter(&c, ss, item->session, err) != 0) {
		return -1;
	}
	if (db_run(ss->db,
	           "UPDATE outbox SET state = $1, tries = tries + 1, leased = 0, due = $2"
	           " WHERE n = $3 AND state = 0",
	           DB_ARGS(DB_I(state), DB_I(c.now + (int64_t)retry_ms * 1000), DB_I(item->n)),
	           NULL, NULL, err) != 0) {
		return -1;
	}
	if (db_changes(ss->db) != 1) {
		return ssb_fail(err, SSB_E_USAGE, 0, "outbox",
		                "this message was already delivered, or its delivery was given up");
	}
	return outbox_entry(&c, item, status, error, state, err) == 0 ? call_commit(&c, err) : -1;
}
