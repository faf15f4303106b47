/* look.c - reads sessions, runs, counts and ledgers from the store. Sessions whose time is
 * over are expired first, so that none of them is shown as active. Callbacks are called after
 * the transaction, so they may be slow. */
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/hex.h"
#include "session/schema.h"
#include "session/store.h"

#define LEDGER_PAGE  256
#define LEDGER_BYTES ((size_t)(LEDGER_PAGE + 1) * 64 * 1024)

int session_get(struct session_store *ss, const char *id, struct session *ret,
                struct ssb_error *err)
{
	AUTO(call_done) struct call c = { 0 };

	if (call_enter(&c, ss, id, err) != 0 || call_commit(&c, err) != 0) {
		return -1;
	}
	*ret = call_own(&c)->s;
	return 0;
}

/* ---- all of them --------------------------------------------------------- */

struct look_list {
	struct row *v;
	size_t n;
	size_t damaged;
	bool failed;
};

static void list_done(struct look_list *l)
{
	free(l->v);
}

static int list_add(void *arg, const struct db_value *v, size_t n)
{
	struct look_list *l = arg;
	struct ssb_error why = { 0 };
	struct row row;

	if (row_read(v, n, &row, &why) != 0 || n != ROW_N_COLUMNS + 1 ||
	    !store_text(&v[ROW_N_COLUMNS], row.s.parent, sizeof(row.s.parent))) {
		l->damaged++;
		return 0;
	}
	if (!ARRAY_MORE(l->v, l->n)) {
		l->failed = true;
		return -1;
	}
	l->v[l->n++] = row;
	return 0;
}

static int list_load(struct session_store *ss, bool all, struct look_list *l, struct ssb_error *err)
{
	AUTO(call_done) struct call c = { 0 };
	const char *sql = all ? "SELECT " ROW_COLUMNS ", COALESCE(p.id, '') FROM sessions s"
	                        " LEFT JOIN sessions p ON p.n = s.parent ORDER BY s.n DESC"
	                      : "SELECT " ROW_COLUMNS ", COALESCE(p.id, '') FROM sessions s"
	                        " LEFT JOIN sessions p ON p.n = s.parent WHERE s.ended = 0"
	                        " ORDER BY s.n DESC";

	if (call_begin(&c, ss, err) != 0 || db_run(ss->db, sql, NULL, 0, list_add, l, err) != 0) {
		return -1;
	}
	if (l->failed) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "store", "out of memory");
	}
	for (size_t i = 0; i < l->n; i++) {
		struct ssb_error why = { 0 };
		l->damaged += row_policy(ss, &l->v[i], &why) != 0 ? 1 : 0;
	}
	return 0;
}

int session_each(struct session_store *ss, bool all, session_fn *fn, void *arg,
                 struct ssb_error *err)
{
	AUTO(list_done) struct look_list l = { 0 };
	struct session_swept swept;

	if (session_expire_due(ss, false, &swept, err) != 0 || list_load(ss, all, &l, err) != 0) {
		return -1;
	}
	for (size_t i = 0; i < l.n; i++) {
		if (l.v[i].s.policy != NULL && fn(arg, &l.v[i].s) != 0) {
			return 0;
		}
	}
	return l.damaged == 0 ? 0 : store_damaged(err, "rows of sessions are not valid");
}

/* ---- runs ---------------------------------------------------------------- */

struct run_list {
	struct session_run *v;
	size_t n;
	bool failed;
	bool damaged;
};

static void run_list_done(struct run_list *l)
{
	free(l->v);
}

static const struct store_column RUN_COLUMNS[] = {
	STORE_NUMBER(session_run, n, 1, INT64_MAX),
	STORE_TEXT_IN(session_run, session),
	STORE_TEXT_IN(session_run, run_id),
	STORE_TEXT_IN(session_run, host),
	STORE_TEXT_IN(session_run, boot_id),
	STORE_NUMBER(session_run, keeper, 0, INT32_MAX),
	STORE_TEXT_IN(session_run, socket),
	STORE_NUMBER(session_run, init, 0, INT32_MAX),
	STORE_NUMBER(session_run, init_start, 0, INT64_MAX),
	STORE_NUMBER(session_run, begun_us, 0, INT64_MAX),
};

