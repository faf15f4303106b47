/* store.h - what the operations on sessions share: the rows of one call, its
 * transaction, the ledger. Private to this directory and its tests.
 *
 * A call is: call_enter() (begin, lock the tree, read the session and its
 * ancestors), call_due() (what time alone decides), a verdict for each of them,
 * call_decide(), changes in memory with a line of the ledger each, call_apply()
 * (what the verdicts do to states), call_commit() (sign, save, tell, export).
 * Whatever fails before the commit leaves nothing behind. */
#ifndef SESSION_STORE_H
#define SESSION_STORE_H

#include "trace/record.h"
#include "base/own.h"
#include "session/db.h"
#include "session/session.h"

/* Sums that the store holds; past it they stay there. Three of them can be
 * added. */
#define STORE_MAX_MICROS  (INT64_C(1) << 60)
#define STORE_MAX_COUNTS  1024  /* kinds of violations of one session; others are "other" */
#define STORE_MAX_DOMAINS 10000 /* of one session that are told apart */
#define STORE_TEXT        256   /* an action's name */
#define STORE_DETAILS     4096  /* of a violation */
#define STORE_HEX         (2 * SHA256_BYTES + 1)
#define STORE_EXPORT      ((size_t)16 << 20) /* lines of one call for an export */

struct store_policy {
	char digest[STORE_HEX];
	struct session_policy policy;
	struct store_policy *next;
};

/* A session has one number, and is in one tree for ever: no need to ask again. */
struct store_place {
	char id[SESSION_ID];
	int64_t n;
	int64_t root;
};

/* What a ledger has to account for. */
struct totals {
	micros spent;
	micros reserved;
	uint64_t actions;
	uint64_t violations;
	uint64_t meters[SESSION_METERS];
};

struct row {
	int64_t n;
	int64_t parent; /* 0: none */
	int64_t root;
	int64_t depth; /* of a root: 1 */
	int64_t paused_by;
	int64_t deadline;
	int64_t due;     /* of a root: no reservation of its tree times out before; 0: none will */
	int64_t beneath; /* the session that reached it */
	char policy[STORE_HEX];
	struct session s;
	struct totals told; /* as of the last line of its ledger */
	uint64_t seq;       /* of the next line, and what it follows */
	uint64_t mono;
	uint8_t hash[SHA256_BYTES];
	struct buf lines; /* for its exports */
	uint64_t first;   /* the number of the first of them */
	bool dirty;       /* to be saved */
	bool entered;     /* its ledger has grown */
	bool restated;    /* also what it says of its state */
	bool changed;     /* that is another one */
	bool acts;        /* by itself, not with an ancestor: runs hear of it */
};

struct session_store {
	struct db *db;
	const struct owner *owner;
	struct record record;          /* the line under way, of any ledger */
	struct store_policy *policies; /* each is parsed once */
	struct store_place places[64]; /* by the hash of the id */
	struct row kept;               /* the session of the last call, where it has no parent */
	uint64_t kept_version;         /* of the store; once that is another one, it is stale */
	int64_t (*now)(void);          /* NULL: the store's clock; tests have their own */
	bool defers;                   /* session_defer() */
	struct decision *deferred;     /* NULL: no decision waits */
};

struct call {
	struct session_store *ss;
	bool open;                       /* the transaction */
	int64_t now;                     /* one time for all that happens in it; see call_time() */
	bool due;                        /* reservations of the tree have timed out */
	struct row chain[SESSION_DEPTH]; /* the root first, the session asked about last */
	size_t n;
	struct row **others; /* descendants that it has reached */
	size_t n_others;
	/* one for each of the chain; `news`: an alert that was not given before */
	struct verdict verdicts[SESSION_DEPTH];
	bool news[SESSION_DEPTH];
	struct row *decided;
	struct verdict verdict;
	struct row *expired; /* its time ended with this call */
	bool by_owner;       /* whose kill has a grace of its own */
	uint64_t owner_grace_ms;
	bool notify;
	char warning[SESSION_REASON];
};

/* ---- store.c: rows ------------------------------------------------------- */

