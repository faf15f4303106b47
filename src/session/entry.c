/* entry.c - the lines of a session's ledger: chained like those of a run's record
 * (skillsandbox-trace(5)), and kept in the store. Each line has a snapshot of the session as it
 * is after the line's event.
 *
 *   session_created ... session_killed signature [more, signature] ...
 *
 * The ledger of a session that is over ends with a signature. Later lines (a bill, a delivery)
 * are added after it and signed again. An attacker could cut the ledger back to an earlier
 * signature. So every line of a session that is over says how many bills may still come, and a
 * ledger that was cut back does not look complete. */
#include <assert.h>
#include <string.h>

#include "trace/key.h"
#include "base/error.h"
#include "base/hex.h"
#include "session/schema.h"
#include "session/store.h"

void entry_snapshot(struct json *j, const struct session *s)
{
	json_open(j, '{');
	json_kstr(j, "state", session_state_name(s->state));
	json_kmillionths(j, "spent_usd", s->spent);
	json_kmillionths(j, "reserved_usd", s->reserved);
	json_kuint(j, "actions", s->actions);
	json_kuint(j, "violations", s->violations);
	for (enum session_meter m = 0; m < SESSION_METERS; m++) {
		if (s->meters[m] > 0) {
			session_meter_json(j, session_meter_name(m), m, s->meters[m]);
		}
	}
	if (s->refused > 0) {
		json_kuint(j, "refused", s->refused);
	}
	json_close(j, '}');
}

/* The ledger's time never goes back, even if the wall clock does. */
static void resume_record(struct call *c, struct row *row)
{
	int64_t since = c->now - row->s.created_us;

	if (since > 0 && (uint64_t)since > row->mono) {
		row->mono = (uint64_t)since;
	}
	record_resume(&c->ss->record, row->seq, row->hash, c->now, row->mono);
}

struct json *entry_begin(struct call *c, struct row *row, enum event_kind kind)
{
	assert(c->open);
	resume_record(c, row);
	struct json *j = record_begin_same(&c->ss->record, RECORD_KINDS[kind]);
	json_kstr(j, "session_id", row->s.id);
	json_kstr(j, "agent_id", row->s.agent);
	return j;
}

void entry_verdict(const struct call *c, struct json *j)
{
	json_kstr(j, "code", session_code_name(c->verdict.code));
	json_kstr(j, "act", session_act_name(c->verdict.act));
	if (c->verdict.code != VERDICT_OK) {
		json_kstr(j, "reason", c->verdict.reason);
	}
}

static bool exports_lines(const struct row *row)
{
	const struct session_policy *p = row->s.policy;

	return p != NULL && p->audit_enabled && p->n_exports > 0;
}

static int keep_line(struct call *c, struct row *row, struct ssb_error *err)
{
	struct record *r = &c->ss->record;

	if (!record_end(r)) {
		return ssb_fail(err, SSB_E_LIMIT, 0, "ledger", "a line is too long");
	}
	const char *line = r->out.data + r->line;
	size_t len = r->out.len - r->line;
	if (db_run(c->ss->db, "INSERT INTO ledger (n, line) VALUES ($1, $2)",
	           DB_ARGS(DB_I(SESSION_LINE(row->n, row->seq)), DB_TN(line, len)), NULL, NULL,
	           err) != 0) {
		return -1;
	}
	if (exports_lines(row)) {
		if (row->lines.cap == 0) {
			buf_init(&row->lines, STORE_EXPORT);
			row->first = row->seq;
		}
		buf_add(&row->lines, line, len);
	}
	row->seq = r->seq;
	memcpy(row->hash, r->hash, sizeof(row->hash));
	row->dirty = true;
	return 0;
}

/* Writes the number of unsettled reservations of the session and its descendants. Reservations that
 * timed out are included: each can still add a line to the ledger. */
static int put_open(struct call *c, const struct row *row, struct ssb_error *err)
{
	int64_t n = 0;

	if (store_ask(c->ss,
	              "WITH RECURSIVE down(n, d) AS (SELECT n, 1 FROM sessions"
	              " WHERE n = $1" ROW_DOWN
	              " SELECT count(*) FROM down JOIN reservations r ON r.session = down.n",
	              DB_ARGS(DB_I(row->n)), &n, err) < 0) {
		return -1;
	}
	json_kuint(&c->ss->record.json, "open_reservations", (uint64_t)n);
	return 0;
}

