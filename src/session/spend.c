/* spend.c - reserves and settles money.
 *
 * Before an action, its estimated cost is reserved in the session and in all its ancestors. After
 * the action the actual cost replaces the reservation. A reservation that is never settled times
 * out: each session of the chain then charges the amount or gives it back, as the session's own
 * policy says. The bill may still come later, and is accepted once. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <sys/random.h>

#include "base/error.h"
#include "session/store.h"

/* ---- sums ---------------------------------------------------------------- */

static micros add_clamped(micros a, micros by)
{
	micros r = a + by; /* cannot overflow: both are far below INT64_MAX */

	return r < 0 ? 0 : r > STORE_MAX_MICROS ? STORE_MAX_MICROS : r;
}

struct reservation {
	int64_t n;
	int64_t session;
	int64_t root;
	char action[STORE_TEXT];
	micros amount;
	int64_t state;
	bool found;
};

static void settle_sums(struct call *c, const struct reservation *r, micros actual)
{
	for (size_t i = 0; i < c->n; i++) {
		struct row *row = &c->chain[i];
		if (r->state == RESERVED) {
			row->s.reserved = add_clamped(row->s.reserved, -r->amount);
		} else if (row->s.policy->charge_on_timeout) {
			row->s.spent = add_clamped(row->s.spent, -r->amount);
		}
		row->s.spent = add_clamped(row->s.spent, actual);
		row->dirty = true;
	}
}

/* Writes `due` only if it changed: the column has an index. */
static int save_due(struct call *c, int64_t due, struct ssb_error *err)
{
	struct row *root = &c->chain[0];

	if (due == root->due) {
		return 0;
	}
	root->due = due;
	return db_run(c->ss->db, "UPDATE sessions SET due = $1 WHERE n = $2",
	              DB_ARGS(DB_I(due), DB_I(root->n)), NULL, NULL, err);
}

/* ---- reservations that time out ------------------------------------------ */

#define TIME_OUT_BATCH 64

struct due {
	struct reservation v[TIME_OUT_BATCH];
	size_t n;
	bool bad;
};

static int take_due(void *arg, const struct db_value *v, size_t n)
{
	struct due *d = arg;
	struct reservation r = { 0 };

	if (n != 4 || !store_number(&v[0], 1, INT64_MAX, &r.n) ||
	    !store_number(&v[1], 1, INT64_MAX, &r.session) ||
	    !store_text(&v[2], r.action, sizeof(r.action)) ||
	    !store_number(&v[3], 0, MAX_MICROS, &r.amount) || d->n == TIME_OUT_BATCH) {
		d->bad = true;
		return -1;
	}
	d->v[d->n++] = r;
	return 0;
}

/* Fills `path` with the session of a reservation and its ancestors, from the session upwards.
 * Returns 0 if one of them is damaged. */
static size_t find_path(struct call *c, int64_t session, struct row *path[SESSION_DEPTH])
{
	size_t n = 0;

	for (int64_t at = session; at != 0 && n < SESSION_DEPTH; at = path[n++]->parent) {
		path[n] = call_find(c, at);
		if (path[n] == NULL) {
			return 0;
		}
	}
	return n;
}

/* Removes the amount from the reserved sum, and charges it if the policy says so. */
static void time_out_sums(struct row *row, micros amount)
{
	row->s.reserved = add_clamped(row->s.reserved, -amount);
	if (row->s.policy->charge_on_timeout) {
		row->s.spent = add_clamped(row->s.spent, amount);
	}
	row->dirty = true;
}

static int put_time_out(struct call *c, struct row *row, const struct reservation *r,
                        struct ssb_error *err)
{
	struct json *j = entry_begin(c, row, EV_ACTION_SETTLED);

	json_kstr(j, "action", r->action);
	json_kint(j, "reservation", r->n);
	json_kmillionths(j, "cost_usd", row->s.policy->charge_on_timeout ? r->amount : 0);
	json_kmillionths(j, "estimated_cost_usd", r->amount);
	json_kmillionths(j, "session_total_cost_usd", row->s.spent);
	json_kbool(j, "timed_out", true);
	return entry_end(c, row, err);
}

static int time_out_one(struct call *c, const struct reservation *r, struct ssb_error *err)
{
	struct row *path[SESSION_DEPTH];
	size_t n = find_path(c, r->session, path);

	/* A damaged session must not block the tree, so its reservation stays as it is. */
	if (n == 0) {
		return 0;
	}
	if (db_run(c->ss->db, "UPDATE reservations SET state = 1 WHERE n = $1", DB_ARGS(DB_I(r->n)),
	           NULL, NULL, err) != 0) {
		return -1;
	}
	for (size_t i = 0; i < n; i++) {
		time_out_sums(path[i], r->amount);
		if (i == 0 ? put_time_out(c, path[i], r, err) != 0
		           : entry_child(c, path[i], path[0], EV_ACTION_SETTLED, err) != 0) {
			return -1;
		}
	}
	return 0;
}

