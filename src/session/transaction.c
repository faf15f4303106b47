/* transaction.c - one call on a session, which is one transaction (store.h). */
#include <assert.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fnv.h"
#include "session/herald.h"
#include "session/schema.h"
#include "session/store.h"

static const struct verdict FINE = { .allowed = true, .act = ACT_LOG, .code = VERDICT_OK };

int call_begin(struct call *c, struct session_store *ss, struct ssb_error *err)
{
	assert(!c->open && c->n == 0 && c->n_others == 0);
	assert(ss->pid == getpid());
	c->ss = ss;
	if (db_begin(ss->db, err) != 0) {
		return -1;
	}
	c->open = true;
	return 0;
}

int call_time(struct call *c, struct ssb_error *err)
{
	if (c->ss->now != NULL) {
		c->now = c->ss->now();
		return 0;
	}
	return db_time(c->ss->db, &c->now, err);
}

/* ---- the session and its ancestors --------------------------------------- */

static struct store_place *place_slot(struct session_store *ss, const char *id)
{
	return &ss->places[fnv_hash(0, id, strlen(id)) % ARRAY_LEN(ss->places)];
}

static int take_place(void *arg, const struct db_value *v, size_t n)
{
	struct store_place *p = arg;

	if (n != 2 || !store_number(&v[0], 1, SESSION_MAX_N, &p->n) ||
	    !store_number(&v[1], 0, INT64_MAX, &p->root)) {
		p->n = -1;
	}
	return 0;
}

static int find_place(struct call *c, const char *id, struct store_place *ret,
                      struct ssb_error *err)
{
	struct store_place *slot = place_slot(c->ss, id);
	struct store_place p = { 0 };

	if (strcmp(slot->id, id) == 0) {
		*ret = *slot;
		return 0;
	}
	if (db_run(c->ss->db, "SELECT n, root FROM sessions WHERE id = $1", DB_ARGS(DB_T(id)),
	           take_place, &p, err) != 0) {
		return -1;
	}
	if (p.n <= 0) {
		return p.n < 0 ? store_damaged(err, "a session has no number")
		               : ssb_fail(err, SSB_E_NOT_FOUND, 0, "", "there is no session '%s'",
		                          id);
	}
	snprintf(p.id, sizeof(p.id), "%s", id);
	*slot = *ret = p;
	return 0;
}

struct load {
	struct call *c;
	struct ssb_error *err;
	int rc;
};

static int load_row(void *arg, const struct db_value *v, size_t n)
{
	struct load *l = arg;
	struct call *c = l->c;

	if (c->n == SESSION_DEPTH || row_read(v, n, &c->chain[c->n], l->err) != 0) {
		l->rc = store_damaged(l->err, "the ancestors of a session are not valid");
		return -1;
	}
	c->n++;
	return 0;
}

/* Reads the session and its ancestors. Most sessions have no parent, so their chain is one row,
 * which is read by its number. For other sessions the recursion is limited, because a damaged store
 * could contain a circle of parents. */
static int read_chain(struct call *c, int64_t n, int64_t root, struct ssb_error *err)
{
	struct load l = { .c = c, .err = err };
	int rc = 0;

	if (n == root) {
		rc = db_run(c->ss->db, "SELECT " ROW_COLUMNS " FROM sessions s WHERE s.n = $1",
		            DB_ARGS(DB_I(n)), load_row, &l, err);
	} else {
		rc = db_run(c->ss->db,
		            "WITH RECURSIVE up(n, parent, d) AS (SELECT n, parent, 1 FROM sessions"
		            " WHERE n = $1 UNION ALL SELECT p.n, p.parent, up.d + 1"
		            " FROM sessions p JOIN up ON p.n = up.parent WHERE up.d < 9)"
		            " SELECT " ROW_COLUMNS " FROM up JOIN sessions s ON s.n = up.n"
		            " ORDER BY up.d DESC",
		            DB_ARGS(DB_I(n)), load_row, &l, err);
	}
	return rc != 0 ? -1 : l.rc;
}

