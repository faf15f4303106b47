/* session.h - sessions in their store: many runs of one agent, held to one
 * policy.
 *
 * Every call is one transaction: it locks the session and its ancestors, lets
 * engine.h decide, applies the decision, writes a line to the ledger of each
 * session that changed, and is on the disk when it returns. The store is SQLite
 * in the state directory, or PostgreSQL where the owner's policy.yaml says
 * `store: postgresql://...`. No transaction: the call fails, and nothing was
 * allowed.
 *
 * A call that fills a decision also enforces it before it returns: runs are ended,
 * paused or resumed, and the owner's messages are sent (act.h). The caller may ignore
 * the decision; session_defer() is for a caller that has to answer first. Sessions that
 * expire on the way to something else are left to their keepers, which know the time.
 *
 * A store is for one process: it must not be used after a fork. */
#ifndef SESSION_SESSION_H
#define SESSION_SESSION_H

#include <sys/types.h>

#include "base/sha256.h"
#include "policy/plan.h"
#include "session/engine.h"

struct session_store;

/* `*ret` is new and borrows `o`. SSB_E_NOT_FOUND if the library of the store is missing,
 * with the package to install. */
int session_store_open(const struct owner *o, struct session_store **ret, struct ssb_error *err);
/* Where there is none yet, session_store_open() would make one. */
bool session_store_exists(const struct owner *o);
/* Enforces the decision that is still deferred, if any. Accepts NULL. */
void session_store_close(struct session_store *ss);

/* What became of the runs that a decision concerns; all 0 if it concerns none. */
struct act_report {
	size_t runs;      /* that were running on this machine */
	size_t reached;   /* by their keeper */
	size_t forced;    /* ended by pidfd */
	size_t elsewhere; /* on other machines: their keepers hear of it from the store */
	size_t left;      /* still running when we gave up */
	size_t silent;    /* keepers that did not say which session their run is in; only if the
	                   * store could not say it either */
	uint64_t took_us; /* until the last process was dead, or stopped */
};

/* The result of a call: what was decided, and what was done about it. */
struct decision {
	struct verdict verdict;
	char session[SESSION_ID]; /* asked about */
	char decided[SESSION_ID]; /* the one whose policy decided: it, or an ancestor */
	struct session after;     /* `session`, as it is now; its policy lives with the store */
	bool changed;             /* `decided` entered another state */
	enum session_state state; /* of `decided` */
	uint64_t grace_ms;        /* that its runs have when it was killed */
	/* Every session that entered a state of which its runs have to hear, the one nearest
	 * to the root first; those beneath it hear by it. */
	struct {
		char id[SESSION_ID];
		enum session_state state;
		uint64_t grace_ms;
	} acted[4];
	size_t n_acted;
	int64_t reservation;          /* of an allowed check; 0: none */
	micros amount;                /* estimate or actual */
	bool notify;                  /* something waits in the outbox */
	char warning[SESSION_REASON]; /* the copy in a file, or the signature, failed; or "" */
	struct act_report runs;
	struct ssb_error undone;     /* SSB_OK, or why a run may still be running */
	char unsent[SESSION_REASON]; /* why no process sends the message; or "" */
};

/* ---- lifecycle ---------------------------------------------------------- */

struct session_request {
	const char *id;     /* NULL: one is drawn. An id that exists is refused. */
	const char *parent; /* NULL: none; must be active */
	const char *agent;  /* NULL: the policy's */
	const struct session_policy *policy;
};

int session_start(struct session_store *ss, const struct session_request *req, struct decision *ret,
                  struct ssb_error *err);
/* pause, resume, kill, complete, expire: `to` is the state asked for; resume asks
 * for SESSION_ACTIVE. What the table forbids is SSB_E_POLICY. Killing reaches all
 * descendants; so does pausing. `reason` is for people. */
int session_become(struct session_store *ss, const char *id, enum session_state to,
                   const char *reason, struct decision *ret, struct ssb_error *err);
/* session_become() SESSION_KILLED, but runs have `grace_ms` (else none), also those
 * that hear of it from the store. */
int session_kill(struct session_store *ss, const char *id, uint64_t grace_ms, const char *reason,
                 struct decision *ret, struct ssb_error *err);
struct session_swept {
	size_t expired;
	size_t runs;             /* that were running in them */
	struct ssb_error undone; /* the first of those of the decisions */
};
/* Sessions whose time is over expire and their runs are ended; reservations time out.
 * Every other call does so in the store for the session that it is about. */
int session_sweep(struct session_store *ss, struct session_swept *ret, struct ssb_error *err);

/* Reservations have random numbers, so that nobody settles what is another's; exact in
 * every program that reads JSON. */
#define MAX_RESERVATION ((INT64_C(1) << 53) - 1)

/* ---- money and violations ----------------------------------------------- */

int session_check(struct session_store *ss, const char *id, const char *action, micros estimate,
                  struct decision *ret, struct ssb_error *err);
/* actual < 0: the action did not happen; everything is given back. Also for a
 * session that is over, and once for a reservation that timed out: money that
 * was spent is never lost. What is settled is gone: a second one is SSB_E_NOT_FOUND. */
int session_settle(struct session_store *ss, int64_t reservation, micros actual,
                   struct decision *ret, struct ssb_error *err);
/* `details` (may be NULL) are cut where they are too long. */
int session_violation(struct session_store *ss, const char *id, const char *type,
                      const char *details, struct decision *ret, struct ssb_error *err);

