/* unix_maker.c - the process that makes unix sockets, and the supervisor's side of it. */
#include "os/unix_maker.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/own.h"
#include "os/caps.h"
#include "os/cgroup.h"
#include "os/clock.h"
#include "os/clone.h"
#include "os/file.h"
#include "os/mount.h"
#include "os/notify.h"
#include "os/seccomp.h"

#define READY_MS     5000
#define MIN_PAUSE_MS 1 /* between two attempts to connect to a full listener */
#define MAX_PAUSE_MS 64
#define NEW_ROOT     "run" /* the maker's own root is mounted on this directory of the sandbox */

/* ---- the maker: its own root --------------------------------------------- */

/* Builds the maker's own root: the root of the sandbox without the mounts in it, and then the
 * private places mounted on it. Grants are mounts, so they are left out. A private place that a
 * grant covers is on another file system and is skipped. */
static int make_root(const struct unix_maker_setup *s)
{
	struct stat root_st, st;
	int places[MAX_UNIX_PLACES];
	auto_fd view = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_fd root = view < 0 ? -1 : mount_clone_one(view);

	if (root < 0 || s->n_places > MAX_UNIX_PLACES || fstat(root, &root_st) != 0) {
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

static int enter_namespaces(const struct unix_maker_setup *s, pid_t parent)
{
	struct ssb_error err = { 0 };

	if (prctl(PR_SET_DUMPABLE, 0) != 0 || cgroup_join(s->join, s->n_join) != 0 ||
	    setns(s->process, CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS) != 0 ||
	    unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    make_root(s) != 0) {
		return -1;
	}
	/* This call fails if an ordinary user started the run. The maker then keeps the same groups
	 * as the skill. */
	(void)setgroups(0, NULL);
	if (setresgid(s->gid, s->gid, s->gid) != 0 || setresuid(s->uid, s->uid, s->uid) != 0 ||
	    caps_drop(0) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_DUMPABLE, 0) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
		return -1;
	}
	return getppid() == parent ? seccomp_load_maker(&err) : -1;
}

/* ---- the maker: executing calls ------------------------------------------ */

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
	if (bind(fd, (const struct sockaddr *)&r->to, r->len) != 0) {
		return -1;
	}
	/* After listen() no process can connect this socket to another one. The skill's own
	 * listen() sets the length of the queue. */
	return listen(fd, 0) != 0 ? -1 : fchmod(fd, UNIX_MODE_BOUND);
}

/* Removes the name of a socket that the caller did not get, so that the caller can repeat the
 * call. */
static void unbind_socket(const struct unix_request *r)
{
	char name[sizeof(r->to.sun_path) + 1] = "";

	memcpy(name, r->to.sun_path, r->len - offsetof(struct sockaddr_un, sun_path));
	if (name[0] != '\0') {
		(void)unlinkat(AT_FDCWD, name, 0);
	}
}

static int connect_here(int fd, const struct unix_request *r)
{
	if (connect(fd, (const struct sockaddr *)&r->to, r->len) != 0 ||
	    (!r->nonblock && fcntl(fd, F_SETFL, O_RDWR) != 0)) {
		return -1;
	}
	return fchmod(fd, UNIX_MODE_CONNECTED);
}

static bool is_relative(const struct unix_request *r)
{
	return r->call != UNIX_SOCKET && r->to.sun_path[0] != '\0' && r->to.sun_path[0] != '/';
}

/* Executes and answers a call. Returns false if the caller must wait. */
static bool serve_request(int listener, const struct unix_request *r)
{
	/* For connect() the socket must be non-blocking, so that the maker is never blocked. */
	auto_fd fd = new_socket(r, r->nonblock || r->call == UNIX_CONNECT);
	int failed = fd < 0 || (is_relative(r) && chdir(r->cwd) != 0) ? -1 : 0;

	if (failed == 0 && r->call == UNIX_BIND) {
		failed = bind_here(fd, r);
	} else if (failed == 0 && r->call == UNIX_CONNECT) {
		failed = connect_here(fd, r);
		if (failed != 0 && errno == EAGAIN && !r->nonblock) {
			return false;
		}
	}
	if (failed != 0) {
		notify_refuse_id(listener, r->id, errno);
	} else if (!notify_give(listener, r->id, fd, r->call == UNIX_SOCKET ? -1 : r->fd,
	                        r->cloexec) &&
	           r->call == UNIX_BIND) {
		unbind_socket(r);
	}
	return true;
}

/* ---- the maker: waiting calls -------------------------------------------- */

/* The waiting calls, the oldest first. */
static struct {
	struct {
		struct unix_request r;
		int status; /* -1: none */
	} v[MAX_UNIX_WAITS];
	size_t n;
	unsigned pause_ms;
	uint64_t due; /* clock_ms() */
} waits;

static bool same_listener(const struct unix_request *a, const struct unix_request *b)
{
	return a->len == b->len && memcmp(&a->to, &b->to, a->len) == 0 &&
	       (!is_relative(a) || strcmp(a->cwd, b->cwd) == 0);
}

/* Returns how many of the first `n` waiting calls are for the same listener. */
static size_t waits_for(const struct unix_request *r, size_t n)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++) {
		found += same_listener(&waits.v[i].r, r) ? 1 : 0;
	}
	return found;
}

static void look_soon(void)
{
	waits.pause_ms = MIN_PAUSE_MS;
	waits.due = clock_ms() + MIN_PAUSE_MS;
}

