/* session.h - sessions in their store: many runs of one agent under one policy.
 *
 * Every call is one transaction. It locks the session and its ancestors, lets engine.h decide,
 * applies the decision, and writes a line to the ledger of each session that changed. When the call
 * returns, the transaction is on the disk. The store is SQLite in the state directory, or
 * PostgreSQL if the owner's policy.yaml says `store: postgresql://...`. If the transaction fails,
 * the call fails and nothing was allowed.
 *
 * A call that fills a decision also enforces it before it returns: it ends, pauses or resumes runs,
 * and starts the process that sends messages to the owner (act.h). The caller may ignore the
 * decision. A caller that must send an answer first uses session_defer(). If another session
 * expires during a call, the call does not end its runs: their keepers do, because they know the
 * time.
 *
 * A store belongs to the process that opened it: it must not be used after a fork. */
#ifndef SESSION_SESSION_H
#define SESSION_SESSION_H

#include <sys/types.h>

#include "base/sha256.h"
#include "policy/plan.h"
#include "session/engine.h"

struct session_store;

/* Opens the store. `*ret` is new and borrows `o`. The error is SSB_E_NOT_FOUND if the library of
 * the store is missing; its message names the package to install. */
int session_store_open(const struct owner *o, struct session_store **ret, struct ssb_error *err);
/* Returns false if there is no store yet; session_store_open() would make one. */
bool session_store_exists(const struct owner *o);
/* Enforces the deferred decision, if any, and frees `ss`. Accepts NULL. */
void session_store_close(struct session_store *ss);

/* The result for the runs that a decision concerns. If there are no such runs, all are 0. */
struct act_report {
	size_t runs;      /* running on this machine */
	size_t reached;   /* ended, paused or resumed by their keeper */
	size_t forced;    /* ended through their pidfd */
	size_t elsewhere; /* on other machines; their keepers get the change from the store */
	size_t left;      /* still running when the wait ended */
	/* Keepers that did not answer which session their run belongs to. They are counted only if
	 * the store could not answer it either. */
	size_t silent;
	uint64_t took_us; /* time until the last process was dead or stopped */
};

/* The result of a call: the decision, and how it was enforced. */
struct decision {
	struct verdict verdict;
	char session[SESSION_ID]; /* the session that the call is about */
	char decided[SESSION_ID]; /* the session whose policy decided: `session` or an ancestor */
	struct session after;     /* `session` now; its policy is valid until the store is closed */
	bool changed;             /* the state of `decided` changed */
	enum session_state state; /* state of `decided` */
	uint64_t grace_ms;        /* if `decided` was killed: the grace of its runs */
	/* Sessions whose runs must be told of a new state, the session nearest to the root first.
	 * Their descendants are not listed, because a request always reaches the runs of
	 * descendants, too. */
	struct {
		char id[SESSION_ID];
		enum session_state state;
		uint64_t grace_ms;
	} acted[4];
	size_t n_acted;
	int64_t reservation;          /* reservation of an allowed check; 0: none */
	micros amount;                /* estimated or actual cost */
	bool notify;                  /* a message waits in the outbox */
	char warning[SESSION_REASON]; /* why an export or the signature failed, or "" */
	struct act_report runs;
	struct ssb_error undone;     /* SSB_OK, or why a run may still be running */
	char unsent[SESSION_REASON]; /* why no process sends the message, or "" */
};

/* ---- lifecycle ---------------------------------------------------------- */

struct session_request {
	const char *id;     /* NULL: a random id; an existing id is rejected */
	const char *parent; /* NULL: none; must be active */
	const char *agent;  /* NULL: the agent that the policy names */
	const struct session_policy *policy;
};

int session_start(struct session_store *ss, const struct session_request *req, struct decision *ret,
                  struct ssb_error *err);
/* Pauses, resumes, kills, completes or expires a session. `to` is the requested state, which is
 * SESSION_ACTIVE to resume. If the table forbids the transition, the error is SSB_E_POLICY. Kill
 * and pause reach all descendants. `reason` is for people, and may be NULL. */
