/* store.c - sessions as rows. Each row is checked when it is read: the store may be damaged, or on
 * a server that other people administer. */
#include "session/store.h"

#include <assert.h>
#include <string.h>

#include "base/diag.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/utf8.h"
#include "session/schema.h"

int store_damaged(struct ssb_error *err, const char *what)
{
	return ssb_fail(err, SSB_E_SYS, 0, "store", "the store is damaged: %s", what);
}

bool store_number(const struct db_value *v, int64_t min, int64_t max, int64_t *ret)
{
	assert(min <= max);
	if (v->type != DB_INT || v->i < min || v->i > max) {
		return false;
	}
	*ret = v->i;
	return true;
}

bool store_text(const struct db_value *v, char *ret, size_t size)
{
	assert(size > 0);
	if (v->type != DB_TEXT || v->n >= size || memchr(v->s, '\0', v->n) != NULL) {
		return false;
	}
	memcpy(ret, v->s, v->n);
	ret[v->n] = '\0';
	return true;
}

bool store_read(const struct db_value *v, const struct store_column *c, size_t n, void *ret)
{
	for (size_t i = 0; i < n; i++) {
		char *at = (char *)ret + c[i].offset;
		int64_t number = 0;
		if (c[i].max == 0 ? !store_text(&v[i], at, c[i].size)
		                  : !store_number(&v[i], c[i].min, c[i].max, &number)) {
			return false;
		}
		if (c[i].max == 0) {
			continue;
		}
		if (c[i].size == sizeof(bool)) {
			*(bool *)at = number != 0;
		} else if (c[i].size == sizeof(int32_t)) {
			memcpy(at, &(int32_t){ (int32_t)number }, sizeof(int32_t));
		} else {
			assert(c[i].size == sizeof(number));
			memcpy(at, &number, sizeof(number));
		}
	}
	return true;
}

/* A session as it is in the store: some of its columns are not members of struct row. */
struct stored_row {
	struct row row;
	char hash[STORE_HEX];
};

#define NUMBER(member, min, max) STORE_NUMBER(stored_row, row.member, min, max)
#define COUNT(member)            NUMBER(member, 0, INT64_MAX)
#define TEXT(member)             STORE_TEXT_IN(stored_row, row.member)

/* In the order of ROW_COLUMNS. */
static const struct store_column COLUMNS[] = {
	NUMBER(n, 1, SESSION_MAX_N),
	TEXT(s.id),
	COUNT(parent),
	COUNT(root),
	NUMBER(depth, 1, SESSION_DEPTH),
	TEXT(s.agent),
	TEXT(policy),
	NUMBER(s.state, 0, SESSION_STATES - 1),
	NUMBER(s.alerted, 0, 1),
	COUNT(paused_by),
	TEXT(s.reason),
	NUMBER(s.created_us, 0, INT64_MAX / 2),
	COUNT(deadline),
	COUNT(s.ended_us),
	NUMBER(s.spent, 0, STORE_MAX_MICROS),
	NUMBER(s.reserved, 0, STORE_MAX_MICROS),
	COUNT(s.actions),
	COUNT(s.violations),
	COUNT(s.meters[METER_RUNS]),
	COUNT(s.meters[METER_CPU_MS]),
	COUNT(s.meters[METER_WALL_MS]),
	COUNT(s.meters[METER_BYTES_OUT]),
	COUNT(s.meters[METER_BYTES_IN]),
	COUNT(s.meters[METER_CONNECTIONS]),
	COUNT(s.meters[METER_DOMAINS]),
	NUMBER(seq, 0, SESSION_MAX_LINES - 1024),
	COUNT(mono),
	STORE_TEXT_IN(stored_row, hash),
	COUNT(s.refused),
	TEXT(s.blocked),
	COUNT(due),
};
_Static_assert(ARRAY_LEN(COLUMNS) == ROW_N_COLUMNS, "the columns of a session");