/* Returns true if the next call may use the row in memory instead of a new read. The next call on a
 * session often comes from the same process, with no other change in between. This call must have
 * changed only the values that a check or a settle changes. */
static bool may_keep(const struct call *c)
{
	return c->n == 1 && c->n_others == 0 && !c->due && !c->chain[0].restated;
}

static void keep_row(struct call *c)
{
	struct row *kept = &c->ss->kept;

	*kept = c->chain[0];
	kept->told = row_totals(kept);
	kept->lines = (struct buf){ 0 };
	kept->entered = false;
	c->ss->kept_version = db_version(c->ss->db);
}

static bool take_kept(struct call *c, int64_t n)
{
	const struct session_store *ss = c->ss;

	if (ss->kept.n != n || ss->kept_version == 0 || ss->kept_version != db_version(ss->db)) {
		return false;
	}
	c->chain[c->n++] = ss->kept;
	return true;
}

int call_load_at(struct call *c, int64_t n, int64_t root, struct ssb_error *err)
{
	assert(c->open && c->n == 0);
	if (db_lock_tree(c->ss->db, root, err) != 0 || call_time(c, err) != 0 ||
	    (!take_kept(c, n) && read_chain(c, n, root, err) != 0)) {
		return -1;
	}
	c->due = c->chain[0].due != 0 && c->chain[0].due <= c->now;
	for (size_t i = 0; i < c->n; i++) {
		struct row *row = &c->chain[i];
		c->verdicts[i] = FINE;
		if (row->root != root || row->depth != (int64_t)i + 1 ||
		    row->parent != (i > 0 ? c->chain[i - 1].n : 0)) {
			return store_damaged(err, "the ancestors of a session are not valid");
		}
		if (i > 0) {
			memcpy(row->s.parent, c->chain[i - 1].s.id, sizeof(row->s.parent));
		}
		if (row_policy(c->ss, row, err) != 0) {
			return -1;
		}
	}
	return c->n > 0 ? 0 : store_damaged(err, "a session is gone");
}

int call_load(struct call *c, const char *id, struct ssb_error *err)
{
	struct store_place place = { 0 };

	assert(c->open && c->n == 0);
	if (!session_id_valid(id)) {
		return ssb_fail(err, SSB_E_USAGE, 0, "",
		                "'%.80s' cannot be the id of a session; an id has only letters, "
		                "digits, '.', '_' and '-', and at most %d characters",
		                id, SESSION_ID - 1);
	}
	return find_place(c, id, &place, err) != 0 ? -1 : call_load_at(c, place.n, place.root, err);
}

int call_due(struct call *c, struct ssb_error *err)
{
	char reason[SESSION_REASON];

	assert(c->open && c->n > 0);
	if (c->due && spend_time_out(c, err) != 0) {
		return -1;
	}
	for (size_t i = 0; i < c->n; i++) {
		struct row *row = &c->chain[i];
		if (session_is_over(row->s.state) || c->now <= engine_deadline(&row->s)) {
			continue;
		}
		snprintf(reason, sizeof(reason), "max_duration of %" PRIu64 " s is over",
		         row->s.policy->max_duration_ms / 1000);
		if (c->expired == NULL) {
			c->expired = row;
		}
		if (call_become(c, row, SESSION_EXPIRED, reason, err) != 0) {
			return -1;
		}
	}
	return 0;
}

int call_enter(struct call *c, struct session_store *ss, const char *id, struct ssb_error *err)
{
	return call_begin(c, ss, err) == 0 && call_load(c, id, err) == 0 && call_due(c, err) == 0
	               ? 0
	               : -1;
}

/* ---- what is decided ----------------------------------------------------- */

static int verdict_hardness(const struct verdict *v)
{
	return (int)v->act + (v->allowed ? 0 : SESSION_ACTS);
}

