/* send.c - sends ledgers to collectors: remembers how much of a ledger each collector has, and
 * chooses the next lines.
 *
 * An export does not make it more expensive to write a ledger line, because a new line changes no
 * row of `sends`. Such a row has the number of the first line that a collector lacks, and the
 * herald compares this number with the end of the ledger. The row advances in the transaction
 * that records that a request was accepted. So if a herald dies, some lines are sent again, but
 * no line is left out. When the session is over and all lines are sent, its span is sent and the
 * row is closed; a later line opens it again.
 *
 * Signatures and lines about these deliveries are not sent: if only such lines are left, the row
 * advances without a request. */
#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "session/ledger_otlp.h"
#include "session/herald.h"
#include "session/schema.h"
#include "session/store.h"

#define QUIET_MOST 256 /* most rows that advance without a request in one send_take() */
#define SEND_LINES 500 /* most lines of one request; see read_part() */
#define AGAIN_US   (INT64_C(1000) * 1000) /* wait between requests, unless the session is over */

enum send_state { SENDING, ALL_SENT };

/* ---- writing ------------------------------------------------------------- */

int send_begin(struct call *c, const struct row *row, struct ssb_error *err)
{
	assert(c->open && row->s.policy != NULL);

	const struct session_policy *p = row->s.policy;

	for (size_t i = 0; session_policy_sends(p) && i < p->n_exports; i++) {
		if (p->exports[i].kind == EXPORT_OTEL &&
		    db_run(c->ss->db,
		           "INSERT INTO sends (session, url, sent, span, tries, due, leased,"
		           " state) VALUES ($1, $2, 0, 0, 0, 0, 0, 0)",
		           DB_ARGS(DB_I(row->n), DB_T(p->exports[i].to)), NULL, NULL, err) != 0) {
			return -1;
		}
	}
	return 0;
}

int send_wake(struct call *c, const struct row *row, struct ssb_error *err)
{
	if (row->s.policy == NULL || !session_policy_sends(row->s.policy)) {
		return 0;
	}
	c->notify = true;
	if (!session_is_over(row->s.state)) {
		return 0; /* rows are never closed before the session is over */
	}
	return db_run(c->ss->db, "UPDATE sends SET state = 0 WHERE session = $1 AND state = 1",
	              DB_ARGS(DB_I(row->n)), NULL, NULL, err);
}

/* ---- what is next -------------------------------------------------------- */

/* A row of `sends` and its session. */
struct next {
	int64_t n;
	int64_t root;
	int64_t session;
	int64_t sent;
	int64_t span;
	int64_t seq;
	int64_t ended;
	struct outbox_item item;
	bool found;
	bool bad;
};

static void next_done(struct next *x)
{
	outbox_item_done(&x->item);
}

static int find_row(void *arg, const struct db_value *v, size_t n)
{
	struct next *x = arg;

	x->found = n == 2 && store_number(&v[0], 1, INT64_MAX, &x->n) &&
	           store_number(&v[1], 1, INT64_MAX, &x->root);
	x->bad = !x->found;
	return x->bad ? -1 : 0;
}

static int read_row(void *arg, const struct db_value *v, size_t n)
{
	struct next *x = arg;
	int64_t tries = 0;

	x->found = true;
	x->bad = n != 9 || !store_text(&v[0], x->item.session, sizeof(x->item.session)) ||
	         !store_number(&v[1], 1, SESSION_MAX_N, &x->session) ||
	         !store_number(&v[2], 0, INT64_MAX / 2, &x->item.begun_us) ||
	         !store_number(&v[3], 0, SESSION_MAX_LINES, &x->seq) ||
	         !store_number(&v[4], 0, INT64_MAX, &x->ended) || v[5].type != DB_TEXT ||
	         !store_number(&v[6], 0, SESSION_MAX_LINES, &x->sent) ||
	         !store_number(&v[7], 0, 1, &x->span) ||
	         !store_number(&v[8], 0, UINT32_MAX, &tries);
	if (!x->bad) {
		x->item.n = x->n;
		x->item.kind = NOTIFY_OTEL;
		x->item.tries = (unsigned)tries;
		x->item.url = strndup(v[5].s, v[5].n);
		x->bad = x->item.url == NULL;
	}
	return x->bad ? -1 : 0;
}

/* Finds the next row. Returns 1 if its session is locked now, 0 if another process took the row, 2
 * if there is no row. */