int row_read(const struct db_value *v, size_t n, struct row *ret, struct ssb_error *err)
{
	struct stored_row r = { 0 };
	bool valid = n >= ROW_N_COLUMNS && store_read(v, COLUMNS, ROW_N_COLUMNS, &r) &&
	             hex_decode(r.hash, strlen(r.hash), r.row.hash, sizeof(r.row.hash)) == 0;

	if (!session_id_valid(r.row.s.id)) {
		return store_damaged(err, "a session has no name");
	}
	if (!valid) {
		return ssb_fail(err, SSB_E_SYS, 0, "store",
		                "the store is damaged: the row of session '%s' is not valid",
		                r.row.s.id);
	}
	r.row.s.until_us = r.row.s.ended_us != 0 ? r.row.deadline : 0;
	r.row.told = row_totals(&r.row);
	*ret = r.row;
	return 0;
}

struct totals row_totals(const struct row *row)
{
	const struct session *s = &row->s;
	struct totals t = { s->spent, s->reserved, s->actions, s->violations, { 0 } };

	memcpy(t.meters, s->meters, sizeof(t.meters));
	return t;
}

/* Saves the sums and the head of the chain. A check changes only these columns, and they have no
 * index. */
static int save_sums(struct session_store *ss, const struct row *row, struct ssb_error *err)
{
	const struct session *s = &row->s;
	char hex[STORE_HEX];

	hex_encode(row->hash, sizeof(row->hash), hex);
	return db_run(ss->db,
	              "UPDATE sessions SET spent = $1, reserved = $2, actions = $3,"
	              " violations = $4, runs = $5, cpu_ms = $6, wall_ms = $7, bytes_out = $8,"
	              " bytes_in = $9, connections = $10, domains = $11, seq = $12, mono = $13,"
	              " hash = $14 WHERE n = $15",
	              DB_ARGS(DB_I(s->spent), DB_I(s->reserved), DB_I(s->actions),
	                      DB_I(s->violations), DB_I(s->meters[METER_RUNS]),
	                      DB_I(s->meters[METER_CPU_MS]), DB_I(s->meters[METER_WALL_MS]),
	                      DB_I(s->meters[METER_BYTES_OUT]), DB_I(s->meters[METER_BYTES_IN]),
	                      DB_I(s->meters[METER_CONNECTIONS]), DB_I(s->meters[METER_DOMAINS]),
	                      DB_I(row->seq), DB_I(row->mono), DB_T(hex), DB_I(row->n)),
	              NULL, NULL, err);
}

static int save_state(struct session_store *ss, const struct row *row, struct ssb_error *err)
{
	const struct session *s = &row->s;

	return db_run(ss->db,
	              "UPDATE sessions SET state = $1, alerted = $2, paused_by = $3, reason = $4,"
	              " ended = $5, deadline = $6, refused = $7, blocked = $8 WHERE n = $9",
	              DB_ARGS(DB_I(s->state), DB_I(s->alerted), DB_I(row->paused_by),
	                      DB_T(s->reason), DB_I(s->ended_us),
	                      DB_I(s->ended_us != 0 ? s->until_us : row->deadline),
	                      DB_I(s->refused), DB_T(s->blocked), DB_I(row->n)),
	              NULL, NULL, err);
}

int row_save(struct session_store *ss, struct row *row, struct ssb_error *err)
{
	if (save_sums(ss, row, err) != 0 || (row->restated && save_state(ss, row, err) != 0)) {
		return -1;
	}
	row->dirty = row->restated = false;
	return 0;
}

/* ---- policies ------------------------------------------------------------ */

static void policy_free(struct store_policy *p)
{
	session_policy_done(&p->policy);
	free(p);
}

void store_drop_policies(struct session_store *ss)
{
	while (ss->policies != NULL) {
		struct store_policy *next = ss->policies->next;
		policy_free(ss->policies);
		ss->policies = next;
	}
}

struct policy_source {
	const char *digest;
	struct store_policy *made;
	struct ssb_error *err;
};

