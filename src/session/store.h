/* store.h - declarations that the operations on sessions share: the rows of one call, its
 * transaction, the ledger. Private to this directory and its tests.
 *
 * A call has these steps: call_enter() (begins the transaction, locks the tree, reads the session
 * and its ancestors), call_due() (changes that depend only on the time), a verdict for each
 * session, call_decide(), changes in memory with a ledger line each, call_apply() (changes the
 * states as the verdicts say), and call_commit() (signs, saves, sends news, exports). If any step
 * before the commit fails, nothing is changed. */
#ifndef SESSION_STORE_H
#define SESSION_STORE_H

#include <assert.h>

#include "trace/event.h"
#include "trace/record.h"
#include "base/own.h"
#include "session/db.h"
#include "session/session.h"

/* The largest sum in the store; a larger sum is stored as this value. Three of them can be added
 * without overflow. */
#define STORE_MAX_MICROS  (INT64_C(1) << 60)
#define STORE_MAX_COUNTS  1024  /* kinds of violations per session; others count as "other" */
#define STORE_MAX_DOMAINS 10000 /* distinct names per session */
#define STORE_TEXT        256   /* bytes of an action's name */
#define STORE_DETAILS     4096  /* bytes of a violation's details */
#define STORE_HEX         (2 * SHA256_BYTES + 1)
#define STORE_EXPORT      ((size_t)16 << 20) /* most bytes of ledger lines that one call exports */

struct store_policy {
	char digest[STORE_HEX];
	struct session_policy policy;
	struct store_policy *next;
};

/* An entry of a cache: the number and the root of the session `id`. They never change. */
struct store_place {
	char id[SESSION_ID];
	int64_t n;
	int64_t root;
};

/* The sums that ledger lines report. */
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
	int64_t depth; /* 1 for a root */
	int64_t paused_by;
	int64_t deadline;
	/* For a root: no reservation of its tree times out before this time; 0: no reservation is
	 * open. */
	int64_t due;
	int64_t beneath; /* ancestor whose new state also changed this session */
	char policy[STORE_HEX];
	struct session s;
	struct totals told; /* sums in the last line of its ledger */
	uint64_t seq;       /* number of the next line; `hash` is the hash of the line before */
	uint64_t mono;
	uint8_t hash[SHA256_BYTES];
	struct buf lines; /* new ledger lines that must be exported */
	uint64_t first;   /* number of the first line in `lines` */
	bool dirty;       /* the row must be saved */
	bool entered;     /* the ledger of this session has new lines */
	bool restated;    /* state and reason must be saved, too */
	bool changed;     /* the session entered another state */
	/* The state changed, and not because of an ancestor, so the runs must be told. */
	bool acts;
};

struct session_store {
	struct db *db;
	const struct owner *owner;
	pid_t pid;                     /* process that opened the store */
	struct record record;          /* line that is being written, of any ledger */
	struct store_policy *policies; /* parsed policies, each only once */
	struct store_place places[64]; /* indexed by the hash of the id */
	struct row kept;           /* the session of the last call; kept only if it has no parent */
	uint64_t kept_version;     /* db_version() for which `kept` is valid */
	int64_t (*now)(void);      /* NULL: the store's clock; tests set their own */
	bool defers;               /* set by session_defer() */
	struct decision *deferred; /* NULL: no decision is deferred */
};

struct call {
	struct session_store *ss;
	bool open;                       /* the transaction is open */
	int64_t now;                     /* the timestamp for the whole call; see call_time() */
	bool due;                        /* reservations of the tree have timed out */
	struct row chain[SESSION_DEPTH]; /* the root first, the session of the call last */
	size_t n;
	struct row **others; /* descendants that the call has reached */
	size_t n_others;
	/* One verdict for each session of the chain. `news` is true if the verdict's alert was not
	 * given before. */
	struct verdict verdicts[SESSION_DEPTH];
	bool news[SESSION_DEPTH];
	struct row *decided;
	struct verdict verdict;
	struct row *expired; /* the session that expired during this call */
	bool by_owner;       /* a change by the owner; a kill has owner_grace_ms */
	uint64_t owner_grace_ms;
	bool notify;
	char warning[SESSION_REASON];
};

/* ---- store.c: rows ------------------------------------------------------- */

/* The ROW_N_COLUMNS columns of a session `s` that row_read() needs. */
#define ROW_COLUMNS                                                                                \
	"s.n, s.id, s.parent, s.root, s.depth, s.agent, s.policy,"                                 \
	" s.state, s.alerted, s.paused_by, s.reason, s.created, s.deadline, s.ended,"              \
	" s.spent, s.reserved, s.actions, s.violations,"                                           \
	" s.runs, s.cpu_ms, s.wall_ms, s.bytes_out, s.bytes_in, s.connections, s.domains,"         \
	" s.seq, s.mono, s.hash, s.refused, s.blocked, s.due"
