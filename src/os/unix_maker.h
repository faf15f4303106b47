/* unix_maker.h - makes Unix sockets for a skill that may write a directory of the host.
 *
 * A process with an unconnected unix socket can connect it to every socket file that it can name,
 * even one of the host in a writable grant; no mount prevents that. So a skill with a writable
 * grant never gets an unconnected socket. Its socket() returns one end of a pair whose other end is
 * closed, which can neither connect nor listen. A separate process, the maker, does bind() and
 * connect() with a socket of its own. When that socket is listening or connected, it cannot be
 * connected elsewhere any more; then it replaces the skill's fd.
 *
 * The maker has the skill's ids, its user and network namespace, and a root that contains only the
 * private places of the sandbox: no grant and no file of the host. Even if the skill changes the
 * name, its fds or its directories during a call, the maker cannot reach a socket of the host or
 * leave one there. The skill cannot see the maker, which is in the supervisor's pid namespace. The
 * maker is in the skill's cgroup and has a filter of its own. If it ends before the skill, the run
 * ends.
 *
 * If the queue of a listener is full, connect() waits in the maker, in the order of the calls; the
 * maker tries again after increasing pauses. As for a real connect(), a signal ends the wait.
 * SO_SNDTIMEO does not: it is an option of the skill's own fd, which the maker never sees. */
#ifndef OS_UNIX_MAKER_H
#define OS_UNIX_MAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/limits.h"

/* The maker gives these file modes to sockets that it has bound or connected; a socket's mode has
 * no other use. So the supervisor recognises a second bind() or connect() of a socket by its mode
 * alone. If the skill changes the mode, the second call succeeds with a new socket, although the
 * kernel would refuse such a call. */
#define UNIX_MODE_BOUND     0751
#define UNIX_MODE_CONNECTED 0752

struct unix_maker_setup {
	int listener; /* borrowed; the maker answers calls through its own copy */
	int process;  /* borrowed pidfd of a process of the skill */
	uid_t uid;    /* user id of the skill, inside the sandbox */
	gid_t gid;
	const int *
	        join; /* borrowed fds to join the skill's cgroup, where the maker's memory counts */
	size_t n_join;
	const char *const *places; /* absolute paths of private places; a place that a grant covers
	                              is ignored */
	size_t n_places;
};

struct unix_maker {
	int requests; /* the socket for requests; -1: none */
	int process;  /* the pidfd of the maker */
};

#define UNIX_MAKER_NONE ((struct unix_maker){ -1, -1 })

enum unix_call { UNIX_SOCKET, UNIX_BIND, UNIX_CONNECT };

/* A call of the skill that the maker must answer. */
struct unix_request {
	uint64_t id; /* id of its notification */
	enum unix_call call;
	int type;     /* SOCK_STREAM, SOCK_SEQPACKET */
	int fd;       /* the caller's fd; unused for UNIX_SOCKET */
	bool cloexec; /* `fd` is close-on-exec */
	bool nonblock;
	mode_t umask;
	socklen_t len;
	struct sockaddr_un to;
	char cwd[MAX_UNIX_CWD]; /* the directory for relative names; "": unknown */
};

/* Starts the maker. Returns 0, or -1 with errno if no maker was started; *m is unchanged then. */
int unix_maker_start(struct unix_maker *m, const struct unix_maker_setup *setup);
void unix_maker_stop(struct unix_maker *m);

/* Sends the call to the maker, which answers it. `status` (borrowed; -1: none) is the caller's
 * /proc/PID/status, where the maker sees pending signals while the call waits. Returns 0, or -1
 * with errno: the supervisor must then answer the call itself. */
int unix_maker_hand(const struct unix_maker *m, const struct unix_request *r, int status);

#endif