static int parse_source(void *arg, const struct db_value *v, size_t n)
{
	struct policy_source *q = arg;
	uint8_t hash[SHA256_BYTES];
	char hex[STORE_HEX];

	if (n < 1 || v[0].type != DB_TEXT) {
		return -1;
	}
	sha256(v[0].s, v[0].n, hash);
	hex_encode(hash, sizeof(hash), hex);
	if (strcmp(hex, q->digest) != 0) {
		return store_damaged(q->err, "a policy is not the one that its session began with");
	}
	struct ssb_diags *diags = ssb_diags_new();
	struct store_policy *p = calloc(1, sizeof(*p));
	if (diags == NULL || p == NULL ||
	    session_policy_parse("the stored policy", v[0].s, v[0].n, &p->policy, diags, q->err) !=
	            0) {
		ssb_diags_free(diags);
		if (p != NULL) {
			policy_free(p);
		}
		return ssb_fail(q->err, SSB_E_NOMEM, 0, "store", "out of memory");
	}
	ssb_diags_free(diags);
	memcpy(p->digest, hex, sizeof(hex));
	q->made = p;
	return 0;
}

int row_policy(struct session_store *ss, struct row *row, struct ssb_error *err)
{
	struct policy_source q = { .digest = row->policy, .err = err };

	for (struct store_policy *p = ss->policies; p != NULL; p = p->next) {
		if (memcmp(p->digest, row->policy, sizeof(p->digest)) == 0) {
			row->s.policy = &p->policy;
			return 0;
		}
	}
	if (db_run(ss->db, "SELECT source FROM policies WHERE digest = $1",
	           DB_ARGS(DB_T(row->policy)), parse_source, &q, err) != 0 ||
	    q.made == NULL) {
		return ssb_fail(err, SSB_E_SYS, 0, "store",
		                "the store is damaged: session '%s' has no policy", row->s.id);
	}
	q.made->next = ss->policies;
	ss->policies = q.made;
	row->s.policy = &q.made->policy;
	return 0;
}

int store_keep_policy(struct session_store *ss, const struct session_policy *p, char ret[STORE_HEX],
                      struct ssb_error *err)
{
	const char *source = p->source != NULL ? p->source : "";
	size_t len = p->source != NULL ? p->source_len : 0;
	uint8_t hash[SHA256_BYTES];
	char hex[STORE_HEX];

	sha256(source, len, hash);
	hex_encode(hash, sizeof(hash), hex);
	if (db_run(ss->db,
	           "INSERT INTO policies (digest, source) VALUES ($1, $2)"
	           " ON CONFLICT (digest) DO NOTHING",
	           DB_ARGS(DB_T(hex), DB_TN(source, len)), NULL, NULL, err) != 0) {
		return -1;
	}
	memcpy(ret, hex, sizeof(hex));
	return 0;
}

/* ---- small things -------------------------------------------------------- */

struct number {
	int64_t v;
	bool found;
};

static int take_number(void *arg, const struct db_value *v, size_t n)
{
	struct number *r = arg;

	if (n > 0 && v[0].type == DB_INT && !r->found) {
		*r = (struct number){ v[0].i, true };
	}
	return 0;
}

int store_ask(struct session_store *ss, const char *sql, const struct db_value *args, size_t n,
              int64_t *ret, struct ssb_error *err)
{
	struct number r = { 0 };

	if (db_run(ss->db, sql, args, n, take_number, &r, err) != 0) {
		return -1;
	}
	if (r.found) {
		*ret = r.v;
	}
	return r.found ? 1 : 0;
}

int store_check_text(const char *s, size_t size, const char *what, struct ssb_error *err)
{
	assert(size > 1);

	size_t len = strnlen(s, size);

	if (len == 0 || len == size) {
		return ssb_fail(err, SSB_E_USAGE, 0, "", "%s must have 1 to %zu bytes", what,
		                size - 1);
	}
	return utf8_is_line(s) ? 0
	                       : ssb_fail(err, SSB_E_USAGE, 0, "",
	                                  "%s must be UTF-8 without control characters", what);
}

void store_clean(char *s)
{
	size_t len = strlen(s);
	uint32_t cp = 0;

	for (size_t i = 0; i < len;) {
		size_t n = utf8_decode(s + i, len - i, &cp);
		if (n == 0 || cp < 0x20 || cp == 0x7f) {
			s[i] = '?';
			n = 1;
		}
		i += n;
	}
}

uint64_t store_add(uint64_t a, uint64_t b)
{
	uint64_t sum = 0;

	return __builtin_add_overflow(a, b, &sum) || sum > INT64_MAX ? INT64_MAX : sum;
}
