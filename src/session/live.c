/* live.c - the directory of control sockets, and messages to and from keepers. See live.h. */
#include "session/live.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#include "base/error.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/clock.h"
#include "os/entries.h"
#include "os/file.h"

#define WHERE   "session"
#define BACKLOG 64
/* Between bind() and listen() a new socket looks abandoned, so only sockets older than this are
 * removed. */
#define STALE_S 60

static int dir_check(int fd, const char *path, struct ssb_error *err)
{
	struct stat st;

	if (fstat(fd, &st) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, WHERE, "stat '%s'", path);
	}
	if (st.st_uid != geteuid() || (st.st_mode & 077) != 0) {
		return ssb_fail(err, SSB_E_POLICY, 0, WHERE,
		                "'%s' is open to others (uid %u, mode %04o): a user who can "
		                "write there can end your runs; remove it",
		                path, st.st_uid, st.st_mode & 07777U);
	}
	return 0;
}

int live_dir(const char *state_dir, bool make, int *ret_fd, struct ssb_error *err)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/live", state_dir) >= (int)sizeof(path)) {
		return ssb_fail(err, SSB_E_LIMIT, 0, WHERE,
		                "the state directory's path is too long");
	}
	auto_fd fd = make ? file_mkdirs(path)
	                  : open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		return ssb_fail(err, errno == ENOENT ? SSB_E_NOT_FOUND : SSB_E_SYS, errno, WHERE,
		                "open '%s'", path);
	}
	if (dir_check(fd, path, err) != 0) {
		return -1;
	}
	*ret_fd = steal_fd(&fd);
	return 0;
}

bool live_name_valid(const char *name)
{
	return strlen(name) == LIVE_NAME - 1 && strspn(name, "0123456789abcdef") == LIVE_NAME - 1;
}

static struct sockaddr_un socket_address(int dir_fd, const char *name)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/%s", dir_fd, name);
	return a;
}

static uint32_t tag_of(int dir_fd)
{
	struct stat st = { 0 };

	(void)fstat(dir_fd, &st);
	/* Fibonacci hashing: numbers that are close give distant results. */
	return (uint32_t)((st.st_ino * 0x9E3779B97F4A7C15ULL + st.st_dev) >> 32);
}

bool live_name_here(int dir_fd, const char *name)
{
	char tag[LIVE_TAG + 1];

	snprintf(tag, sizeof(tag), "%08x", tag_of(dir_fd));
	return live_name_valid(name) && memcmp(name, tag, LIVE_TAG) == 0;
}

int live_listen(int dir_fd, char ret_name[LIVE_NAME], int *ret_fd, struct ssb_error *err)
{
	uint8_t drawn[(LIVE_NAME - 1 - LIVE_TAG) / 2];
	char name[LIVE_NAME];

	assert(dir_fd >= 0);
	if (getrandom(drawn, sizeof(drawn), 0) != (ssize_t)sizeof(drawn)) {
		return ssb_fail(err, SSB_E_SYS, errno, WHERE, "getrandom");
	}
	snprintf(name, sizeof(name), "%08x", tag_of(dir_fd));
	hex_encode(drawn, sizeof(drawn), name + LIVE_TAG);
	auto_fd fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un a = socket_address(dir_fd, name);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, WHERE, "cannot bind the control socket");
	}
	if (listen(fd, BACKLOG) != 0) {
		ssb_fail(err, SSB_E_SYS, errno, WHERE, "cannot listen on the control socket");
		(void)unlinkat(dir_fd, name, 0);
		return -1;
	}
	memcpy(ret_name, name, sizeof(name));
	*ret_fd = steal_fd(&fd);
	return 0;
}

int live_accept(int listen_fd)
{
	struct ucred who = { .uid = (uid_t)-1 };
	socklen_t len = sizeof(who);
	auto_fd fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) != 0 ||
	    (who.uid != 0 && who.uid != geteuid())) {
		return -1;
	}
	return steal_fd(&fd);
}

