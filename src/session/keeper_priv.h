/* keeper_priv.h - declarations that the files of the keeper share.
 *
 *   keeper.c          the caller's side: starts a keeper, runs, waits for it
 *   keeper_process.c  the process: its confinement, and the start of a run
 *   keeper_loop.c     listens to supervisor, store and clock; commands the supervisor
 *   keeper_clients.c  the control socket
 *
 * The keeper is one loop that never blocks. Only its threads use the store (clerk.h). */
#ifndef SESSION_KEEPER_PRIV_H
#define SESSION_KEEPER_PRIV_H

#include "session/clerk.h"
#include "session/live.h"
#include "session/tally.h"

/* The keeper's first message to its caller: an error, or SSB_OK. */
struct keeper_answer {
	struct ssb_error err;
};

/* Message kind in addition to those of govern.h: sandbox_run() failed. msg.ended contains the
 * status. */
#define KEEPER_FAILED 0x1000U

struct keeper_client {
	int fd;       /* -1: free */
	bool asked;   /* the client has sent `op`, which is not done yet */
	uint32_t op;  /* enum live_op */
	uint64_t due; /* the time until which the client must have sent its request */
};

struct keeper {
	const struct owner *owner;
	struct session_store *ss; /* once a clerk exists, only the clerk may use it */
	struct clerk *clerk;
	struct session_run run;
	struct tally tally;
	int sup;     /* the supervisor's socket; the caller waits until it is closed */
	bool silent; /* the supervisor sends nothing more */
	int sup_pid; /* pidfd */
	int dir;
	int listen;
	int init; /* pidfd; -1: none yet, or dead */
	struct keeper_client clients[MAX_LIVE_CLIENTS];
	/* the exchange with the store */
	struct clerk_word word; /* the last clerk_word that has `stored` set */
	struct clerk_task task; /* the task that was last given to the clerk */
	bool given;             /* the task has no answer yet */
	uint64_t given_at;
	uint64_t next_at;  /* the store is asked again at this time at the latest */
	uint64_t retry_at; /* after a failure: the store is not asked again before this time */
	uint64_t lost_at;  /* the time since which the store has not answered; 0: it answers */
	bool placed_due;   /* the place of the run must still be recorded */
	bool look_due;
	/* the state of the run */
	bool paused; /* the session is paused */
	uint64_t paused_at;
	bool held; /* paused because the store is lost */
	bool pause_sent;
	bool stands;
	bool killing;
	uint64_t force_at; /* time at which the keeper itself kills the init */
	uint64_t expired_at;
	/* the end of the run */
	bool dead; /* every process of the run is dead */
	bool over; /* the run is dead, and nothing more will be reported */
	uint64_t over_at;
	int exit_status;
	const char *ending;
	bool end_stored;
};

/* The main function of a keeper process; never returns. Takes `sock`, the other end of the caller's
 * socket, and `caller`, the caller's pidfd. */
_Noreturn void keeper_process(const struct owner *o, const char *id, int sock, int caller);

/* Returns when the end of the run is recorded. */
void keeper_loop(struct keeper *k);

void keeper_kill(struct keeper *k, uint64_t grace_ms, const char *reason);
void keeper_pause(struct keeper *k);

void keeper_clients_init(struct keeper *k);
void keeper_clients_accept(struct keeper *k);
void keeper_clients_hear(struct keeper *k, struct keeper_client *c);
/* Answers all clients that wait for `op`. */
void keeper_clients_answer(struct keeper *k, enum live_op op, enum live_answer answer,
                           const char *why);
void keeper_clients_drop_late(struct keeper *k);

#endif
