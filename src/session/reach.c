/* reach.c - changes the state of a session and of its descendants. Kill, expiry, completion and
 * pause change all descendants. Resume changes the descendants that the same pause paused. */
#include <assert.h>

#include "base/error.h"
#include "base/limits.h"
#include "session/store.h"

static const struct {
	enum event_kind kind; /* kind of the ledger line and of the message */
	bool notify;
} STATES[SESSION_STATES] = {
	[SESSION_ACTIVE] = { EV_SESSION_RESUMED, false },
	[SESSION_ALERT] = { EV_SESSION_RESUMED, false },
	[SESSION_PAUSED] = { EV_SESSION_PAUSED, true },
	[SESSION_KILLED] = { EV_SESSION_KILLED, true },
	[SESSION_COMPLETED] = { EV_SESSION_COMPLETED, false },
	[SESSION_EXPIRED] = { EV_SESSION_EXPIRED, true },
};

static int put_line(struct call *c, struct row *row, const struct row *by, size_t damaged,
                    struct ssb_error *err)
{
	struct json *j = entry_begin(c, row, STATES[row->s.state].kind);
	int64_t since = c->now - row->s.created_us;

	json_kstr(j, "reason", row->s.reason);
	if (by != row) {
		json_kstr(j, "with", by->s.id);
	}
	json_kmillionths(j, "total_cost_usd", row->s.spent);
	json_kuint(j, "action_count", row->s.actions);
	if (session_is_over(row->s.state)) {
		json_key(j, "violation_counts");
		if (entry_counts(c->ss, row->n, j, err) != 0) {
			return -1;
		}
		json_kmillionths(j, "duration_seconds", since > 0 ? since : 0);
	}
	if (damaged > 0) {
		json_kuint(j, "damaged_descendants", damaged);
	}
	return entry_end(c, row, err);
}

/* Returns the time until which runs may continue: now plus a grace. The owner's own change has
 * its own grace; otherwise the grace is that of the policy of `by`. A run that learns of the kill
 * later gets what is left of the grace. */
static int64_t runs_until(const struct call *c, const struct row *by)
{
	const uint64_t most = MAX_GRACE_SECONDS * 1000;
	uint64_t grace = c->by_owner            ? c->owner_grace_ms
	                 : by->s.policy != NULL ? by->s.policy->grace_ms
	                                        : 0;

	return c->now + (int64_t)(grace < most ? grace : most) * 1000;
}

static int enter_state(struct call *c, struct row *row, enum session_state to, const struct row *by,
                       const char *reason, size_t damaged, struct ssb_error *err)
{
	row->s.state = to;
	row->paused_by = to == SESSION_PAUSED ? by->n : 0;
	row->s.ended_us = session_is_over(to) ? c->now : 0;
	row->s.until_us = session_is_over(to) ? runs_until(c, by) : 0;
	snprintf(row->s.reason, sizeof(row->s.reason), "%s", reason);
	store_clean(row->s.reason);
	row->dirty = row->restated = row->changed = true;
	row->acts = row->acts || by == row;
	if (put_line(c, row, by, damaged, err) != 0) {
		return -1;
	}
	return STATES[to].notify ? outbox_put(c, row, STATES[to].kind, row->s.reason, err) : 0;
}

/* ---- descendants --------------------------------------------------------- */

struct beneath {
	struct call *c;
	int64_t of;
	size_t before; /* number of rows that c->others already had */
	size_t damaged;
	bool failed;
};

static struct row *in_memory(struct call *c, size_t n_others, int64_t n)
{
	for (size_t i = 0; i < c->n; i++) {
		if (c->chain[i].n == n) {
			return &c->chain[i];
		}
	}
	for (size_t i = 0; i < n_others; i++) {
		if (c->others[i]->n == n) {
			return c->others[i];
		}
	}
	return NULL;
}

static int keep_row(struct call *c, const struct row *row)
{
	struct row *copy = malloc(sizeof(*copy));
	struct row **others = realloc(c->others, (c->n_others + 1) * sizeof(struct row *));

	c->others = others != NULL ? others : c->others;
	if (copy == NULL || others == NULL) {
		free(copy);
		return -1;
	}
	*copy = *row;
	c->others[c->n_others++] = copy;
	return 0;
}