static int run_add(void *arg, const struct db_value *v, size_t n)
{
	struct run_list *l = arg;
	struct session_run r;

	/* The name must not contain a slash, because the socket is opened relative to the directory
	 * of live.h. */
	if (n != ARRAY_LEN(RUN_COLUMNS) || !store_read(v, RUN_COLUMNS, n, &r) ||
	    strchr(r.socket, '/') != NULL) {
		l->damaged = true;
		return 0;
	}
	if (!ARRAY_MORE(l->v, l->n)) {
		l->failed = true;
		return -1;
	}
	l->v[l->n++] = r;
	return 0;
}

int session_runs(struct session_store *ss, const char *id, session_run_fn *fn, void *arg,
                 struct ssb_error *err)
{
	AUTO(call_done) struct call c = { 0 };
	AUTO(run_list_done) struct run_list l = { 0 };

	if (call_enter(&c, ss, id, err) != 0 ||
	    db_run(ss->db,
	           "WITH RECURSIVE down(n, d) AS (SELECT n, 1 FROM sessions"
	           " WHERE n = $1" ROW_DOWN
	           " SELECT r.n, s.id, r.run_id, r.host, r.boot, r.keeper, r.socket, r.init,"
	           " r.init_start, r.begun FROM down JOIN sessions s ON s.n = down.n"
	           " JOIN runs r ON r.session = s.n WHERE r.ended = 0 ORDER BY r.n",
	           DB_ARGS(DB_I(call_own(&c)->n)), run_add, &l, err) != 0) {
		return -1;
	}
	if (l.failed) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "store", "out of memory");
	}
	if (call_commit(&c, err) != 0) {
		return -1;
	}
	for (size_t i = 0; i < l.n; i++) {
		if (fn(arg, &l.v[i]) != 0) {
			return 0;
		}
	}
	return l.damaged ? store_damaged(err, "the row of a run is not valid") : 0;
}

/* ---- counts -------------------------------------------------------------- */

struct count_list {
	struct {
		char name[STORE_TEXT];
		uint64_t n;
	} v[STORE_MAX_COUNTS + 64];
	size_t n;
};

static int count_add(void *arg, const struct db_value *v, size_t n)
{
	struct count_list *l = arg;
	int64_t count = 0;

	if (n == 2 && l->n < ARRAY_LEN(l->v) &&
	    store_text(&v[0], l->v[l->n].name, sizeof(l->v[l->n].name)) &&
	    store_number(&v[1], 0, INT64_MAX, &count)) {
		l->v[l->n++].n = (uint64_t)count;
	}
	return 0;
}

int session_counts(struct session_store *ss, const char *id, session_count_fn *fn, void *arg,
                   struct ssb_error *err)
{
	AUTO(call_done) struct call c = { 0 };
	auto_free struct count_list *l = calloc(1, sizeof(*l));

	if (l == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "store", "out of memory");
	}
	if (call_enter(&c, ss, id, err) != 0 ||
	    db_run(ss->db, "SELECT name, n FROM counts WHERE session = $1 ORDER BY name",
	           DB_ARGS(DB_I(call_own(&c)->n)), count_add, l, err) != 0 ||
	    call_commit(&c, err) != 0) {
		return -1;
	}
	for (size_t i = 0; i < l->n; i++) {
		if (fn(arg, l->v[i].name, l->v[i].n) != 0) {
			return 0;
		}
	}
	return 0;
}

/* ---- the ledger ---------------------------------------------------------- */

struct page {
	struct buf text;
	size_t ends[LEDGER_PAGE]; /* end of each line in `text` */
	size_t n;
};

static int page_add(void *arg, const struct db_value *v, size_t n)
{
	struct page *p = arg;

	if (n != 1 || v[0].type != DB_TEXT || p->n == LEDGER_PAGE) {
		p->text.failed = true;
		return -1;
	}
	buf_add(&p->text, v[0].s, v[0].n);
	p->ends[p->n++] = p->text.len;
	return 0;
}

