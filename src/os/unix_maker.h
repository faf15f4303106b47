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
 * skill cannot see the maker, which stays in the supervisor's pid namespace. */
#ifndef OS_UNIX_MAKER_H
#define OS_UNIX_MAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/socket.h>
#include <sys/un.h>

#define UNIX_MAKER_CWD 1024 /* a longer working directory has no relative names */

struct unix_maker_setup {
	int listener; /* borrowed; the maker answers the calls by a copy */
	int process;  /* borrowed pidfd of a process of the skill's */
	uid_t uid;    /* of the skill, inside */
	gid_t gid;
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
	char cwd[UNIX_MAKER_CWD]; /* where a relative name begins; "": nobody knows */
};

/* -1 with errno: there is none, and *m is as it was. */
int unix_maker_start(struct unix_maker *m, const struct unix_maker_setup *setup);
void unix_maker_stop(struct unix_maker *m);

/* Hands the call over, to be answered by the maker. -1 with errno: it is still the caller's. */
int unix_maker_hand(const struct unix_maker *m, const struct unix_request *r);

#endif