int session_become(struct session_store *ss, const char *id, enum session_state to,
                   const char *reason, struct decision *ret, struct ssb_error *err);
/* Like session_become() with SESSION_KILLED, but the runs get a grace of `grace_ms`, even
 * those that learn of the kill from the store. With session_become() they get no grace. */
int session_kill(struct session_store *ss, const char *id, uint64_t grace_ms, const char *reason,
                 struct decision *ret, struct ssb_error *err);
struct session_swept {
	size_t expired;
	size_t runs;             /* runs that were running in the expired sessions */
	struct ssb_error undone; /* the first `undone` of the decisions */
};
/* Expires the sessions whose time is over, ends their runs, and times out reservations. Every other
 * call also does this in the store, but only for its own session. */
int session_sweep(struct session_store *ss, struct session_swept *ret, struct ssb_error *err);

/* The highest number of a reservation. Every program that reads JSON can represent it exactly.
 * The numbers are random, so that no process can guess and settle the reservation of another. */
#define MAX_RESERVATION ((INT64_C(1) << 53) - 1)

/* ---- money and violations ----------------------------------------------- */

int session_check(struct session_store *ss, const char *id, const char *action, micros estimate,
                  struct decision *ret, struct ssb_error *err);
/* Replaces a reservation by the actual cost. If `actual` is negative, the action did not happen,
 * and the whole amount is given back. Spent money must always be counted, so this also works after
 * the session is over, and once for a reservation that timed out. A settled reservation is deleted:
 * settling it again fails with SSB_E_NOT_FOUND. */
int session_settle(struct session_store *ss, int64_t reservation, micros actual,
                   struct decision *ret, struct ssb_error *err);
/* `details` may be NULL, and is cut if it is too long. */
int session_violation(struct session_store *ss, const char *id, const char *type,
                      const char *details, struct decision *ret, struct ssb_error *err);

/* ---- runs --------------------------------------------------------------- */

/* The place of a run: data to reach it and, if necessary, to end it. */
struct session_run {
	int64_t n; /* number of the run in the store */
	char session[SESSION_ID];
	char run_id[40]; /* the run's id in the trace; "" until it is known */
	char host[65];
	char boot_id[40];
	pid_t keeper;
	char socket[108];    /* name of the control socket in <state_dir>/live */
	pid_t init;          /* pid outside of the sandbox; 0: not known yet */
	uint64_t init_start; /* field 22 of /proc/PID/stat */
	int64_t begun_us;
};

/* Begins a run, and fills run->n and ->begun_us. If the session refuses the run, the call succeeds,
 * and the verdict has allowed == false. */
int session_run_begin(struct session_store *ss, const char *id, struct session_run *run,
                      struct decision *ret, struct ssb_error *err);
int session_run_placed(struct session_store *ss, const struct session_run *run,
                       struct ssb_error *err);

/* The usage of a run since the last call. */
struct session_usage {
	/* The number of this report of the run, from 1 on. If the result of a report is unknown,
	 * the caller sends it again unchanged, and it counts only once. 0: the report has no number
	 * and always counts. */
	uint64_t report;
	uint64_t meters[SESSION_METERS]; /* METER_RUNS and METER_DOMAINS are ignored */
	struct {
		const char *name; /* event kind or threat class; static */
		uint64_t n;
	} violations[32];
	size_t n_violations;
	/* Number of violations, each counted once. In `violations` each one is counted for its kind
	 * and for its class. */
	uint64_t all_violations;
	const char *const *domains; /* contacted names; those new to the session are counted */
	size_t n_domains;
};

int session_run_used(struct session_store *ss, const struct session_run *run,
                     const struct session_usage *used, struct decision *ret, struct ssb_error *err);
int session_run_end(struct session_store *ss, const struct session_run *run, int exit_status,
                    const char *ending, struct ssb_error *err);

/* ---- looking ------------------------------------------------------------ */

int session_get(struct session_store *ss, const char *id, struct session *ret,
                struct ssb_error *err);