/* ---- runs --------------------------------------------------------------- */

/* Where a run lives, so that it can be reached and, if need be, ended. */
struct session_run {
	int64_t n; /* the store's number */
	char session[SESSION_ID];
	char run_id[40]; /* of the trace; "" until it is known */
	char host[65];
	char boot_id[40];
	pid_t keeper;
	char socket[108];    /* name of the control socket in <state_dir>/live */
	pid_t init;          /* as the host sees it; 0: not known yet */
	uint64_t init_start; /* field 22 of its stat */
	int64_t begun_us;
};

/* Fills run->n, ->begun_us. A refusal is an allowed == false, not an error. */
int session_run_begin(struct session_store *ss, const char *id, struct session_run *run,
                      struct decision *ret, struct ssb_error *err);
int session_run_placed(struct session_store *ss, const struct session_run *run,
                       struct ssb_error *err);

/* What a run has used since the last call. */
struct session_usage {
	/* Which report of the run it is, from 1 on: one that is told again, unchanged (for it
	 * is not known what came of it), counts once. 0: not numbered, counts always. */
	uint64_t report;
	uint64_t meters[SESSION_METERS]; /* METER_RUNS and METER_DOMAINS are left alone */
	struct {
		const char *name; /* event kind or threat class; static */
		uint64_t n;
	} violations[32];
	size_t n_violations;
	uint64_t all_violations;    /* kinds and classes count the same ones: this once */
	const char *const *domains; /* contacted; those that are new to the session count */
	size_t n_domains;
};

int session_run_used(struct session_store *ss, const struct session_run *run,
                     const struct session_usage *used, struct decision *ret, struct ssb_error *err);
int session_run_end(struct session_store *ss, const struct session_run *run, int exit_status,
                    const char *ending, struct ssb_error *err);

/* ---- looking ------------------------------------------------------------ */

int session_get(struct session_store *ss, const char *id, struct session *ret,
                struct ssb_error *err);
typedef int session_fn(void *arg, const struct session *s); /* not 0 ends it */
int session_each(struct session_store *ss, bool all, session_fn *fn, void *arg,
                 struct ssb_error *err); /* newest first; `all`: those that are over too */
typedef int session_run_fn(void *arg, const struct session_run *r);
/* Runs that are not known to have ended, of it and its descendants. */
int session_runs(struct session_store *ss, const char *id, session_run_fn *fn, void *arg,
                 struct ssb_error *err);
typedef int session_count_fn(void *arg, const char *name, uint64_t n);
int session_counts(struct session_store *ss, const char *id, session_count_fn *fn, void *arg,
                   struct ssb_error *err);
typedef int session_line_fn(void *arg, const char *line, size_t len); /* with its newline */
/* The ledger: lines as of skillsandbox-trace(5), chained; the last is a signature
 * where the session is over. */
int session_ledger(struct session_store *ss, const char *id, session_line_fn *fn, void *arg,
                   struct ssb_error *err);

/* What the store has of a ledger that is elsewhere as well. */
struct ledger_known {
	bool found;     /* the session is in the store */
	uint64_t lines; /* of its ledger */
	bool same;      /* the line with the number asked for has the hash asked for */
};
/* Changes nothing; line `seq` is asked for. */
int session_ledger_known(struct session_store *ss, const char *id, uint64_t seq,
                         const uint8_t hash[SHA256_BYTES], struct ledger_known *ret,
                         struct ssb_error *err);

/* ---- news of other machines --------------------------------------------- */

/* To be polled for reading; -1: this store has no news (SQLite: see act.h). */
int session_news_fd(const struct session_store *ss);
/* The next session that changed its state elsewhere: 1, 0 none, -1 the store is
 * lost. */
int session_news(struct session_store *ss, char ret_id[SESSION_ID], struct ssb_error *err);

/* ---- outbox ------------------------------------------------------------- */

/* A message to the owner that is not delivered yet; written by the transaction
 * of which it tells. */
struct outbox_item {
	int64_t n;
	char session[SESSION_ID];
	enum notify_kind kind;
	char *url;    /* these three: new, freed by outbox_item_done() */
	char *secret; /* or NULL */
	char *body;   /* JSON of the event (outbox.c) */
	unsigned tries;
	/* NOTIFY_OTEL: what follows. `body` is lines of the ledger. */
	bool span;        /* the session that is over, as a span; `body`: what its events are */
	int64_t begun_us; /* the session */
	uint64_t upto;    /* the first line that is not in it */
	size_t lines;     /* in it */
	size_t dropped;   /* for which a span has no room */
};

/* Takes the next that is due, for `lease_ms` (so that no other process has it at
 * the same time): 1, 0 none, -1. */
int outbox_take(struct session_store *ss, uint64_t lease_ms, struct outbox_item *ret,
                struct ssb_error *err);
/* In how many ms the next is due, or free of its lease; 0: now, -1: the outbox is
 * empty. Changes nothing. */
int outbox_wait(struct session_store *ss, int64_t *ret_ms, struct ssb_error *err);
/* Delivered (status 2xx), or to be tried again in retry_ms (0: given up). Writes
 * a line to the session's ledger; for a part of a ledger only of the first
 * HERALD_TRIES tries that failed. */
int outbox_done(struct session_store *ss, const struct outbox_item *item, unsigned status,
                const char *error, uint64_t retry_ms, struct ssb_error *err);
void outbox_item_done(struct outbox_item *item);

#endif