static int look_up_next(struct session_store *ss, int64_t now, struct next *x,
                        struct ssb_error *err)
{
	if (db_run(ss->db,
	           "SELECT e.n, s.root FROM sends e JOIN sessions s ON s.n = e.session"
	           " WHERE e.state = 0 AND e.due <= $1 AND e.leased <= $1"
	           " AND (e.sent < s.seq OR s.ended <> 0) ORDER BY e.due LIMIT 1",
	           DB_ARGS(DB_I(now)), find_row, x, err) != 0 ||
	    x->bad) {
		return store_damaged(err, "an export is not valid");
	}
	if (!x->found) {
		return 2;
	}
	x->found = false;
	if (db_lock_tree(ss->db, x->root, err) != 0 ||
	    db_run(ss->db,
	           "SELECT s.id, s.n, s.created, s.seq, s.ended, e.url, e.sent, e.span, e.tries"
	           " FROM sends e JOIN sessions s ON s.n = e.session WHERE e.n = $1"
	           " AND e.state = 0 AND e.leased <= $2 AND e.due <= $2",
	           DB_ARGS(DB_I(x->n), DB_I(now)), read_row, x, err) != 0 ||
	    x->bad) {
		return store_damaged(err, "an export is not valid");
	}
	return x->found ? 1 : 0;
}

/* ---- the lines ----------------------------------------------------------- */

struct part {
	bool span;
	struct buf out;
	struct line line;
	int64_t upto;
	size_t lines;
	size_t dropped;
};

static void part_done(struct part *p)
{
	buf_done(&p->out);
	line_done(&p->line);
}

/* Returns true if the span has room for the line. Some room is kept for the end of the session,
 * because a span without its end is useless. */
static bool has_room(struct part *p, size_t len)
{
	return ledger_is_end(&p->line) ||
	       (p->lines < OTLP_MAX_EVENTS && p->out.len + len <= MAX_SEND_BYTES);
}

static int take_line(void *arg, const struct db_value *v, size_t n)
{
	struct part *p = arg;
	int64_t line = 0;
	const char *why = NULL;

	if (n != 2 || !store_number(&v[0], 0, INT64_MAX, &line) ||
	    SESSION_LINE_SEQ(line) < p->upto || v[1].type != DB_TEXT) {
		return 0;
	}
	/* A damaged line is omitted, and the other lines are still sent; `audit verify` finds the
	 * damage. */
	bool good = line_parse(&p->line, v[1].s, v[1].n, &why) == 0;
	bool wanted = good && (p->span ? ledger_is_of_span : ledger_is_told)(&p->line);
	if (wanted && p->span && !has_room(p, v[1].n)) {
		p->dropped++;
		wanted = false;
	}
	if (wanted && !p->span && p->lines > 0 && p->out.len + v[1].n > MAX_SEND_BYTES) {
		return 1; /* the next request begins with this line */
	}
	if (wanted) {
		buf_add(&p->out, v[1].s, v[1].n);
		p->lines++;
	}
	p->upto = SESSION_LINE_SEQ(line) + 1;
	return 0;
}

/* Reads the next SEND_LINES lines. */
static int read_part(struct session_store *ss, const struct next *x, struct part *p,
                     struct ssb_error *err)
{
	int64_t from = p->upto;

	if (db_run(ss->db,
	           "SELECT n, line FROM ledger WHERE n >= $1 AND n < $2 ORDER BY n LIMIT 500",
	           DB_ARGS(DB_I(SESSION_LINE(x->session, from)),
	                   DB_I(SESSION_LINE(x->session, x->seq))),
	           take_line, p, err) != 0) {
		return -1;
	}
	if (p->out.failed) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "outbox", "out of memory");
	}
	/* If no line was read, the store is damaged and lacks these lines. They are skipped,
	 * because waiting would not help. */
	p->upto = p->upto == from ? x->seq : p->upto;
	return 0;
}

/* Fills the item with the lines that were not sent yet. If the session is over and all its lines
 * were sent, fills it with the lines of its span. If the item has 0 lines, nothing must be sent. */
static int fill_item(struct session_store *ss, struct next *x, struct ssb_error *err)
{
	AUTO(part_done) struct part p = { .upto = x->sent };

	/* One line more than MAX_SEND_BYTES: has_room() always accepts the end of a session. */
	buf_init(&p.out, MAX_SEND_BYTES + MAX_RECORD_LINE);
	p.span = x->sent >= x->seq && x->ended != 0 && x->span == 0;
	p.upto = p.span ? 0 : x->sent;
	do {
		if (p.upto < x->seq && read_part(ss, x, &p, err) != 0) {
			return -1;
		}
	} while (p.upto < x->seq && (p.span || p.lines == 0));
	x->item.span = p.span;
	x->item.upto = (uint64_t)p.upto;
	x->item.lines = p.lines;
	x->item.dropped = p.dropped;
	if (p.lines > 0) {
		x->item.body = buf_steal(&p.out);
	}
	return p.lines == 0 || x->item.body != NULL
	               ? 0
	               : ssb_fail(err, SSB_E_NOMEM, 0, "outbox", "out of memory");
}

