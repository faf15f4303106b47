/* socket.c - a unix socket; each connection has its own lines.
 *
 * Access is checked twice: by the mode of the socket's file, and by the uid that the kernel
 * recorded for the connecting process, because not every file system enforces the mode. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "mcp/transport.h"

#define WHERE    "mcp socket"
#define PAUSE_MS 100 /* pause when there are no fds or no memory */

struct socket_client {
	struct mcp_socket *owner;
	LIST_ENTRY(socket_client) link;
	int fd;
	struct mcp_lines *lines;
};

struct mcp_socket {
	struct mcp_server *server;
	struct loop *loop;
	int fd;
	struct sockaddr_un address;
	struct stat bound; /* the socket file that this server made; only this file is unlinked */
	struct loop_watch *watch;
	struct loop_timer *pause;
	LIST_HEAD(socket_clients, socket_client) clients;
	size_t n_clients;
};

static void client_free(struct socket_client *c)
{
	struct mcp_socket *x = c->owner;

	mcp_lines_free(c->lines);
	own_close(&c->fd);
	LIST_REMOVE(c, link);
	x->n_clients--;
	free(c);
}

static void client_closed(void *arg)
{
	client_free(arg);
}

/* Returns whether the client has the uid of this process, or is root. Root could become this
 * user, or read this process's memory, in any case. */
static bool is_ours(int fd)
{
	struct ucred who;
	socklen_t len = sizeof who;

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 &&
	       (who.uid == geteuid() || who.uid == 0);
}

static void client_new(struct mcp_socket *x, int fd)
{
	struct socket_client *c = calloc(1, sizeof *c);

	if (c == NULL) {
		(void)close(fd);
		return;
	}
	*c = (struct socket_client){ .owner = x, .fd = fd };
	LIST_INSERT_HEAD(&x->clients, c, link);
	x->n_clients++;
	if (mcp_lines_new(x->server, x->loop, fd, fd, client_closed, c, &c->lines, NULL) < 0) {
		client_free(c);
	}
}

static void resume_accepting(void *arg)
{
	struct mcp_socket *x = arg;

	loop_rewatch(x->watch, EPOLLIN);
}

static void accept_client(void *arg, uint32_t events)
{
	struct mcp_socket *x = arg;
	auto_fd fd = accept4(x->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (fd < 0) {
		if ((errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) &&
		    loop_after(x->loop, PAUSE_MS, resume_accepting, x, &x->pause) == 0) {
			loop_rewatch(x->watch, 0);
		}
		return;
	}
	if (is_ours(fd) && x->n_clients < MAX_MCP_CLIENTS) {
		client_new(x, steal_fd(&fd));
	}
}

/* Removes a socket file if no process listens on it. */
static int remove_stale(const struct sockaddr_un *a, struct ssb_error *err)
{
	struct stat st;
	auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (lstat(a->sun_path, &st) < 0) {
		return errno == ENOENT
		               ? 0
		               : ssb_fail(err, SSB_E_SYS, errno, WHERE, "'%s'", a->sun_path);
	}
	if (!S_ISSOCK(st.st_mode)) {
		return ssb_fail(err, SSB_E_SYS, EEXIST, WHERE, "'%s' exists and is not a socket",
		                a->sun_path);
	}
	if (fd < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, WHERE, "socket");
	}
	if (connect(fd, (const struct sockaddr *)a, sizeof *a) == 0 || errno != ECONNREFUSED) {
		return ssb_fail(err, SSB_E_SYS, EADDRINUSE, WHERE,
		                "another server already listens on '%s'", a->sun_path);
	}
	return unlink(a->sun_path) == 0 || errno == ENOENT
	               ? 0
	               : ssb_fail(err, SSB_E_SYS, errno, WHERE, "unlink '%s'", a->sun_path);
}

static int listen_there(struct mcp_socket *x, struct ssb_error *err)
{
	const char *path = x->address.sun_path;

	if (remove_stale(&x->address, err) < 0) {
		return -1;
	}
	x->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (x->fd < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, WHERE, "socket");
	}
	/* bind() creates the file with the mode of the socket, so the mode is set before bind(). */
	if (fchmod(x->fd, 0600) < 0 ||
	    bind(x->fd, (struct sockaddr *)&x->address, sizeof x->address) < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, WHERE, "bind '%s'", path);
	}
	if (lstat(path, &x->bound) < 0 || (x->bound.st_mode & 0077) != 0) {
		return ssb_fail(err, SSB_E_SYS, EPERM, WHERE, "other users can access '%s'", path);
	}
	if (listen(x->fd, 64) < 0 ||
	    loop_watch(x->loop, x->fd, EPOLLIN, accept_client, x, &x->watch) < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, WHERE, "cannot listen on '%s'", path);
	}
	return 0;
}

int mcp_socket_new(struct mcp_server *s, struct loop *loop, const char *path,
                   struct mcp_socket **ret, struct ssb_error *err)
{
	struct mcp_socket *x = calloc(1, sizeof *x);

	if (x == NULL) {
		return ssb_fail(err, SSB_E_SYS, ENOMEM, WHERE, "'%s'", path);
	}
	*x = (struct mcp_socket){ .server = s, .loop = loop, .fd = -1 };
	x->address.sun_family = AF_UNIX;
	if (path[0] == '\0' || strlen(path) >= sizeof x->address.sun_path) {
		free(x);
		return ssb_fail(err, SSB_E_SYS, ENAMETOOLONG, WHERE, "'%s': 1 to %zu bytes", path,
		                sizeof x->address.sun_path - 1);
	}
	(void)snprintf(x->address.sun_path, sizeof x->address.sun_path, "%s", path);
	if (listen_there(x, err) < 0) {
		mcp_socket_free(x);
		return -1;
	}
	*ret = x;
	return 0;
}

void mcp_socket_free(struct mcp_socket *x)
{
	struct stat st;

	if (x == NULL) {
		return;
	}
	while (!LIST_EMPTY(&x->clients)) {
		client_free(LIST_FIRST(&x->clients));
	}
	loop_unwatch(&x->watch);
	loop_untimer(&x->pause);
	own_close(&x->fd);
	if (x->bound.st_ino != 0 && lstat(x->address.sun_path, &st) == 0 &&
	    st.st_dev == x->bound.st_dev && st.st_ino == x->bound.st_ino) {
		(void)unlink(x->address.sun_path);
	}
	free(x);
}