/* Adds a call to the waiting ones, or refuses it if there are too many. Takes `status`. */
static void add_wait(int listener, const struct unix_request *r, int status)
{
	auto_fd held = status;

	if (waits.n == MAX_UNIX_WAITS || waits_for(r, waits.n) >= MAX_UNIX_WAITS_EACH) {
		notify_refuse_id(listener, r->id, EAGAIN);
		return;
	}
	waits.v[waits.n].r = *r;
	waits.v[waits.n++].status = steal_fd(&held);
	look_soon();
}

static void drop_wait(size_t at)
{
	own_close(&waits.v[at].status);
	waits.n--;
	memmove(&waits.v[at], &waits.v[at + 1], (waits.n - at) * sizeof(waits.v[0]));
}

/* Returns the hexadecimal number after `key`; 0 if there is none. */
static unsigned long long mask_of(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at != NULL ? strtoull(at + strlen(key), NULL, 16) : 0;
}

/* True if the caller has a pending signal that it neither blocks nor ignores. For a signal to the
 * whole process, the kernel wakes the first thread. Before Linux 5.19 the kernel itself ends the
 * wait at a signal, and this function finds none. */
static bool has_signal(int status)
{
	char text[4096];
	ssize_t n = status < 0 ? -1 : pread(status, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	bool leads = mask_of(text, "\nTgid:") == mask_of(text, "\nPid:");
	unsigned long long come =
	        mask_of(text, "\nSigPnd:") | (leads ? mask_of(text, "\nShdPnd:") : 0);
	return (come & ~mask_of(text, "\nSigBlk:") & ~mask_of(text, "\nSigIgn:")) != 0;
}

/* Tries a waiting call again. Returns true if it does not wait any more. */
static bool try_wait(int listener, size_t at)
{
	const struct unix_request *r = &waits.v[at].r;

	if (!notify_valid_id(listener, r->id)) {
		return true;
	}
	if (has_signal(waits.v[at].status)) {
		notify_interrupt_id(listener, r->id);
		return true;
	}
	return waits_for(r, at) == 0 && serve_request(listener, r);
}

static void try_all(int listener)
{
	bool moved = false;

	for (size_t i = 0; i < waits.n;) {
		if (try_wait(listener, i)) {
			drop_wait(i);
			moved = true;
		} else {
			i++;
		}
	}
	unsigned longer = 2 * waits.pause_ms;
	waits.pause_ms = moved ? MIN_PAUSE_MS : longer < MAX_PAUSE_MS ? longer : MAX_PAUSE_MS;
	waits.due = clock_ms() + waits.pause_ms;
}

static void take_request(int listener, int requests)
{
	struct unix_request r = { 0 };
	struct msg_fds fds;

	if (msg_fds_recv(requests, &r, sizeof(r), &fds) <
	            (ssize_t)offsetof(struct unix_request, cwd) ||
	    fds.n > 1) {
		_exit(0);
	}
	auto_fd status = fds.n == 1 ? fds.v[0] : -1;
	if (!notify_valid_id(listener, r.id)) {
		return; /* the caller no longer waits, and may repeat the call */
	}
	/* A new call must not overtake calls that wait for the same listener. */
	bool behind = r.call == UNIX_CONNECT && !r.nonblock && waits_for(&r, waits.n) > 0;
	if (behind || !serve_request(listener, &r)) {
		add_wait(listener, &r, steal_fd(&status));
	}
}

static _Noreturn void serve_all(int listener, int requests)
{
	struct pollfd p = { .fd = requests, .events = POLLIN };

	for (;;) {
		uint64_t now = clock_ms();
		int pause = waits.n == 0 ? -1 : waits.due > now ? (int)(waits.due - now) : 0;
		if (poll(&p, 1, pause) > 0) {
			take_request(listener, requests);
		}
		if (waits.n > 0 && clock_ms() >= waits.due) {
			try_all(listener);
		}
	}
}

static _Noreturn void maker_main(const struct unix_maker_setup *s, int requests, pid_t parent)
{
	int keep[3 + CGROUP_MAX_JOIN] = { s->listener, s->process, requests };

	memcpy(keep + 3, s->join, s->n_join * sizeof(s->join[0]));
	if (file_close_others(0, keep, 3 + s->n_join) != 0 || enter_namespaces(s, parent) != 0) {
		_exit(1);
	}
	for (size_t i = 0; i < s->n_join; i++) {
		(void)close(s->join[i]);
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
	/* Use the largest possible buffer and non-blocking sends: a slow maker must not block the
	 * supervisor. */
	(void)setsockopt(ours, SOL_SOCKET, SO_SNDBUF, &(int){ INT_MAX / 2 }, sizeof(int));
	(void)fcntl(ours, F_SETFL, O_RDWR | O_NONBLOCK);
	made.requests = steal_fd(&ours);
	*m = made;
	return 0;
}

void unix_maker_stop(struct unix_maker *m)
{
	own_close(&m->requests);
	clone_end(&m->process);
}

int unix_maker_hand(const struct unix_maker *m, const struct unix_request *r, int status)
{
	const struct msg_fds fds = { .v = { status }, .n = status >= 0 ? 1 : 0 };

	/* Send only the used part of `cwd`, the last member, so that more calls fit into the
	 * socket's buffer. */
	size_t size = offsetof(struct unix_request, cwd) + strnlen(r->cwd, sizeof(r->cwd) - 1) + 1;

	return msg_fds_send(m->requests, r, size, &fds);
}
