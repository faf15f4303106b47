/* clerk.h - what a keeper has threads for. The clerk talks to the store, one task
 * after the other, and listens to its news; an actor beside it ends or stops the
 * other runs of the session, with a store of its own. The store may be slow or lost,
 * others may have an hour of grace: none of that must hold up the keeper, which hears
 * the supervisor and the owner, nor keep it from what the store says meanwhile. */
#ifndef SESSION_CLERK_H
#define SESSION_CLERK_H

#include "session/session.h"

enum clerk_task_kind {
	CLERK_LOOK, /* how do the session and its ancestors stand? */
	CLERK_USED,
	CLERK_END, /* CLERK_USED, and the run is over */
};

struct clerk_task {
	enum clerk_task_kind kind;
	bool placed;               /* first write down where the run is */
	struct session_run run;    /* a copy */
	struct session_usage used; /* borrows from the tally */
	int exit_status;
	const char *ending; /* static */
};

enum clerk_wish { WISH_GO, WISH_PAUSE, WISH_KILL };

/* What the store wants of the run. */
struct clerk_word {
	bool stored; /* what the run has used; else it must be told again */
	bool ended;  /* and its end */
	struct ssb_error err;
	bool looked;          /* how things stand; else the rest is of the usage alone, and
	                       * what is not said holds as before */
	enum clerk_wish wish; /* where `stored` */
	uint64_t grace_ms;
	char reason[SESSION_REASON];
	/* from here on: where `looked` */
	char chain[SESSION_DEPTH][SESSION_ID]; /* the session and all above it; then "" */
	int64_t deadline_us;                   /* wall clock: when the first of the chain expires */
	uint64_t room[SESSION_METERS]; /* until the first limit; SESSION_NO_LIMIT: none ahead */
	enum session_act on_loss;      /* the hardest of the chain; ACT_LOG: goes on */
};

struct clerk;

/* Borrows `ss` and `o` for ever; only the clerk's thread may use them from now on. `ss`
 * defers its decisions (act.h); the one that the run's beginning left is enforced before
 * any task. */
int clerk_new(struct session_store *ss, const struct owner *o, const struct session_run *run,
              struct clerk **ret, struct ssb_error *err);

/* Readable when a word or news is there, or the actor has finished. */
int clerk_fd(const struct clerk *c);
/* Takes no task now: one is under way, or what came of one. */
bool clerk_busy(struct clerk *c);
/* Other runs are still being ended or stopped. */
bool clerk_acts(struct clerk *c);
/* The store has said that something changed; once. */
bool clerk_news(struct clerk *c);
/* Not while it is busy. */
void clerk_give(struct clerk *c, const struct clerk_task *task);
bool clerk_take(struct clerk *c, struct clerk_word *ret);

/* How the session, and all above it, stand; also for the beginning. -1: that cannot
 * be had. `own` may be NULL: it is asked. */
int clerk_look(struct session_store *ss, const char *id, const struct session *own,
               struct clerk_word *ret, struct ssb_error *err);

#endif