/* Called if there is nothing to send: goes on to the span, or closes the row. */
static int move_on(struct session_store *ss, const struct next *x, struct ssb_error *err)
{
	bool over = x->ended != 0 && (x->span != 0 || x->item.span);

	return db_run(ss->db,
	              "UPDATE sends SET sent = $1, span = $2, state = $3, leased = 0 WHERE n = $4",
	              DB_ARGS(DB_I(x->item.upto), DB_I(x->span != 0 || x->item.span),
	                      DB_I(over ? ALL_SENT : SENDING), DB_I(x->n)),
	              NULL, NULL, err);
}

/* Takes the next row; results as for look_up_next(). Also returns 0 if the row advanced without a
 * request. */
static int take_one(struct session_store *ss, int64_t now, uint64_t lease_ms, void *arg,
                    struct ssb_error *err)
{
	struct next *x = arg;
	int got = look_up_next(ss, now, x, err);

	if (got != 1) {
		return got;
	}
	if (fill_item(ss, x, err) != 0) {
		return -1;
	}
	if (x->item.lines == 0) {
		return move_on(ss, x, err);
	}
	return db_run(ss->db, "UPDATE sends SET leased = $1 WHERE n = $2",
	              DB_ARGS(DB_I(now + (int64_t)lease_ms * 1000), DB_I(x->n)), NULL, NULL,
	              err) == 0
	               ? 1
	               : -1;
}

int send_take(struct session_store *ss, uint64_t lease_ms, struct outbox_item *ret,
              struct ssb_error *err)
{
	for (int i = 0; i < QUIET_MOST; i++) {
		AUTO(next_done) struct next x = { 0 };
		int got = call_take(ss, take_one, lease_ms, &x, err);
		if (got < 0) {
			return -1;
		}
		if (got == 1) {
			*ret = x.item;
			x.item = (struct outbox_item){ 0 };
		}
		if (got != 0) {
			return got == 1 ? 1 : 0;
		}
	}
	return 0;
}

int send_wait(struct session_store *ss, int64_t *ret_due, struct ssb_error *err)
{
	int64_t first = -1;

	if (db_run(ss->db,
	           "SELECT MIN(CASE WHEN e.leased > e.due THEN e.leased ELSE e.due END)"
	           " FROM sends e JOIN sessions s ON s.n = e.session WHERE e.state = 0"
	           " AND (e.sent < s.seq OR s.ended <> 0)",
	           NULL, 0, outbox_first, &first, err) != 0) {
		return -1;
	}
	*ret_due = first;
	return 0;
}

/* ---- sent, or not -------------------------------------------------------- */

/* Returns when the next request is due: now if many lines are left or the session is over,
 * otherwise AGAIN_US later. */
static int64_t next_due(const struct call *c, const struct row *own, const struct outbox_item *item)
{
	bool behind = own->seq > item->upto + SEND_LINES;

	return behind || session_is_over(own->s.state) ? c->now : c->now + AGAIN_US;
}

int send_done(struct session_store *ss, const struct outbox_item *item, unsigned status,
              const char *error, uint64_t retry_ms, struct ssb_error *err)
{
	AUTO(call_done) struct call c = { 0 };
	bool sent = status >= 200 && status < 300;
	bool over = sent || retry_ms == 0;

	if (call_enter(&c, ss, item->session, err) != 0) {
		return -1;
	}
	int64_t due = over ? next_due(&c, call_own(&c), item) : c.now + (int64_t)retry_ms * 1000;
	if (db_run(ss->db,
	           "UPDATE sends SET sent = CASE WHEN $1 > sent THEN $1 ELSE sent END,"
	           " span = CASE WHEN $2 > span THEN $2 ELSE span END, tries = $3, due = $4,"
	           " leased = 0 WHERE n = $5",
	           DB_ARGS(DB_I(over ? item->upto : 0), DB_I(over && item->span),
	                   DB_I(over ? 0 : item->tries + 1), DB_I(due), DB_I(item->n)),
	           NULL, NULL, err) != 0) {
		return -1;
	}
	/* If a collector is down for a long time, only its first HERALD_TRIES failures get a line
	 * in the ledger. */
	if ((over || item->tries < HERALD_TRIES) && outbox_entry(&c, item, status, error,
	                                                         sent   ? OUTBOX_DELIVERED
	                                                         : over ? OUTBOX_GIVEN_UP
	                                                                : OUTBOX_WAITING,
	                                                         err) != 0) {
		return -1;
	}
	return call_commit(&c, err);
}