/* The columns of a session `s`, as row_read() expects them. */
#define ROW_COLUMNS                                                                                \
	"s.n, s.id, s.parent, s.root, s.depth, s.agent, s.policy, s.state, s.alerted,"             \
	" s.paused_by, s.reason, s.created, s.deadline, s.ended, s.spent, s.reserved, s.actions,"  \
	" s.violations, s.runs, s.cpu_ms, s.wall_ms, s.bytes_out, s.bytes_in, s.connections,"      \
	" s.domains, s.seq, s.mono, s.hash, s.refused, s.blocked, s.due"
#define ROW_N_COLUMNS 31

int store_damaged(struct ssb_error *err, const char *what);
/* False: out of range. */
bool store_number(const struct db_value *v, int64_t min, int64_t max, int64_t *ret);
bool store_text(const struct db_value *v, char *ret, size_t size);
/* Without its policy and its parent's id. */
int row_read(const struct db_value *v, size_t n, struct row *ret, struct ssb_error *err);
struct totals row_totals(const struct row *row);
int row_policy(struct session_store *ss, struct row *row, struct ssb_error *err);
int row_save(struct session_store *ss, struct row *row, struct ssb_error *err);
int store_keep_policy(struct session_store *ss, const struct session_policy *p, char ret[STORE_HEX],
                      struct ssb_error *err);
void store_drop_policies(struct session_store *ss);
/* The first column of the first row, a number; `*ret` untouched where there is
 * none: 1 found, 0 not, -1. */
int store_ask(struct session_store *ss, const char *sql, const struct db_value *args, size_t n,
              int64_t *ret, struct ssb_error *err);
/* UTF-8 of 1 to size - 1 bytes, without control characters; `what` is for the
 * message. */
int store_check_text(const char *s, size_t size, const char *what, struct ssb_error *err);

/* What is no UTF-8 (a text that was cut) or a control character becomes '?'. */
void store_clean(char *s);

uint64_t store_add(uint64_t a, uint64_t b); /* stays within a BIGINT */

/* ---- call.c -------------------------------------------------------------- */

/* `c` is zeroed, done by call_done(). */
int call_begin(struct call *c, struct session_store *ss, struct ssb_error *err);
/* Fills c->now, when all locks are had: call_load() does. */
int call_time(struct call *c, struct ssb_error *err);
/* A whole transaction: `take`, with one time for it, and the commit. What it says, or
 * -1; what it says below 0 commits nothing. */
typedef int call_take_fn(struct session_store *ss, int64_t now, uint64_t lease_ms, void *arg,
                         struct ssb_error *err);
int call_take(struct session_store *ss, call_take_fn *take, uint64_t lease_ms, void *arg,
              struct ssb_error *err);
/* After call_begin(). */
int call_load(struct call *c, const char *id, struct ssb_error *err);
/* The same by its number, where `root` is known. */
int call_load_at(struct call *c, int64_t n, int64_t root, struct ssb_error *err);
int call_due(struct call *c, struct ssb_error *err);
/* All three. */
int call_enter(struct call *c, struct session_store *ss, const char *id, struct ssb_error *err);
static inline struct row *call_own(struct call *c)
{
	return &c->chain[c->n - 1];
}
/* The hardest of the verdicts; of equals the one nearest to the root. */
void call_decide(struct call *c);
int call_apply(struct call *c, struct ssb_error *err);
/* reach.c: `row` enters the state `to`, with a line, a message, and its descendants where
 * that reaches them. */
int call_become(struct call *c, struct row *row, enum session_state to, const char *reason,
                struct ssb_error *err);
/* reach.c: the session with this number, of the same tree, in memory from now on.
 * NULL: it is gone or damaged. */
struct row *call_find(struct call *c, int64_t n);
int call_commit(struct call *c, struct ssb_error *err);
/* Commits, fills `*ret` and enforces it. `except` is the caller's own run; NULL: none. */
int call_finish(struct call *c, const struct session_run *except, struct decision *ret,
                struct ssb_error *err);
void call_done(struct call *c); /* undoes what was not committed */

/* ---- act.c --------------------------------------------------------------- */