void call_decide(struct call *c)
{
	assert(c->n > 0);

	size_t at = c->n - 1;

	for (size_t i = 0; i < c->n; i++) {
		int by = verdict_hardness(&c->verdicts[i]) - verdict_hardness(&c->verdicts[at]);
		if (by > 0 || (by == 0 && i < at && verdict_hardness(&c->verdicts[i]) > ACT_LOG)) {
			at = i;
		}
	}
	c->decided = &c->chain[at];
	c->verdict = c->verdicts[at];
	/* A session of the chain expired during this call (c->expired). This decides, unless an
	 * ancestor of that session is killed, which ends it, too. */
	if (c->expired != NULL && (c->expired <= c->decided || c->verdict.act < ACT_KILL)) {
		c->decided = c->expired;
		c->verdict.code = VERDICT_MAX_DURATION;
		c->verdict.act = ACT_KILL;
		snprintf(c->verdict.reason, sizeof(c->verdict.reason), "%s", c->expired->s.reason);
	}
}

static int raise_alert(struct call *c, struct row *row, const struct verdict *v, bool news,
                       struct ssb_error *err)
{
	enum session_state to = engine_next(&row->s, ACT_ALERT);

	if (to == row->s.state && !news) {
		return 0;
	}
	row->changed = row->changed || to != row->s.state;
	row->s.state = to;
	row->s.alerted = true;
	row->dirty = row->restated = true;
	struct json *j = entry_begin(c, row, EV_BUDGET_ALERT);
	json_kstr(j, "code", session_code_name(v->code));
	json_kstr(j, "reason", v->reason);
	return entry_end(c, row, err) == 0 ? outbox_put(c, row, EV_BUDGET_ALERT, v->reason, err)
	                                   : -1;
}

/* Returns true if the owner must get a message about the verdict. An action that an ancestor
 * refused did not happen in this session, so it causes no alert. If the new state causes a message,
 * no second message is sent. */
static bool is_told(const struct call *c, const struct verdict *v, bool becomes)
{
	return (v->tells && !becomes) || (v->act == ACT_ALERT && c->verdict.allowed);
}

int call_apply(struct call *c, struct ssb_error *err)
{
	assert(c->open && c->decided != NULL);
	for (size_t i = 0; i < c->n; i++) {
		struct row *row = &c->chain[i];
		const struct verdict *v = &c->verdicts[i];
		enum session_state to = engine_next(&row->s, v->act);
		if (session_is_over(row->s.state)) {
			continue;
		}
		if (is_told(c, v, v->act >= ACT_PAUSE && to != row->s.state) &&
		    raise_alert(c, row, v, c->news[i], err) != 0) {
			return -1;
		}
		if (engine_blocks(v) && row->s.blocked[0] == '\0') {
			memcpy(row->s.blocked, v->reason, sizeof(row->s.blocked));
			row->dirty = row->restated = true;
		}
		if (v->act == ACT_KILL && v->code == VERDICT_MAX_DURATION) {
			to = SESSION_EXPIRED;
		}
		if (v->act >= ACT_PAUSE && to != row->s.state &&
		    session_may_become(row->s.state, to) &&
		    call_become(c, row, to, v->reason, err) != 0) {
			return -1;
		}
	}
	return 0;
}

/* ---- the end ------------------------------------------------------------- */

static int save_rows(struct call *c, struct ssb_error *err)
{
	for (size_t i = 0; i < c->n + c->n_others; i++) {
		struct row *row = call_row(c, i);
		if ((row->entered && session_is_over(row->s.state) &&
		     entry_sign(c, row, err) != 0) ||
		    (row->entered && send_wake(c, row, err) != 0) ||
		    (row->dirty && row_save(c->ss, row, err) != 0) ||
		    (row->changed && db_tell(c->ss->db, row->s.id, err) != 0)) {
			return -1;
		}
	}
	return 0;
}

