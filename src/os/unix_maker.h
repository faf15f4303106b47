/* unix_maker.h - unix sockets for a skill that may write a directory of the host.
 *
 * A unix socket that can still be aimed reaches every socket file that can be named, also one
 * of the host's in a writable grant: no mount keeps it from that. Such a skill therefore never
 * has one. Its socket() gives it one end of a pair whose other end is closed, which can neither
 * be connected nor listen. Its bind() and connect() are done by a process of ours, the maker,
 * with a socket of its own. That takes the place of the skill's fd when it listens or is
 * connected, and can be aimed at nothing any more.
 *
 * The maker has the skill's ids, its user and its network namespace, and a root that holds the
 * private places of the sandbox alone: no grant and no file of the host. Whatever name it is
 * given, and whatever the skill does meanwhile to the name, to its fds or to its directories:
 * no socket of the host is there to be reached, and none can be left behind on the host. The
 * skill cannot see the maker, which stays in the supervisor's pid namespace. The maker is in the
 * skill's cgroup and has a filter of its own. If it ends before the skill, the run ends.
 *
 * A connect() to a listener whose queue is full waits in the maker, in order, which tries again
 * after a pause that grows. A signal ends the wait as it ends the kernel's own; SO_SNDTIMEO, an
 * option of a socket that the maker never sees, does not. */
#ifndef OS_UNIX_MAKER_H
#define OS_UNIX_MAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/limits.h"

/* The mode of a socket that the maker has bound or connected: so a second call on it is told from
 * the first, without touching the socket. It means nothing else for a socket, and a program that
 * sets another one gets a new socket by such a call, where the kernel would refuse it. */
#define UNIX_MODE_BOUND     0751
#define UNIX_MODE_CONNECTED 0752

struct unix_maker_setup {
	int listener; /* borrowed; the maker answers the calls by a copy */
	int process;  /* borrowed pidfd of a process of the skill's */
	uid_t uid;    /* of the skill, inside */
	gid_t gid;
	const int *join; /* borrowed fds of the skill's cgroup: what the maker makes counts there */
	size_t n_join;
	const char *const *places; /* absolute, private; those that a grant covers are left out */
	size_t n_places;
};

struct unix_maker {
	int requests; /* to send to; -1: none */
	int process;  /* its pidfd */
};

#define UNIX_MAKER_NONE ((struct unix_maker){ -1, -1 })

enum unix_call { UNIX_SOCKET, UNIX_BIND, UNIX_CONNECT };

/* A call that waits. */
struct unix_request {
	uint64_t id; /* of its notification */
	enum unix_call call;
	int type;     /* SOCK_STREAM, SOCK_SEQPACKET */
	int fd;       /* the caller's number; not of UNIX_SOCKET */
	bool cloexec; /* as that fd is */
	bool nonblock;
	mode_t umask;
	socklen_t len;
	struct sockaddr_un to;
	char cwd[MAX_UNIX_CWD]; /* where a relative name begins; "": nobody knows */
};

/* -1 with errno: there is none, and *m is as it was. */
int unix_maker_start(struct unix_maker *m, const struct unix_maker_setup *setup);
void unix_maker_stop(struct unix_maker *m);

/* Hands the call over, to be answered by the maker. `status` (borrowed; -1: none) is the caller's
 * file of that name in /proc, by which the maker sees signals that come while it waits. -1 with
 * errno: the call is still the caller's. */
int unix_maker_hand(const struct unix_maker *m, const struct unix_request *r, int status);

#endif