int live_connect(int dir_fd, const char *name)
{
	struct sockaddr_un a = socket_address(dir_fd, name);
	auto_fd fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (!live_name_valid(name)) {
		errno = ENOENT;
		return -1;
	}
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0) {
		return -1;
	}
	return steal_fd(&fd);
}

int live_send(int fd, const void *msg, size_t size)
{
	ssize_t n = send(fd, msg, size, MSG_NOSIGNAL | MSG_DONTWAIT);

	return n == (ssize_t)size ? 0 : -1;
}

int live_recv(int fd, void *msg, size_t size)
{
	assert(size == sizeof(struct live_request) || size == sizeof(struct live_reply));
	ssize_t n = recv(fd, msg, size, MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		return 0;
	}
	/* Both kinds of message begin with the version. */
	return n == (ssize_t)size && *(const uint32_t *)msg == LIVE_VERSION ? 1 : -1;
}

static bool is_old(int dir_fd, const char *name)
{
	struct stat st;

	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(st.st_mode) &&
	       time(NULL) - st.st_mtime > STALE_S;
}

/* The held dir_fd is O_PATH, so entries_open() opens the directory again. */
void live_tidy(int dir_fd)
{
	auto_dir d = entries_open(dir_fd, ".");
	const struct dirent *e;

	for (size_t n = 0; d != NULL && n < MAX_LIVE && (e = readdir(d)) != NULL; n++) {
		if (!live_name_valid(e->d_name) || !is_old(dir_fd, e->d_name)) {
			continue;
		}
		auto_fd fd = live_connect(dir_fd, e->d_name);
		if (fd < 0 && errno == ECONNREFUSED) {
			(void)unlinkat(dir_fd, e->d_name, 0);
		}
	}
}

void live_names(int dir_fd, live_name_fn *fn, void *arg)
{
	auto_dir d = entries_open(dir_fd, ".");
	const struct dirent *e;

	for (size_t n = 0; d != NULL && n < MAX_LIVE && (e = readdir(d)) != NULL; n++) {
		if (live_name_valid(e->d_name)) {
			fn(arg, e->d_name);
		}
	}
}

/* The most keepers that are asked at one time: there may be more keepers than free fds. */
#define PINGS 64

static size_t ping_some(int dir_fd, DIR *d, struct pollfd p[PINGS])
{
	const struct live_request ping = { .version = LIVE_VERSION, .op = LIVE_PING };
	const struct dirent *e;
	size_t n = 0;

	while (n < PINGS && (e = readdir(d)) != NULL) {
		auto_fd fd = live_name_valid(e->d_name) ? live_connect(dir_fd, e->d_name) : -1;
		if (fd >= 0 && live_send(fd, &ping, sizeof(ping)) == 0) {
			p[n++] = (struct pollfd){ .fd = steal_fd(&fd), .events = POLLIN };
		}
	}
	return n;
}

static void hear_some(struct pollfd *p, size_t n, uint64_t until, live_fn *fn, void *arg)
{
	size_t left = n;

	while (left > 0) {
		uint64_t now = clock_ms();
		if (poll(p, n, now < until ? (int)(until - now) : 0) <= 0) {
			break;
		}
		for (size_t i = 0; i < n; i++) {
			struct live_reply r;
			int got = p[i].revents != 0 ? live_recv(p[i].fd, &r, sizeof(r)) : 0;
			if (got > 0 && r.answer == LIVE_DONE) {
				r.session[sizeof(r.session) - 1] = '\0';
				r.run_id[sizeof(r.run_id) - 1] = '\0';
				fn(arg, &r);
				got = -1;
			}
			if (got < 0) {
				own_close(&p[i].fd);
				left--;
			}
		}
	}
	for (size_t i = 0; i < n; i++) {
		own_close(&p[i].fd);
	}
}

void live_each(int dir_fd, int wait_ms, live_fn *fn, void *arg)
{
	uint64_t until = clock_ms() + (uint64_t)wait_ms;
	struct pollfd p[PINGS];
	auto_dir d = entries_open(dir_fd, ".");
	size_t n;

	while (d != NULL && (n = ping_some(dir_fd, d, p)) > 0) {
		hear_some(p, n, until, fn, arg);
	}
}
