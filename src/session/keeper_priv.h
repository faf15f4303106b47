/* keeper_priv.h - what the files of the keeper share.
 *
 *   keeper.c          the caller's side: starts one, runs, waits for it
 *   keeper_process.c  the process: what it gives up, how a run begins
 *   keeper_loop.c     hears supervisor, store and clock; tells the supervisor
 *   keeper_clients.c  the control socket
 *
 * One loop that never waits for anybody; the store is for threads (clerk.h). */
#ifndef SESSION_KEEPER_PRIV_H
#define SESSION_KEEPER_PRIV_H

#include "session/clerk.h"
#include "session/live.h"
#include "session/tally.h"

/* The keeper's first word to its caller: an error, or none. */
struct keeper_answer {
	struct ssb_error err;
};

/* Beside those of govern.h: sandbox_run() has failed, msg.ended has the status. */
#define KEEPER_FAILED 0x1000U

struct keeper_client {
	int fd;       /* -1: free */
	bool asked;   /* and `op` is not done yet */
	uint32_t op;  /* enum live_op */
	uint64_t due; /* until when it must have asked */
};

struct keeper {
	const struct owner *owner;
	struct session_store *ss; /* the clerk's alone, once there is one */
	struct clerk *clerk;
	struct session_run run;
	struct tally tally;
	int sup;     /* the supervisor's socket; open until the caller need not wait any more */
	bool silent; /* nothing more comes from there */
	int sup_pid; /* pidfd */
	int dir;
	int listen;
	int init; /* pidfd; -1: none yet, or dead */
	struct keeper_client clients[MAX_LIVE_CLIENTS];
	/* the store */
	struct clerk_word word; /* the last that was stored */
	struct clerk_task task; /* the last that was given */
	bool given;             /* and no word of it yet */
	uint64_t given_at;
	uint64_t next_at;  /* when the store is to be asked again at the latest */
	uint64_t retry_at; /* not before, after a failure */
	uint64_t lost_at;  /* since when it does not answer; 0: it does */
	bool placed_due;   /* where the run is has still to be written down */
	bool look_due;
	/* what is to become of the run */
	bool paused; /* by the session */
	uint64_t paused_at;
	bool held; /* paused, because the store is lost */
	bool pause_sent;
	bool stands;
	bool killing;
	uint64_t force_at; /* when init is killed by us */
	uint64_t expired_at;
	/* the end */
	bool dead; /* every process of it */
	bool over; /* and nothing more will be said */
	uint64_t over_at;
	int exit_status;
	const char *ending;
	bool end_stored;
};

/* Never returns. `sock` is the caller's other end, `caller` its pidfd. */
_Noreturn void keeper_process(const struct owner *o, const char *id, int sock, int caller);

/* Until the end of the run is written down. */
void keeper_loop(struct keeper *k);

void keeper_kill(struct keeper *k, uint64_t grace_ms, const char *reason);
void keeper_pause(struct keeper *k);

void keeper_clients_init(struct keeper *k);
void keeper_clients_accept(struct keeper *k);
void keeper_clients_hear(struct keeper *k, struct keeper_client *c);
/* All that wait for `op` are answered. */
void keeper_clients_answer(struct keeper *k, enum live_op op, enum live_answer answer,
                           const char *why);
void keeper_clients_drop_late(struct keeper *k);

#endif
