/* live.h - the control sockets of the runs that live: <state_dir>/live/NAME,
 * one for each keeper, SOCK_SEQPACKET.
 *
 *   client: struct live_request   ping, kill, pause, resume
 *   keeper: LIVE_HEARD            at once: it is there, and has begun
 *           LIVE_DONE             dead; every process stands still; goes on
 *        or LIVE_REFUSED          with why
 *        or LIVE_OTHER            alone: its run is not in that session
 *
 * The directory is the owner's alone, and only the owner's uid and root are
 * heard. Names are drawn; all that is said of a path is said relative to a held
 * directory, whose own path may be longer than a socket's address has room. */
#ifndef SESSION_LIVE_H
#define SESSION_LIVE_H

#include "session/types.h"
#include "skillsandbox.h"

#define LIVE_NAME    33 /* 8 hexadecimal digits for the directory, 24 drawn, and the NUL */
#define LIVE_TAG     8
#define LIVE_VERSION 2

enum live_op { LIVE_PING, LIVE_KILL, LIVE_PAUSE, LIVE_RESUME, LIVE_OPS };
enum live_answer { LIVE_HEARD, LIVE_DONE, LIVE_REFUSED, LIVE_OTHER };

struct live_request {
	uint32_t version;
	uint32_t op;
	uint64_t grace_ms; /* kill: SIGTERM first */
	/* That the run is in, or beneath: the keeper knows its session and all above
	 * it. "": whichever. */
	char session[SESSION_ID];
	char reason[SESSION_REASON];
};

struct live_reply {
	uint32_t version;
	uint32_t answer;
	int32_t init; /* as the host sees it; 0: there is none yet */
	uint64_t init_start;
	char session[SESSION_ID];
	char run_id[40];
	char why[SESSION_REASON]; /* of a refusal */
};

/* An O_PATH fd of the directory, which is made with `make`; new. */
int live_dir(const char *state_dir, bool make, int *ret_fd, struct ssb_error *err);
/* A listening socket under a new name. Both new. */
int live_listen(int dir_fd, char ret_name[LIVE_NAME], int *ret_fd, struct ssb_error *err);
/* The next client that may be heard, non-blocking; -1: none, or not that one. */
int live_accept(int listen_fd);
/* A connected, non-blocking socket, or -1 with errno: ECONNREFUSED and ENOENT
 * where nobody listens, EAGAIN where too many wait. */
int live_connect(int dir_fd, const char *name);
/* Never waits; -1 with errno. */
int live_send(int fd, const void *msg, size_t size);
/* 1, 0 nothing there yet, -1 the other end is gone or talks nonsense. */
int live_recv(int fd, void *msg, size_t size);
bool live_name_valid(const char *name);
/* It is, or was, in this directory: other owners of one machine, who may share a
 * store of sessions, have their own. */
bool live_name_here(int dir_fd, const char *name);
/* Removes sockets that nobody listens on any more. */
void live_tidy(int dir_fd);

/* The names of all that listen, or did. */
typedef void live_name_fn(void *arg, const char *name);
void live_names(int dir_fd, live_name_fn *fn, void *arg);
/* Every keeper that answers within `wait_ms`. */
typedef void live_fn(void *arg, const struct live_reply *r);
void live_each(int dir_fd, int wait_ms, live_fn *fn, void *arg);

#endif