static uint64_t grace_of(const struct call *c, const struct row *row)
{
	if (c->by_owner) {
		return c->owner_grace_ms;
	}
	bool killed = row->s.state == SESSION_KILLED || row->s.state == SESSION_EXPIRED;

	return killed && row->s.policy != NULL ? row->s.policy->grace_ms : 0;
}

/* Lists the sessions whose state changed. A session below a listed one is reached through that one,
 * so only a kill below a pause is listed separately. Nothing below a kill needs an entry, so there
 * are at most two entries. */
static void tell_acted(const struct call *c, struct decision *ret)
{
	for (size_t i = 0; i < c->n && ret->n_acted < ARRAY_LEN(ret->acted); i++) {
		const struct row *row = &c->chain[i];
		size_t k = 0;
		while (k < ret->n_acted && !session_is_over(ret->acted[k].state) &&
		       ret->acted[k].state != row->s.state) {
			k++;
		}
		if (row->acts && k == ret->n_acted) {
			memcpy(ret->acted[k].id, row->s.id, sizeof(ret->acted[k].id));
			ret->acted[k].state = row->s.state;
			ret->acted[k].grace_ms = grace_of(c, row);
			ret->n_acted++;
		}
	}
}

static void fill_decision(struct call *c, struct decision *ret)
{
	const struct row *own = call_own(c);
	const struct row *by = c->decided != NULL ? c->decided : own;

	ret->verdict = c->verdict;
	memcpy(ret->session, own->s.id, sizeof(ret->session));
	memcpy(ret->decided, by->s.id, sizeof(ret->decided));
	ret->after = own->s;
	ret->changed = by->changed;
	ret->state = by->s.state;
	ret->grace_ms = by->changed ? grace_of(c, by) : 0;
	tell_acted(c, ret);
	ret->notify = c->notify;
	memcpy(ret->warning, c->warning, sizeof(ret->warning));
}

/* Commits, but does not start the herald. call_commit() starts it at once; call_finish() starts it
 * when it enforces the decision. */
static int commit_call(struct call *c, struct ssb_error *err)
{
	assert(c->open && c->n > 0);

	bool keeps = may_keep(c);

	if (save_rows(c, err) != 0) {
		return -1;
	}
	struct exports *e = export_open(c);
	c->open = false;
	if (db_commit(c->ss->db, err) != 0) {
		export_drop(e);
		return -1;
	}
	c->ss->kept.n = 0;
	if (keeps) {
		keep_row(c);
	}
	export_write(c, e);
	return 0;
}

int call_commit(struct call *c, struct ssb_error *err)
{
	if (commit_call(c, err) != 0) {
		return -1;
	}
	if (c->notify) {
		(void)herald_start(c->ss->owner, &(struct ssb_error){ 0 });
	}
	return 0;
}

int call_finish(struct call *c, const struct session_run *except, struct decision *ret,
                struct ssb_error *err)
{
	assert(ret != NULL);
	if (commit_call(c, err) != 0) {
		return -1;
	}
	*ret = (struct decision){ 0 };
	fill_decision(c, ret);
	act_enforce(c->ss, ret, except);
	return 0;
}

void call_done(struct call *c)
{
	if (c->open) {
		db_rollback(c->ss->db);
		c->open = false;
	}
	for (size_t i = 0; i < c->n + c->n_others; i++) {
		buf_done(&call_row(c, i)->lines);
	}
	for (size_t i = 0; i < c->n_others; i++) {
		free(c->others[i]);
	}
	free(c->others);
	c->others = NULL;
	c->n = c->n_others = 0;
}

int call_take(struct session_store *ss, call_take_fn *take, uint64_t lease_ms, void *arg,
              struct ssb_error *err)
{
	AUTO(call_done) struct call c = { 0 };

	if (call_begin(&c, ss, err) != 0 || call_time(&c, err) != 0) {
		return -1;
	}
	int got = take(ss, c.now, lease_ms, arg, err);
	if (got < 0) {
		return -1;
	}
	c.open = false;
	return db_commit(ss->db, err) == 0 ? got : -1;
}
