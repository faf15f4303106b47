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
	CLERK_USED, /* report the usage of the run */
	CLERK_END,  /* do CLERK_USED, and record the end of the run */
};

struct clerk_task {
	enum clerk_task_kind kind;
	bool placed;               /* true: first record the place of the run */
	struct session_run run;    /* a copy */
	struct session_usage used; /* its pointers borrow from struct tally */
	int exit_status;
	const char *ending; /* static */
};

enum clerk_wish { WISH_GO, WISH_PAUSE, WISH_KILL };

/* The store's answer about the run. */
struct clerk_word {
	bool stored; /* the usage is in the store; false: it must be reported again */
	bool ended;  /* the end is in the store, too */
	struct ssb_error err;
	/* True if the chain was read. If false, `wish` comes from the usage only, and the fields
	 * after `reason` are unset: the caller must keep their previous values. */
	bool looked;
	enum clerk_wish wish; /* valid if `stored` */
	uint64_t grace_ms;
	char reason[SESSION_REASON];
	/* all below: valid if `looked` */
	char chain[SESSION_DEPTH][SESSION_ID]; /* the session and its ancestors; then "" */
	int64_t deadline_us; /* wall clock; earliest time at which a session of the chain expires */
	/* How much of each meter the run may use before its next limit, or SESSION_NO_LIMIT. */
	uint64_t room[SESSION_METERS];
	/* What to do if the store is lost: the hardest on_store_loss of the chain. ACT_LOG: the
	 * run continues. */
	enum session_act on_loss;
};

struct clerk;

/* `*ret` is new and is never freed. Borrows `ss` and `o` permanently: from now on only the clerk's
 * thread may use them. `ss` must defer its decisions (act.h). If the start of the run left a
 * decision deferred, it is enforced before any task. */
int clerk_new(struct session_store *ss, const struct owner *o, const struct session_run *run,
              struct clerk **ret, struct ssb_error *err);

/* Returns an fd that is readable when a clerk_word or news have arrived, or the actor has
 * finished. */
int clerk_fd(const struct clerk *c);
/* Returns true if a task is running, or if its clerk_word was not taken yet. */
bool clerk_busy(struct clerk *c);
/* Returns true while other runs are still being ended or stopped. */
bool clerk_acts(struct clerk *c);
/* Returns true if the store has reported a change since the last call. */
bool clerk_news(struct clerk *c);
/* Copies `task`. Must not be called while the clerk is busy. */
void clerk_give(struct clerk *c, const struct clerk_task *task);
bool clerk_take(struct clerk *c, struct clerk_word *ret);

/* Reads the state of the session `id` and its ancestors. May be called before the clerk exists.
 * Returns -1 if the store cannot answer. `own` (borrowed) is the session itself if the caller has
 * just read it, or NULL. */
int clerk_look(struct session_store *ss, const char *id, const struct session *own,
               struct clerk_word *ret, struct ssb_error *err);

#endif