int spend_time_out(struct call *c, struct ssb_error *err)
{
	assert(c->open && c->n > 0);

	int64_t root = call_own(c)->root;
	int64_t last = 0;
	int64_t next = 0;
	struct due d;

	do {
		d = (struct due){ 0 };
		if (db_run(c->ss->db,
		           "SELECT n, session, action, amount FROM reservations"
		           " WHERE root = $1 AND state = 0 AND expires <= $2 AND n > $3"
		           " ORDER BY n LIMIT 64",
		           DB_ARGS(DB_I(root), DB_I(c->now), DB_I(last)), take_due, &d, err) != 0 ||
		    d.bad) {
			return store_damaged(err, "a reservation is not valid");
		}
		for (size_t i = 0; i < d.n; i++) {
			if (time_out_one(c, &d.v[i], err) != 0) {
				return -1;
			}
			last = d.v[i].n;
		}
	} while (d.n == TIME_OUT_BATCH);
	if (store_ask(c->ss, "SELECT min(expires) FROM reservations WHERE root = $1 AND state = 0",
	              DB_ARGS(DB_I(root)), &next, err) < 0) {
		return -1;
	}
	return save_due(c, next, err);
}

/* ---- check --------------------------------------------------------------- */

static int check_amount(micros m, struct ssb_error *err)
{
	return m >= 0 && m <= MAX_MICROS
	               ? 0
	               : ssb_fail(err, SSB_E_USAGE, 0, "", "an amount must be from $0 to $%lld",
	                          MAX_MICROS / MICROS_PER_DOLLAR);
}

/* Draws the number of a reservation. It must not be guessable, because knowing it is enough to
 * settle. */
static int draw_number(int64_t *ret, struct ssb_error *err)
{
	uint64_t n = 0;

	do {
		if (getrandom(&n, sizeof(n), 0) != (ssize_t)sizeof(n)) {
			return ssb_fail(err, SSB_E_SYS, errno, "session",
			                "cannot get random bytes for the number of a reservation");
		}
		n &= MAX_RESERVATION;
	} while (n == 0);
	*ret = (int64_t)n;
	return 0;
}

static int insert_reservation(struct call *c, const char *action, micros estimate, int64_t *ret,
                              struct ssb_error *err)
{
	struct row *own = call_own(c);
	int64_t expires = c->now + (int64_t)own->s.policy->reservation_ms * 1000;
	int64_t n = 0;

	if (draw_number(&n, err) != 0 ||
	    db_run(c->ss->db,
	           "INSERT INTO reservations (n, session, root, action, amount, made, expires,"
	           " state) VALUES ($1, $2, $3, $4, $5, $6, $7, 0)",
	           DB_ARGS(DB_I(n), DB_I(own->n), DB_I(own->root), DB_T(action), DB_I(estimate),
	                   DB_I(c->now), DB_I(expires)),
	           NULL, NULL, err) != 0) {
		return -1;
	}
	int64_t due = c->chain[0].due;
	if (save_due(c, due == 0 || expires < due ? expires : due, err) != 0) {
		return -1;
	}
	*ret = n;
	return 0;
}

static int add_reservation(struct call *c, const char *action, micros estimate, int64_t *ret,
                           struct ssb_error *err)
{
	for (size_t i = 0; i < c->n; i++) {
		struct row *row = &c->chain[i];
		if (row->s.reserved > STORE_MAX_MICROS - estimate) {
			return ssb_fail(
			        err, SSB_E_LIMIT, 0, "",
			        "the reservations of the session are too large for this estimate");
		}
		row->s.reserved += estimate;
		row->s.actions = store_add(row->s.actions, 1);
		row->dirty = true;
	}
	return insert_reservation(c, action, estimate, ret, err);
}

static int put_check(struct call *c, const char *action, micros estimate, int64_t reservation,
                     struct ssb_error *err)
{
	struct row *own = call_own(c);
	bool allowed = c->verdict.allowed;
	enum event_kind kind = allowed ? EV_ACTION_ALLOWED : EV_ACTION_BLOCKED;

	if (entry_only_counts(own)) {
		return 0;
	}
	struct json *j = entry_begin(c, own, kind);
	json_kstr(j, "action", action);
	if (allowed) {
		json_kint(j, "reservation", reservation);
	}
	json_kmillionths(j, "cost_usd", estimate);
	json_kmillionths(j, "session_total_cost_usd", own->s.spent);
	entry_verdict(c, j);
	if (c->decided != own) {
		json_kstr(j, "decided_by", c->decided->s.id);
	}
	return entry_end(c, own, err) == 0 ? entry_ancestors(c, kind, err) : -1;
}

int session_check(struct session_store *ss, const char *id, const char *action, micros estimate,
                  struct decision *ret, struct ssb_error *err)
{
	AUTO(call_done) struct call c = { 0 };
	int64_t reservation = 0;