/* Enforces `*d`, or defers it; `except` as for session_act(). */
void act_enforce(struct session_store *ss, struct decision *d, const struct session_run *except);
/* Enforces the deferred decision, if any. */
void act_finish(struct session_store *ss);

/* ---- session.c ----------------------------------------------------------- */

/* session_sweep(); runs are ended only if `enforce`, else by their keepers. */
int session_expire_due(struct session_store *ss, bool enforce, struct session_swept *ret,
                       struct ssb_error *err);

/* ---- entry.c: the ledger ------------------------------------------------- */

/* Begins a line; members follow, entry_end() adds the snapshot and stores it. */
struct json *entry_begin(struct call *c, struct row *row, const char *kind);
/* What was decided, and where it is more than "ok" why. */
void entry_verdict(const struct call *c, struct json *j);
int entry_end(struct call *c, struct row *row, struct ssb_error *err);
/* A line for each ancestor of the session asked about whose totals have changed since
 * its last one; `event` is the kind of the session's own line. */
int entry_ancestors(struct call *c, const char *event, struct ssb_error *err);
/* The same for one. */
int entry_child(struct call *c, struct row *row, const struct row *child, const char *event,
                struct ssb_error *err);
/* Something was refused to a session that is over. True: it is only counted. The
 * first has a line; one that goes on asking fills no disk. */
bool entry_only_counts(struct row *row);
/* The signature of what was added to the ledger of a session that is over. Where
 * there is no key the ledger stays unsigned: `warning` says so. */
int entry_sign(struct call *c, struct row *row, struct ssb_error *err);
void entry_meter(struct json *j, enum session_meter m, uint64_t v);
void entry_snapshot(struct json *j, const struct session *s);
/* {"name":count,...} of the session. */
int entry_counts(struct session_store *ss, int64_t session, struct json *j, struct ssb_error *err);

/* ---- spend.c ------------------------------------------------------------- */

enum reservation_state { RESERVED, TIMED_OUT };

/* Those of the whole tree whose time is over: what a child has reserved is reserved
 * in its ancestors as well. */
int spend_time_out(struct call *c, struct ssb_error *err);

/* ---- violations.c ---------------------------------------------------------- */

/* Adds `n` to the count of `name` in each of the chain, and puts the harder verdict
 * into theirs. `*ret_count` is that of the session asked about. */
int violations_count(struct call *c, const char *name, uint64_t n, uint64_t *ret_count,
                     struct ssb_error *err);

/* ---- outbox.c ------------------------------------------------------------ */

/* A message for each receiver that the policy of `row` names. */
int outbox_put(struct call *c, struct row *row, const char *event, const char *reason,
               struct ssb_error *err);

/* A db_row_fn: an int64_t, untouched where there is none. */
int outbox_first(void *arg, const struct db_value *v, size_t n);
/* The line that tells of a try; `status` is for people. */
int outbox_entry(struct call *c, const struct outbox_item *item, unsigned code, const char *error,
                 const char *status, struct ssb_error *err);

/* ---- send.c: the ledger, to the collectors that a policy names ------------ */

/* For a session that begins. */
int send_begin(struct call *c, const struct row *row, struct ssb_error *err);
/* The ledger of `row` has grown. */
int send_wake(struct call *c, const struct row *row, struct ssb_error *err);
/* As outbox_take(), outbox_wait(), outbox_done(), which call them. */
int send_take(struct session_store *ss, uint64_t lease_ms, struct outbox_item *ret,
              struct ssb_error *err);
int send_wait(struct session_store *ss, int64_t *ret_due, struct ssb_error *err); /* -1: none */
int send_done(struct session_store *ss, const struct outbox_item *item, unsigned status,
              const char *error, uint64_t retry_ms, struct ssb_error *err);

/* ---- export.c ------------------------------------------------------------ */

struct exports;
/* Opens the files that the lines of this call go to, before the commit, so that
 * they are written in its order; what fails is a warning. NULL: none. */
struct exports *export_open(struct call *c);
void export_write(struct call *c, struct exports *e); /* and closes; accepts NULL */
void export_drop(struct exports *e);

#endif