static int found_row(void *arg, const struct db_value *v, size_t n)
{
	struct ssb_error why = { 0 };

	(void)row_read(v, n, arg, &why);
	return 0;
}

struct row *call_find(struct call *c, int64_t n)
{
	assert(c->open);

	struct row *known = in_memory(c, c->n_others, n);
	struct row row = { 0 };
	struct ssb_error why = { 0 };

	if (known != NULL) {
		return known;
	}
	if (db_run(c->ss->db, "SELECT " ROW_COLUMNS " FROM sessions s WHERE s.n = $1",
	           DB_ARGS(DB_I(n)), found_row, &row, &why) != 0 ||
	    row.n != n || row_policy(c->ss, &row, &why) != 0 || keep_row(c, &row) != 0) {
		return NULL;
	}
	return c->others[c->n_others - 1];
}

static int add_row(void *arg, const struct db_value *v, size_t n)
{
	struct beneath *b = arg;
	struct ssb_error why = { 0 };
	struct row row;

	/* A damaged session must not prevent the end of the other sessions. */
	if (row_read(v, n, &row, &why) != 0) {
		b->damaged++;
		return 0;
	}
	struct row *known = in_memory(b->c, b->before, row.n);
	if (known != NULL) {
		known->beneath = b->of;
		return 0;
	}
	row.beneath = b->of;
	b->failed = keep_row(b->c, &row) != 0;
	return b->failed ? -1 : 0;
}

/* Reads the descendants of `of` that are not over into c->others, and sets their `beneath`. */
static int load_beneath(struct call *c, const struct row *of, size_t *ret_damaged,
                        struct ssb_error *err)
{
	struct beneath b = { .c = c, .of = of->n, .before = c->n_others };

	if (db_run(c->ss->db,
	           "WITH RECURSIVE down(n, d) AS (SELECT n, 1 FROM sessions"
	           " WHERE parent = $1" ROW_DOWN " SELECT " ROW_COLUMNS
	           " FROM sessions s WHERE s.ended = 0"
	           " AND s.n IN (SELECT n FROM down)",
	           DB_ARGS(DB_I(of->n)), add_row, &b, err) != 0) {
		return -1;
	}
	if (b.failed) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "store", "out of memory");
	}
	for (size_t i = b.before; i < c->n_others; i++) {
		struct ssb_error why = { 0 };
		/* If the policy cannot be read, no message is sent, but the session still ends. */
		(void)row_policy(c->ss, c->others[i], &why);
	}
	*ret_damaged = b.damaged;
	return 0;
}

/* Returns the state of `row` after an ancestor entered `to`. */
static enum session_state state_reached(const struct row *row, const struct row *by,
                                        enum session_state to)
{
	if (session_is_over(row->s.state)) {
		return row->s.state;
	}
	if (session_is_over(to)) {
		return to;
	}
	if (to == SESSION_PAUSED) {
		return SESSION_PAUSED;
	}
	if (row->s.state == SESSION_PAUSED && row->paused_by == by->n) {
		return row->s.alerted ? SESSION_ALERT : SESSION_ACTIVE;
	}
	return row->s.state;
}

int call_become(struct call *c, struct row *row, enum session_state to, const char *reason,
                struct ssb_error *err)
{
	char with[SESSION_REASON];
	size_t damaged = 0;

	assert(c->open && session_may_become(row->s.state, to));
	if (load_beneath(c, row, &damaged, err) != 0 ||
	    enter_state(c, row, to, row, reason, damaged, err) != 0) {
		return -1;
	}
	snprintf(with, sizeof(with), "with '%s': %.180s", row->s.id, reason);
	for (size_t i = 0; i < c->n + c->n_others; i++) {
		struct row *r = call_row(c, i);
		enum session_state next = state_reached(r, row, to);
		if (r->beneath == row->n && next != r->s.state &&
		    enter_state(c, r, next, row, with, 0, err) != 0) {
			return -1;
		}
	}
	return 0;
}