	if (check_amount(estimate, err) != 0 ||
	    store_check_text(action, STORE_TEXT, "the name of an action", err) != 0 ||
	    call_enter(&c, ss, id, err) != 0) {
		return -1;
	}
	for (size_t i = 0; i < c.n; i++) {
		const struct session *s = &c.chain[i].s;
		c.verdicts[i] = engine_check(s, estimate, c.now);
		/* An alert is given once, when the limit is reached, and not again for each later
		 * action. */
		if (c.verdicts[i].act == ACT_ALERT) {
			struct verdict without = engine_check(s, 0, c.now);
			c.news[i] = without.act != ACT_ALERT || without.code != c.verdicts[i].code;
		}
	}
	call_decide(&c);
	if ((c.verdict.allowed && add_reservation(&c, action, estimate, &reservation, err) != 0) ||
	    put_check(&c, action, estimate, reservation, err) != 0 || call_apply(&c, err) != 0 ||
	    call_finish(&c, NULL, ret, err) != 0) {
		return -1;
	}
	ret->reservation = reservation;
	ret->amount = estimate;
	return 0;
}

/* ---- settle -------------------------------------------------------------- */

static int take_reservation(void *arg, const struct db_value *v, size_t n)
{
	struct reservation *r = arg;

	r->found = n == 5 && store_number(&v[0], 1, INT64_MAX, &r->session) &&
	           store_number(&v[1], 1, INT64_MAX, &r->root) &&
	           store_text(&v[2], r->action, sizeof(r->action)) &&
	           store_number(&v[3], 0, MAX_MICROS, &r->amount) &&
	           store_number(&v[4], RESERVED, TIMED_OUT, &r->state);
	return r->found ? 0 : -1;
}

static int find_reservation(struct call *c, int64_t n, struct reservation *ret,
                            struct ssb_error *err)
{
	struct reservation r = { .n = n };

	if (db_run(c->ss->db,
	           "SELECT session, root, action, amount, state FROM reservations WHERE n = $1",
	           DB_ARGS(DB_I(n)), take_reservation, &r, err) != 0) {
		return -1;
	}
	if (!r.found) {
		return ssb_fail(err, SSB_E_NOT_FOUND, 0, "",
		                "there is no reservation %" PRId64 ", or it is settled already", n);
	}
	*ret = r;
	return 0;
}

/* Deletes the reservation if its state is still that of `r`. If two callers settle at the same
 * time, only one of them gets *ret == true. */
static int take_it(struct call *c, const struct reservation *r, bool *ret, struct ssb_error *err)
{
	if (db_run(c->ss->db, "DELETE FROM reservations WHERE n = $1 AND state = $2",
	           DB_ARGS(DB_I(r->n), DB_I(r->state)), NULL, NULL, err) != 0) {
		return -1;
	}
	*ret = db_changes(c->ss->db) == 1;
	return 0;
}

static int put_settle(struct call *c, const struct reservation *r, micros actual,
                      struct ssb_error *err)
{
	struct row *own = call_own(c);
	struct json *j = entry_begin(c, own, EV_ACTION_SETTLED);

	json_kstr(j, "action", r->action);
	json_kint(j, "reservation", r->n);
	json_kmillionths(j, "cost_usd", actual < 0 ? 0 : actual);
	json_kmillionths(j, "estimated_cost_usd", r->amount);
	json_kmillionths(j, "session_total_cost_usd", own->s.spent);
	if (actual < 0) {
		json_kbool(j, "released", true);
	}
	if (r->state == TIMED_OUT) {
		json_kbool(j, "late", true);
	}
	entry_verdict(c, j);
	return entry_end(c, own, err) == 0 ? entry_ancestors(c, EV_ACTION_SETTLED, err) : -1;
}

int session_settle(struct session_store *ss, int64_t reservation, micros actual,
                   struct decision *ret, struct ssb_error *err)
{
	AUTO(call_done) struct call c = { 0 };
	struct reservation r = { 0 };
	micros cost = actual < 0 ? 0 : actual;
	bool taken = false;

	if (check_amount(cost, err) != 0 || call_begin(&c, ss, err) != 0 ||
	    find_reservation(&c, reservation, &r, err) != 0 ||
	    call_load_at(&c, r.session, r.root, err) != 0 || take_it(&c, &r, &taken, err) != 0) {
		return -1;
	}
	/* If another call changed the reservation before this call locked the tree, it is read
	 * again. Under the lock no other call can change it. */
	if (!taken && (find_reservation(&c, reservation, &r, err) != 0 ||
	               take_it(&c, &r, &taken, err) != 0 || !taken)) {
		return store_damaged(err, "a reservation cannot be settled");
	}
	for (size_t i = 0; i < c.n; i++) {
		c.verdicts[i] = engine_settle(&c.chain[i].s, 0,
		                              0); /* the verdict before the cost is added */
	}
	if (call_due(&c, err) != 0) {
		return -1;
	}
	settle_sums(&c, &r, cost);
	for (size_t i = 0; i < c.n; i++) {
		struct verdict v = engine_settle(&c.chain[i].s, cost, r.amount);
		c.news[i] = c.verdicts[i].act != v.act || c.verdicts[i].code != v.code ||
		            cost > c.chain[i].s.policy->max_cost_per_action;
		c.verdicts[i] = v;
	}
	call_decide(&c);
	if (put_settle(&c, &r, actual, err) != 0 || call_apply(&c, err) != 0 ||
	    call_finish(&c, NULL, ret, err) != 0) {
		return -1;
	}
	ret->amount = cost;
	return 0;
}