#define ROW_N_COLUMNS 31

/* A recursion that adds all descendants to a table down(n, d), which begins with the sessions at
 * depth 1. It is limited, because a damaged store could contain a circle of parents. */
#define ROW_DOWN                                                                                   \
	" UNION ALL SELECT p.n, down.d + 1 FROM sessions p JOIN down ON p.parent = down.n"         \
	" WHERE down.d < 9)"

int store_damaged(struct ssb_error *err, const char *what);
/* Stores the number in *ret. Returns false if the value is not a number from `min` to `max`. */
bool store_number(const struct db_value *v, int64_t min, int64_t max, int64_t *ret);
bool store_text(const struct db_value *v, char *ret, size_t size);

/* How a column is read into a struct: as a number from `min` to `max`, for a member that is a bool
 * or has 32 or 64 bits; or, if `max` is 0, as a text, for a member that is an array of char. */
struct store_column {
	size_t offset;
	size_t size;
	int64_t min;
	int64_t max;
};
#define STORE_NUMBER(type, member, min, max)                                                       \
	{                                                                                          \
		offsetof(struct type, member), sizeof(((struct type *)0)->member), min, max        \
	}
#define STORE_TEXT_IN(type, member) STORE_NUMBER(type, member, 0, 0)
/* Reads the first `n` values of a row. Returns false at the first value that is not valid. */
bool store_read(const struct db_value *v, const struct store_column *c, size_t n, void *ret);

/* Reads a session from a row. Does not fill the policy and the parent's id. */
int row_read(const struct db_value *v, size_t n, struct row *ret, struct ssb_error *err);
struct totals row_totals(const struct row *row);
int row_policy(struct session_store *ss, struct row *row, struct ssb_error *err);
int row_save(struct session_store *ss, struct row *row, struct ssb_error *err);
int store_keep_policy(struct session_store *ss, const struct session_policy *p, char ret[STORE_HEX],
                      struct ssb_error *err);
void store_drop_policies(struct session_store *ss);
/* Reads a number from the first column of the first row. Returns 1 if there is one, 0 if there is
 * none (`*ret` is untouched), -1 on failure. */
int store_ask(struct session_store *ss, const char *sql, const struct db_value *args, size_t n,
              int64_t *ret, struct ssb_error *err);
/* Fails unless `s` is UTF-8 of 1 to size - 1 bytes without control characters. `what` names
 * it in the message. */
int store_check_text(const char *s, size_t size, const char *what, struct ssb_error *err);

/* Replaces control characters and invalid UTF-8, which a cut can leave, by '?'. */
void store_clean(char *s);

uint64_t store_add(uint64_t a, uint64_t b); /* saturates at the maximum of a BIGINT */

/* ---- transaction.c ------------------------------------------------------- */

/* Begins the transaction. `c` must be zeroed, and must be released with call_done(). */
int call_begin(struct call *c, struct session_store *ss, struct ssb_error *err);
/* Sets c->now to the time of the store. Must be called when all locks are held; call_load() does
 * so. */
int call_time(struct call *c, struct ssb_error *err);
/* Runs `take` in one transaction with one timestamp, and commits. Returns the result of `take`, or
 * -1; if the result is below 0, nothing is committed. */
typedef int call_take_fn(struct session_store *ss, int64_t now, uint64_t lease_ms, void *arg,
                         struct ssb_error *err);
int call_take(struct session_store *ss, call_take_fn *take, uint64_t lease_ms, void *arg,
              struct ssb_error *err);
/* Loads the session `id` and its ancestors. Must follow call_begin(). */
int call_load(struct call *c, const char *id, struct ssb_error *err);
/* Like call_load(), by the session's number and root. */
int call_load_at(struct call *c, int64_t n, int64_t root, struct ssb_error *err);
int call_due(struct call *c, struct ssb_error *err);
/* Does call_begin(), call_load() and call_due(). */
int call_enter(struct call *c, struct session_store *ss, const char *id, struct ssb_error *err);
static inline struct row *call_own(struct call *c)
{
	assert(c->n > 0);
	return &c->chain[c->n - 1];
}
/* Returns the row `i` of all rows that the call has in memory: i < c->n + c->n_others. */
static inline struct row *call_row(struct call *c, size_t i)
{
	assert(i < c->n + c->n_others);
	return i < c->n ? &c->chain[i] : c->others[i - c->n];
}
/* Chooses the hardest verdict. If several are equally hard, chooses the one nearest to the root. */
void call_decide(struct call *c);
int call_apply(struct call *c, struct ssb_error *err);
/* reach.c: sets the state of `row` to `to`, and writes a ledger line and a message. Does the same
 * for the descendants that must follow. */
int call_become(struct call *c, struct row *row, enum session_state to, const char *reason,
                struct ssb_error *err);
/* reach.c: returns the session with this number, which must be in the same tree. It stays in memory
 * until the end of the call. NULL: it does not exist or is damaged. */
