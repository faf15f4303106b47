/* violations.c - counts violations by kind in the session and all its ancestors. The policy of each
 * session says at which count a reaction follows. */
#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/own.h"
#include "base/utf8.h"
#include "session/store.h"

static int count_one(struct call *c, struct row *row, const char *name, uint64_t n,
                     uint64_t *ret_count, struct ssb_error *err)
{
	int64_t count = 0;
	int64_t kinds = 0;
	int found = store_ask(c->ss,
	                      "UPDATE counts SET n = n + $1 WHERE session = $2 AND name = $3"
	                      " RETURNING n",
	                      DB_ARGS(DB_I(n), DB_I(row->n), DB_T(name)), &count, err);

	if (found == 0) {
		found = store_ask(c->ss, "SELECT COUNT(*) FROM counts WHERE session = $1",
		                  DB_ARGS(DB_I(row->n)), &kinds, err);
		/* The number of kinds is limited, so that an agent that invents names cannot fill
		 * the store. */
		if (found == 1 && kinds >= STORE_MAX_COUNTS && strcmp(name, "other") != 0 &&
		    session_policy_threshold(row->s.policy, name) == NULL) {
			return count_one(c, row, "other", n, ret_count, err);
		}
		found = found < 0 ? -1
		                  : store_ask(c->ss,
		                              "INSERT INTO counts (session, name, n)"
		                              " VALUES ($1, $2, $3) RETURNING n",
		                              DB_ARGS(DB_I(row->n), DB_T(name), DB_I(n)), &count,
		                              err);
	}
	if (found != 1 || count < 0) {
		return store_damaged(err, "a violation cannot be counted");
	}
	*ret_count = (uint64_t)count;
	return 0;
}

int violations_count(struct call *c, const char *name, uint64_t n, uint64_t *ret_count,
                     struct ssb_error *err)
{
	assert(c->open && c->n > 0);
	/* Limits `n`, so that the sums fit a BIGINT. A larger `n` has no other effect. */
	n = n > UINT32_MAX ? UINT32_MAX : n;
	for (size_t i = 0; i < c->n; i++) {
		struct row *row = &c->chain[i];
		const struct session_threshold *t = session_policy_threshold(row->s.policy, name);
		uint64_t count = 0;
		if (count_one(c, row, name, n, &count, err) != 0) {
			return -1;
		}
		*ret_count = count;
		/* The threshold acts at exactly its count. If several violations at once skip
		 * that count, it is judged instead of `count`. */
		if (t != NULL && count > t->count && count - n < t->count) {
			count = t->count;
		}
		struct verdict v = engine_violation(&row->s, name, count);
		bool first = c->verdicts[i].code == VERDICT_OK;
		if (v.act > c->verdicts[i].act || (!v.allowed && c->verdicts[i].allowed) || first) {
			v.tells = c->verdicts[i].tells;
			c->verdicts[i] = v;
			c->news[i] = true;
		}
		row->dirty = true;
	}
	return 0;
}

static int put_violation(struct call *c, const char *type, const char *details, uint64_t count,
                         struct ssb_error *err)
{
	struct row *own = call_own(c);
	const struct session_threshold *t = session_policy_threshold(own->s.policy, type);

	if (entry_only_counts(own)) {
		return 0;
	}
	struct json *j = entry_begin(c, own, EV_VIOLATION);
	json_kstr(j, "violation_type", type);
	json_kuint(j, "cumulative_count", count);
	json_key(j, "threshold");
	if (t != NULL) {
		json_uint(j, t->count);
	} else {
		json_null(j);
	}
	if (details != NULL) {
		json_kstr(j, "details", details);
	}
	entry_verdict(c, j);
	return entry_end(c, own, err) == 0 ? entry_ancestors(c, EV_VIOLATION, err) : -1;
}

int session_violation(struct session_store *ss, const char *id, const char *type,
                      const char *details, struct decision *ret, struct ssb_error *err)
{
	AUTO(call_done) struct call c = { 0 };
	uint64_t count = 0;

	if (store_check_text(type, sizeof(((struct session_threshold *)NULL)->name),
	                     "the type of a violation", err) != 0) {
		return -1;
	}
	/* Details may come from a skill. If they are too long, they are cut, not refused, because
	 * the violation must be counted in any case. */
	auto_free char *kept =
	        details != NULL ? strndup(details, utf8_cut(details, STORE_DETAILS - 1)) : NULL;
	if (details != NULL && kept == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "", "out of memory");
	}
	if (call_enter(&c, ss, id, err) != 0) {
		return -1;
	}
	for (size_t i = 0; i < c.n; i++) {
		c.chain[i].s.violations = store_add(c.chain[i].s.violations, 1);
	}
	if (violations_count(&c, type, 1, &count, err) != 0) {
		return -1;
	}
	call_decide(&c);
	if (put_violation(&c, type, kept, count, err) != 0 || call_apply(&c, err) != 0) {
		return -1;
	}
	return call_finish(&c, NULL, ret, err);
}