typedef int session_fn(void *arg,
                       const struct session *s); /* a result other than 0 ends the calls */
int session_each(struct session_store *ss, bool all, session_fn *fn, void *arg,
                 struct ssb_error *err); /* newest first; `all`: includes sessions that are over */
typedef int session_run_fn(void *arg, const struct session_run *r);
/* Lists the runs of the session and its descendants whose end is not yet recorded. */
int session_runs(struct session_store *ss, const char *id, session_run_fn *fn, void *arg,
                 struct ssb_error *err);
typedef int session_count_fn(void *arg, const char *name, uint64_t n);
int session_counts(struct session_store *ss, const char *id, session_count_fn *fn, void *arg,
                   struct ssb_error *err);
typedef int session_line_fn(void *arg, const char *line,
                            size_t len); /* `line` includes its newline */
/* Calls `fn` with each line of the ledger, chained as in skillsandbox-trace(5). The last line is a
 * signature if the session is over. */
int session_ledger(struct session_store *ss, const char *id, session_line_fn *fn, void *arg,
                   struct ssb_error *err);

/* The result of comparing a ledger from another place with the store. */
struct ledger_known {
	bool found;     /* the session is in the store */
	uint64_t lines; /* number of lines of its ledger */
	bool same;      /* line `seq` has the hash `hash` in the store */
};
/* Compares the hash of line `seq` with the store. Changes nothing. */
int session_ledger_known(struct session_store *ss, const char *id, uint64_t seq,
                         const uint8_t hash[SHA256_BYTES], struct ledger_known *ret,
                         struct ssb_error *err);

/* ---- news of other machines --------------------------------------------- */

/* Returns the fd to poll for reading. -1: this store has no news (SQLite: act.h reaches the
 * runs). */
int session_news_fd(const struct session_store *ss);
/* Gets the next session whose state changed on another machine. Returns 1 if there is one, 0 if
 * there is none, -1 if the store is lost. */
int session_news(struct session_store *ss, char ret_id[SESSION_ID], struct ssb_error *err);

/* ---- outbox ------------------------------------------------------------- */

/* A message to the owner that is not delivered yet. The transaction that the message reports also
 * writes the message. */
struct outbox_item {
	int64_t n;
	char session[SESSION_ID];
	enum notify_kind kind;
	char *url;    /* new, like `secret` and `body`; freed by outbox_item_done() */
	char *secret; /* or NULL */
	char *body;   /* the event as JSON (herald.h) */
	unsigned tries;
	/* For NOTIFY_OTEL: `body` has lines of the ledger, and the fields below are set. */
	bool span; /* the item is the span of a session that is over; `body` has its events */
	int64_t begun_us; /* start of the session */
	uint64_t upto;    /* the first line that is not in `body` */
	size_t lines;     /* number of lines in `body` */
	size_t dropped;   /* lines that did not fit into the span */
};

/* Takes the next message that is due: for `lease_ms`, no other process gets it. Returns 1 if there
 * is a message, 0 if there is none, -1 on failure. The caller must release `*ret` with
 * outbox_item_done(). */
int outbox_take(struct session_store *ss, uint64_t lease_ms, struct outbox_item *ret,
                struct ssb_error *err);
/* Sets *ret_ms to the milliseconds until the next message is due or its lease ends. 0: now; -1: the
 * outbox is empty. Changes nothing. */
int outbox_wait(struct session_store *ss, int64_t *ret_ms, struct ssb_error *err);
/* Records the result of a try, and writes a line to the session's ledger. If `status` is 2xx, the
 * message was delivered. Otherwise the try failed: the next try is in `retry_ms`, or the message is
 * given up if that is 0. If the item is a part of a ledger (NOTIFY_OTEL), only the first
 * HERALD_TRIES failed tries get a line. */
int outbox_done(struct session_store *ss, const struct outbox_item *item, unsigned status,
                const char *error, uint64_t retry_ms, struct ssb_error *err);
void outbox_item_done(struct outbox_item *item);

#endif