struct row *call_find(struct call *c, int64_t n);
int call_commit(struct call *c, struct ssb_error *err);
/* Commits, fills `*ret` and enforces the decision. `except` is the caller's own run, or NULL. */
int call_finish(struct call *c, const struct session_run *except, struct decision *ret,
                struct ssb_error *err);
void call_done(struct call *c); /* rolls back changes that were not committed */

/* ---- act.c --------------------------------------------------------------- */

/* Enforces `*d`, or defers it if the store defers decisions. `except`: see session_act(). */
void act_enforce(struct session_store *ss, struct decision *d, const struct session_run *except);
/* Enforces the deferred decision, if any. */
void act_finish(struct session_store *ss);

/* ---- session.c ----------------------------------------------------------- */

/* Like session_sweep(). If `enforce` is false, the sessions expire in the store only, and the
 * keepers end the runs. */
int session_expire_due(struct session_store *ss, bool enforce, struct session_swept *ret,
                       struct ssb_error *err);

/* ---- entry.c: the ledger ------------------------------------------------- */

/* Begins a line. The caller adds members; entry_end() adds the snapshot and stores the
 * line. */
struct json *entry_begin(struct call *c, struct row *row, enum event_kind kind);
/* Adds the decision, and its reason unless that is "ok". */
void entry_verdict(const struct call *c, struct json *j);
int entry_end(struct call *c, struct row *row, struct ssb_error *err);
/* Adds a line for each ancestor whose totals have changed since its last line. `event` is the
 * kind of the session's own line. */
int entry_ancestors(struct call *c, enum event_kind event, struct ssb_error *err);
/* Adds one line of entry_ancestors(), for the ancestor `row`. */
int entry_child(struct call *c, struct row *row, const struct row *child, enum event_kind event,
                struct ssb_error *err);
/* If the session is over, counts a refusal. Returns true if the refusal must not get a line: only
 * the first one gets a line, so that an agent that continues to ask cannot fill the disk. */
bool entry_only_counts(struct row *row);
/* Signs the new lines in the ledger of a session that is over. Without a key the ledger stays
 * unsigned, and c->warning says so. */
int entry_sign(struct call *c, struct row *row, struct ssb_error *err);
void entry_snapshot(struct json *j, const struct session *s);
/* Writes {"name":count,...} of the session's violations. */
int entry_counts(struct session_store *ss, int64_t session, struct json *j, struct ssb_error *err);

/* ---- spend.c ------------------------------------------------------------- */

enum reservation_state { RESERVED, TIMED_OUT };

/* Times out the due reservations of the whole tree, not only of this session, because a reservation
 * of a child also counts in the child's ancestors. */
int spend_time_out(struct call *c, struct ssb_error *err);

/* ---- violations.c ---------------------------------------------------------- */

/* Adds `n` to the count of `name` in each session of the chain, and keeps the harder verdict of
 * each session. `*ret_count` is the count of the session of the call. */
int violations_count(struct call *c, const char *name, uint64_t n, uint64_t *ret_count,
                     struct ssb_error *err);

/* ---- outbox.c ------------------------------------------------------------ */

/* Writes a message for each receiver that the policy of `row` names. */
int outbox_put(struct call *c, struct row *row, enum event_kind event, const char *reason,
               struct ssb_error *err);

/* A db_row_fn that fills an int64_t. If there is no number, the int64_t is untouched. */
int outbox_first(void *arg, const struct db_value *v, size_t n);
/* Writes the ledger line about one try. */
int outbox_entry(struct call *c, const struct outbox_item *item, unsigned code, const char *error,
                 enum outbox_state state, struct ssb_error *err);

/* ---- send.c: sends the ledger to the collectors of a policy ---------------- */

/* Must be called for each new session. */
int send_begin(struct call *c, const struct row *row, struct ssb_error *err);
/* Must be called for each `row` whose ledger gets new lines. */
int send_wake(struct call *c, const struct row *row, struct ssb_error *err);
/* Like outbox_take(), outbox_wait() and outbox_done(), which call these functions. */
int send_take(struct session_store *ss, uint64_t lease_ms, struct outbox_item *ret,
              struct ssb_error *err);
int send_wait(struct session_store *ss, int64_t *ret_due, struct ssb_error *err); /* -1: none */
int send_done(struct session_store *ss, const struct outbox_item *item, unsigned status,
              const char *error, uint64_t retry_ms, struct ssb_error *err);

/* ---- export.c ------------------------------------------------------------ */

struct exports;
/* Opens the export files for the lines of this call. Must be called before the commit, so that the
 * files are written in the order of commits. A failure only causes a warning. Returns NULL if there
 * are no files. */
struct exports *export_open(struct call *c);
void export_write(struct call *c, struct exports *e); /* also frees `e`; accepts NULL */
void export_drop(struct exports *e);

#endif
