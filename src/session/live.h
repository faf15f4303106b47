/* live.h - the control sockets of the running runs: <state_dir>/live/NAME, one for each keeper,
 * SOCK_SEQPACKET.
 *
 *   client: struct live_request   ping, kill, pause, resume
 *   keeper: LIVE_HEARD            at once: the keeper has received the request
 *           LIVE_DONE             later: the run is dead, is stopped, or continues
 *        or LIVE_REFUSED          later: with the reason
 *        or LIVE_OTHER            the only answer: the run is not in the session
 *
 * The directory belongs to the owner alone, and keepers accept only the owner's uid and root. Names
 * are random. Paths are relative to an open directory, because the directory's own path may be too
 * long for the address of a socket. */
#ifndef SESSION_LIVE_H
#define SESSION_LIVE_H

#include "session/types.h"
#include "skillsandbox.h"

#define LIVE_NAME    33 /* 8 hexadecimal digits for the directory, 24 random ones, and the NUL */
#define LIVE_TAG     8
#define LIVE_VERSION 2

enum live_op { LIVE_PING, LIVE_KILL, LIVE_PAUSE, LIVE_RESUME, LIVE_OPS };
enum live_answer { LIVE_HEARD, LIVE_DONE, LIVE_REFUSED, LIVE_OTHER };

struct live_request {
	uint32_t version;
	uint32_t op;
	uint64_t grace_ms; /* used for a kill: time between SIGTERM and SIGKILL */
	/* The request concerns the run only if the run is in this session or in a descendant; the
	 * keeper knows its session and all ancestors. "": any session. */
	char session[SESSION_ID];
	char reason[SESSION_REASON];
};

struct live_reply {
	uint32_t version;
	uint32_t answer;
	int32_t init; /* pid outside of the sandbox; 0: none yet */
	uint64_t init_start;
	char session[SESSION_ID];
	char run_id[40];
	char why[SESSION_REASON]; /* reason of a refusal */
};

/* Opens the directory, and makes it first if `make` is true. *ret_fd is a new O_PATH fd. */
int live_dir(const char *state_dir, bool make, int *ret_fd, struct ssb_error *err);
/* Makes a listening socket with a new random name. *ret_fd is new. */
int live_listen(int dir_fd, char ret_name[LIVE_NAME], int *ret_fd, struct ssb_error *err);
/* Accepts the next client. Returns a new non-blocking fd, or -1 if there is no client or the client
 * is not allowed. */
int live_accept(int listen_fd);
/* Returns a new connected, non-blocking socket, or -1 with errno: ECONNREFUSED and ENOENT if no
 * process is listening, EAGAIN if too many clients wait. */
int live_connect(int dir_fd, const char *name);
/* Sends one message and never blocks. Returns -1 with errno. */
int live_send(int fd, const void *msg, size_t size);
/* Returns 1 if a message was received, 0 if there is none yet, -1 if the peer is gone or sent an
 * invalid message. `msg` must be a live_request or live_reply of `size` bytes. */
int live_recv(int fd, void *msg, size_t size);
bool live_name_valid(const char *name);
/* Returns true if the socket is or was in this directory. Other owners on the same machine have
 * their own directories, even if they share a store. */
bool live_name_here(int dir_fd, const char *name);
/* Removes sockets on which no process is listening. */
void live_tidy(int dir_fd);

/* Calls `fn` with the name of each socket, including sockets on which no process is listening. */
typedef void live_name_fn(void *arg, const char *name);
void live_names(int dir_fd, live_name_fn *fn, void *arg);
/* Calls `fn` with the reply of each keeper that answers within `wait_ms`. */
typedef void live_fn(void *arg, const struct live_reply *r);
void live_each(int dir_fd, int wait_ms, live_fn *fn, void *arg);

#endif
