/* clerk.h - the threads of a keeper. The clerk talks to the store, one task after the
 * other, and listens to its news. The actor ends or stops the other runs of the session,
 * with a store of its own. The store may be slow or lost, and other runs may have an hour
 * of grace: neither may delay the keeper, which must answer the supervisor and the owner,
 * and must learn what the store says meanwhile. */
#ifndef SESSION_CLERK_H
#define SESSION_CLERK_H

#include "session/session.h"

enum clerk_task_kind {
	CLERK_LOOK, /* read the state of the session and its ancestors */
	CLERK_USED,
	CLERK_END, /* CLERK_USED, and record the end of the run */
};

struct clerk_task {
	enum clerk_task_kind kind;
	bool placed;               /* first record where the run is */
	struct session_run run;    /* a copy */
	struct session_usage used; /* borrows from the tally */
	int exit_status;
	const char *ending; /* static */
};

enum clerk_wish { WISH_GO, WISH_PAUSE, WISH_KILL };

/* What the store says about the run. */
struct clerk_word {
	bool stored; /* the usage is in the store; else it must be reported again */
	bool ended;  /* the end is in the store, too */
	struct ssb_error err;
	/* True: the chain was read. Otherwise `wish` follows from the usage only, and the fields
	 * after `reason` are unset: the previous values hold. */
	bool looked;
	enum clerk_wish wish; /* valid if `stored` */
	uint64_t grace_ms;
	char reason[SESSION_REASON];
	/* all below: valid if `looked` */
	char chain[SESSION_DEPTH][SESSION_ID]; /* the session and its ancestors; then "" */
	int64_t deadline_us;           /* wall clock; when the first session of the chain expires */
	uint64_t room[SESSION_METERS]; /* until the first limit; or SESSION_NO_LIMIT */
	enum session_act on_loss;      /* the hardest of the chain; ACT_LOG: the run goes on */
};

struct clerk;

/* `*ret` is new and is never freed. Borrows `ss` and `o` for ever: from now on only the
 * clerk's thread may use them. `ss` must defer its decisions (act.h). A decision that the
 * start of the run left deferred is enforced before any task. */
int clerk_new(struct session_store *ss, const struct owner *o, const struct session_run *run,
              struct clerk **ret, struct ssb_error *err);

/* Readable when a word or news has arrived, or the actor has finished. */
int clerk_fd(const struct clerk *c);
/* True: a task is under way, or its word was not taken yet. */
bool clerk_busy(struct clerk *c);
/* True: other runs are still being ended or stopped. */
bool clerk_acts(struct clerk *c);
/* True once after the store said that something changed. */
bool clerk_news(struct clerk *c);
/* Copies `task`. Must not be called while the clerk is busy. */
void clerk_give(struct clerk *c, const struct clerk_task *task);
bool clerk_take(struct clerk *c, struct clerk_word *ret);

/* Reads the state of the session `id` and its ancestors, also before the clerk exists. -1:
 * the store cannot say. `own` (borrowed) is the session itself if the caller has just read
 * it, or NULL. */
int clerk_look(struct session_store *ss, const char *id, const struct session *own,
               struct clerk_word *ret, struct ssb_error *err);

#endif