int entry_end(struct call *c, struct row *row, struct ssb_error *err)
{
	struct json *j = &c->ss->record.json;

	if (session_is_over(row->s.state) && put_open(c, row, err) != 0) {
		return -1;
	}
	json_key(j, "snapshot");
	entry_snapshot(j, &row->s);
	row->entered = true;
	row->told = row_totals(row);
	return keep_line(c, row, err);
}

static void put_change(struct json *j, const struct totals *was, const struct totals *is)
{
	json_kopen(j, "changed", '{');
	if (is->spent != was->spent) {
		json_kmillionths(j, "spent_usd", is->spent - was->spent);
	}
	if (is->reserved != was->reserved) {
		json_kmillionths(j, "reserved_usd", is->reserved - was->reserved);
	}
	if (is->actions != was->actions) {
		json_kuint(j, "actions", is->actions - was->actions);
	}
	if (is->violations != was->violations) {
		json_kuint(j, "violations", is->violations - was->violations);
	}
	for (enum session_meter m = 0; m < SESSION_METERS; m++) {
		if (is->meters[m] != was->meters[m]) {
			session_meter_json(j, session_meter_name(m), m,
			                   is->meters[m] - was->meters[m]);
		}
	}
	json_close(j, '}');
}

int entry_child(struct call *c, struct row *row, const struct row *child, enum event_kind event,
                struct ssb_error *err)
{
	struct totals is = row_totals(row);

	if (memcmp(&is, &row->told, sizeof(is)) == 0) {
		return 0;
	}
	struct json *j = entry_begin(c, row, EV_CHILD);
	json_kstr(j, "child", child->s.id);
	json_kstr(j, "event", RECORD_KINDS[event]);
	put_change(j, &row->told, &is);
	return entry_end(c, row, err);
}

int entry_ancestors(struct call *c, enum event_kind event, struct ssb_error *err)
{
	for (size_t i = 0; i + 1 < c->n; i++) {
		if (entry_child(c, &c->chain[i], call_own(c), event, err) != 0) {
			return -1;
		}
	}
	return 0;
}

bool entry_only_counts(struct row *row)
{
	if (!session_is_over(row->s.state)) {
		return false;
	}
	row->s.refused = store_add(row->s.refused, 1);
	row->dirty = row->restated = true;
	return row->s.refused > 1;
}

int entry_sign(struct call *c, struct row *row, struct ssb_error *err)
{
	AUTO(trace_key_done) struct trace_key key = { 0 };
	uint8_t signature[ED25519_SIGNATURE];
	char hex[2 * sizeof(signature) + 1];
	struct ssb_error why = { 0 };

	assert(c->open && session_is_over(row->s.state));
	if (trace_key_load(c->ss->owner, &key, &why) != 0) {
		snprintf(c->warning, sizeof(c->warning), "the ledger is not signed: %.200s",
		         why.text);
		return 0;
	}
	resume_record(c, row);
	trace_key_sign(&key, row->hash, signature);
	struct json *j = record_begin_same(&c->ss->record, RECORD_KINDS[EV_SIGNATURE]);
	hex_encode(key.pair.public, sizeof(key.pair.public), hex);
	json_kstr(j, "key", hex);
	hex_encode(signature, sizeof(signature), hex);
	json_kstr(j, "signature", hex);
	return keep_line(c, row, err);
}

static int put_count(void *arg, const struct db_value *v, size_t n)
{
	struct json *j = arg;

	if (n == 2 && v[0].type == DB_TEXT && v[1].type == DB_INT && v[1].i >= 0) {
		json_kuint(j, v[0].s, (uint64_t)v[1].i);
	}
	return 0;
}

int entry_counts(struct session_store *ss, int64_t session, struct json *j, struct ssb_error *err)
{
	json_open(j, '{');
	int rc = db_run(ss->db,
	                "SELECT name, n FROM counts WHERE session = $1 ORDER BY name LIMIT 256",
	                DB_ARGS(DB_I(session)), put_count, j, err);
	json_close(j, '}');
	return rc;
}
