#include "os/unix_maker.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/own.h"
#include "os/caps.h"
#include "os/clone.h"
#include "os/file.h"
#include "os/mount.h"
#include "os/notify.h"

#define READY_MS   5000
#define RETRY_MS   2     /* between two looks at a listener whose queue is full */
#define MAX_WAIT   64    /* callers that wait for such a listener */
#define NEW_ROOT   "run" /* any directory of the view, to build the maker's own on */
#define MAX_PLACES 8

/* ---- the maker: where it lives ------------------------------------------- */

/* A root of the maker's own: the sandbox's without anything that is mounted in it, and on it
 * the private places. What a grant covers is on another file system. */
static int make_root(const struct unix_maker_setup *s)
{
	struct stat root_st, st;
	int places[MAX_PLACES];
	auto_fd view = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_fd root = view < 0 ? -1 : mount_clone_one(view);

	if (root < 0 || s->n_places > MAX_PLACES || fstat(root, &root_st) != 0) {
		return -1;
	}
	for (size_t i = 0; i < s->n_places; i++) {
		auto_fd at = openat(view, s->places[i] + 1, O_PATH | O_DIRECTORY | O_NOFOLLOW);
		bool private = at >= 0 && fstat(at, &st) == 0 && st.st_dev == root_st.st_dev;
		places[i] = private ? mount_clone_one(at) : -1;
		if (private && places[i] < 0) {
			return -1;
		}
	}
	if (mount_attach(root, view, NEW_ROOT) != 0) {
		return -1;
	}
	for (size_t i = 0; i < s->n_places; i++) {
		auto_fd place = places[i];
		if (place >= 0 && mount_attach(place, root, s->places[i] + 1) != 0) {
			return -1;
		}
	}
	return fchdir(root) != 0 || chroot(".") != 0 ? -1 : 0;
}

static int enter(const struct unix_maker_setup *s, pid_t parent)
{
	if (prctl(PR_SET_DUMPABLE, 0) != 0 ||
	    setns(s->process, CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS) != 0 ||
	    unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    make_root(s) != 0) {
		return -1;
	}
	/* A user's own groups stay, as they do in the skill: its map has none to set. */
	(void)setgroups(0, NULL);
	if (setresgid(s->gid, s->gid, s->gid) != 0 || setresuid(s->uid, s->uid, s->uid) != 0 ||
	    caps_drop(0) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_DUMPABLE, 0) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
		return -1;
	}
	return getppid() == parent ? 0 : -1;
}

/* ---- the maker: what it does --------------------------------------------- */

static int new_socket(const struct unix_request *r, bool nonblock)
{
	int type = r->type | SOCK_CLOEXEC | (nonblock ? SOCK_NONBLOCK : 0);
	int pair[2];

	if (r->call != UNIX_SOCKET) {
		return socket(AF_UNIX, type, 0);
	}
	if (socketpair(AF_UNIX, type, 0, pair) != 0) {
		return -1;
	}
	(void)close(pair[1]);
	return pair[0];
}

static int bind_here(int fd, const struct unix_request *r)
{
	(void)umask(r->umask);
	/* Nobody can connect it any more. How long its queue is the skill's listen() says. */
	return bind(fd, (const struct sockaddr *)&r->to, r->len) != 0 ? -1 : listen(fd, 0);
}

/* False: the caller has to wait. */
static bool serve(int listener, const struct unix_request *r)
{
	bool relative =
	        r->call != UNIX_SOCKET && r->to.sun_path[0] != '\0' && r->to.sun_path[0] != '/';
	/* Connecting never holds the maker up. */
	auto_fd fd = new_socket(r, r->nonblock || r->call == UNIX_CONNECT);
	int failed = fd < 0 || (relative && chdir(r->cwd) != 0) ? -1 : 0;

	if (failed == 0 && r->call == UNIX_BIND) {
		failed = bind_here(fd, r);
	} else if (failed == 0 && r->call == UNIX_CONNECT) {
		failed = connect(fd, (const struct sockaddr *)&r->to, r->len);
		if (failed != 0 && errno == EAGAIN && !r->nonblock) {
			return false;
		}
		failed = failed != 0 || r->nonblock ? failed : fcntl(fd, F_SETFL, O_RDWR);
	}
	if (failed != 0) {
		notify_refuse_id(listener, r->id, errno);
	} else {
		notify_give(listener, r->id, fd, r->call == UNIX_SOCKET ? -1 : r->fd, r->cloexec);
	}
	return true;
}

static _Noreturn void serve_all(int listener, int requests)
{
	static struct unix_request waiting[MAX_WAIT];
	struct pollfd p = { .fd = requests, .events = POLLIN };
	size_t n = 0;

	for (;;) {
		if (poll(&p, 1, n > 0 ? RETRY_MS : -1) > 0) {
			struct unix_request *r = &waiting[n];
			ssize_t got = recv(requests, r, sizeof(*r), 0);
			if (got != (ssize_t)sizeof(*r)) {
				_exit(0);
			}
			n += !serve(listener, r);
		}
		for (size_t i = 0; i < n;) {
			if (!notify_valid_id(listener, waiting[i].id) ||
			    serve(listener, &waiting[i])) {
				waiting[i] = waiting[--n];
			} else {
				i++;
			}
		}
		if (n == MAX_WAIT) { /* the longest one has waited in vain */
			notify_refuse_id(listener, waiting[0].id, EAGAIN);
			waiting[0] = waiting[--n];
		}
	}
}

static _Noreturn void maker_main(const struct unix_maker_setup *s, int requests, pid_t parent)
{
	const int keep[] = { s->listener, s->process, requests };

	if (file_close_others(0, keep, ARRAY_LEN(keep)) != 0 || enter(s, parent) != 0) {
		_exit(1);
	}
	(void)close(s->process);
	if (send(requests, "", 1, MSG_NOSIGNAL) != 1) {
		_exit(1);
	}
	serve_all(s->listener, requests);
}

/* ---- the supervisor ------------------------------------------------------ */

int unix_maker_start(struct unix_maker *m, const struct unix_maker_setup *setup)
{
	struct unix_maker made = UNIX_MAKER_NONE;
	pid_t parent = getpid();
	char ready;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
		return -1;
	}
	auto_fd ours = pair[0];
	auto_fd theirs = pair[1];
	pid_t pid = clone_fork(&made.process);
	if (pid == 0) {
		maker_main(setup, theirs, parent);
	}
	own_close(&theirs);
	struct pollfd p = { .fd = ours, .events = POLLIN };
	if (pid < 0 || poll(&p, 1, READY_MS) != 1 || recv(ours, &ready, 1, 0) != 1) {
		clone_end(&made.process);
		errno = EACCES;
		return -1;
	}
	made.requests = steal_fd(&ours);
	*m = made;
	return 0;
}

void unix_maker_stop(struct unix_maker *m)
{
	own_close(&m->requests);
	clone_end(&m->process);
}

int unix_maker_hand(const struct unix_maker *m, const struct unix_request *r)
{
	return send(m->requests, r, sizeof(*r), MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(*r)
	               ? 0
	               : -1;
}