static int page_load(struct session_store *ss, int64_t session, int64_t from, struct page *p,
                     struct ssb_error *err)
{
	AUTO(call_done) struct call c = { 0 };

	buf_reset(&p->text);
	p->n = 0;
	if (call_begin(&c, ss, err) != 0 ||
	    db_run(ss->db, "SELECT line FROM ledger WHERE n >= $1 AND n < $2 ORDER BY n LIMIT 256",
	           DB_ARGS(DB_I(SESSION_LINE(session, from)), DB_I(SESSION_LINE(session + 1, 0))),
	           page_add, p, err) != 0) {
		return -1;
	}
	return p->text.failed ? store_damaged(err, "a ledger cannot be read") : 0;
}

static void page_done(struct page *p)
{
	buf_done(&p->text);
}

int session_ledger(struct session_store *ss, const char *id, session_line_fn *fn, void *arg,
                   struct ssb_error *err)
{
	AUTO(page_done) struct page p = { 0 };
	int64_t session = 0;

	buf_init(&p.text, LEDGER_BYTES);
	{
		AUTO(call_done) struct call c = { 0 };
		if (call_enter(&c, ss, id, err) != 0 || call_commit(&c, err) != 0) {
			return -1;
		}
		session = call_own(&c)->n;
	}
	int64_t from = 0;
	do {
		if (page_load(ss, session, from, &p, err) != 0) {
			return -1;
		}
		for (size_t i = 0, at = 0; i < p.n; at = p.ends[i++]) {
			if (fn(arg, p.text.data + at, p.ends[i] - at) != 0) {
				return 0;
			}
		}
		from += (int64_t)p.n;
	} while (p.n == LEDGER_PAGE);
	return 0;
}

struct known {
	struct ledger_known *ret;
	int64_t n;
	const char *hash; /* in hexadecimal */
};

static int known_row(void *arg, const struct db_value *v, size_t n)
{
	struct known *k = arg;
	int64_t lines = 0;

	k->ret->found = n == 2 && store_number(&v[0], 1, INT64_MAX, &k->n) &&
	                store_number(&v[1], 0, INT64_MAX, &lines);
	k->ret->lines = (uint64_t)lines;
	return 0;
}

/* Compares `hash` with the hash at the end of the line. */
static int known_line(void *arg, const struct db_value *v, size_t n)
{
	struct known *k = arg;

	k->ret->same = n == 1 && v[0].type == DB_TEXT && v[0].n > RECORD_HASH_TAIL &&
	               memcmp(v[0].s + v[0].n - RECORD_HASH_TAIL + sizeof(RECORD_HASH_KEY) - 1,
	                      k->hash, RECORD_HASH_HEX) == 0;
	return 0;
}

int session_ledger_known(struct session_store *ss, const char *id, uint64_t seq,
                         const uint8_t hash[SHA256_BYTES], struct ledger_known *ret,
                         struct ssb_error *err)
{
	AUTO(call_done) struct call c = { 0 };
	struct ledger_known known = { 0 };
	char hex[STORE_HEX];
	struct known k = { .ret = &known, .hash = hex };

	hex_encode(hash, SHA256_BYTES, hex);
	if (call_begin(&c, ss, err) != 0 ||
	    db_run(ss->db, "SELECT n, seq FROM sessions WHERE id = $1", DB_ARGS(DB_T(id)),
	           known_row, &k, err) != 0) {
		return -1;
	}
	if (known.found && seq <= SESSION_MAX_LINES &&
	    db_run(ss->db, "SELECT line FROM ledger WHERE n = $1",
	           DB_ARGS(DB_I(SESSION_LINE(k.n, seq))), known_line, &k, err) != 0) {
		return -1;
	}
	*ret = known;
	return 0;
}

/* ---- news ---------------------------------------------------------------- */

int session_news_fd(const struct session_store *ss)
{
	return db_news_fd(ss->db);
}

int session_news(struct session_store *ss, char ret_id[SESSION_ID], struct ssb_error *err)
{
	return db_news(ss->db, ret_id, err);
}
