/* unix_race MODE OWN GRANT - calls connect() or bind() on its own socket OWN/s. While the
 * supervisor checks the call, another thread changes the address, the fd, the path or the working
 * directory, so that the call could reach the host's socket GRANT/s. Prints how many calls
 * succeeded. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define ROUNDS 1500
#define TARGET 500 /* the fd that one thread connects and the other one replaces */

static const char *own, *grant, *mode;
static atomic_bool over;
static union {
	struct sockaddr_un un;
	struct sockaddr_in in;
	char bytes[sizeof(struct sockaddr_un)];
} shared;
static char swapped[PATH_MAX], other[PATH_MAX];
static int inet_fd = -1;

static void say(struct sockaddr_un *to, const char *dir, const char *name)
{
	memset(to, 0, sizeof(*to));
	to->sun_family = AF_UNIX;
	snprintf(to->sun_path, sizeof(to->sun_path), "%s%s%s", dir, *dir ? "/" : "", name);
}

static void swap_once(int round)
{
	struct sockaddr_un to;

	if (strcmp(mode, "address") == 0) {
		say(&to, round % 2 ? grant : own, "s");
		memcpy(&shared.un, &to, sizeof(to));
	} else if (strcmp(mode, "fd") == 0) {
		/* The connect() of a TCP socket is allowed. Now a unix socket gets the fd of the
		 * TCP socket, and the address becomes that of GRANT/s. */
		int s = socket(AF_UNIX, SOCK_STREAM, 0);
		say(&to, grant, "s");
		dup2(s, TARGET);
		memcpy(&shared.un, &to, sizeof(to));
		close(s);
		sched_yield();
		struct sockaddr_in in = { .sin_family = AF_INET,
			                  .sin_port = htons(9),
			                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
		dup2(inet_fd, TARGET);
		memcpy(&shared.in, &in, sizeof(in));
	} else if (strcmp(mode, "cwd") == 0) {
		(void)!chdir(round % 2 ? grant : own);
	} else {
		renameat2(AT_FDCWD, swapped, AT_FDCWD, other, RENAME_EXCHANGE);
	}
}

static void *swap(void *arg)
{
	for (int i = 0; !over; i++) {
		swap_once(i);
	}
	return arg;
}

static int attempt(int round)
{
	int s = strcmp(mode, "fd") == 0 ? TARGET : socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un to;
	int rc;

	if (strcmp(mode, "bind") == 0) {
		char name[32];
		snprintf(name, sizeof(name), "left-%d", round);
		say(&to, swapped, name);
		rc = bind(s, (struct sockaddr *)&to, sizeof(to));
	} else if (strcmp(mode, "address") == 0 || strcmp(mode, "fd") == 0) {
		rc = connect(s, (struct sockaddr *)&shared, sizeof(shared.un));
	} else {
		say(&to, strcmp(mode, "cwd") == 0 ? "" : swapped, "s");
		rc = connect(s, (struct sockaddr *)&to, sizeof(to));
	}
	if (rc == 0 && strcmp(mode, "bind") != 0) {
		(void)!send(s, "loot", 4, MSG_NOSIGNAL);
	}
	if (s != TARGET) {
		close(s);
	}
	return rc == 0;
}

/* The program's own service: it accepts every connection. */
static void *serve(void *arg)
{
	int s = *(int *)arg;

	for (;;) {
		int c = accept(s, NULL, NULL);
		if (c >= 0) {
			close(c);
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t swapper, server;
	struct sockaddr_un to;
	int done = 0;

	if (argc != 4) {
		return 2;
	}
	mode = argv[1];
	own = argv[2];
	grant = argv[3];
	mkdir(own, 0700);
	static int s;
	s = socket(AF_UNIX, SOCK_STREAM, 0);
	say(&to, own, "s");
	if (bind(s, (struct sockaddr *)&to, sizeof(to)) != 0 || listen(s, 64) != 0) {
		perror("own service");
		return 1;
	}
	/* Next to the socket are a directory "x" and a symlink "y" to the grant. Another thread
	 * exchanges their names. */
	snprintf(swapped, sizeof(swapped), "%s/x", own);
	snprintf(other, sizeof(other), "%s/y", own);
	mkdir(swapped, 0700);
	(void)!symlink(grant, other);
	char inner[PATH_MAX + 8];
	snprintf(inner, sizeof(inner), "%s/s", swapped);
	(void)!link(to.sun_path, inner);
	inet_fd = socket(AF_INET, SOCK_STREAM, 0);
	dup2(inet_fd, TARGET);
	memcpy(&shared.un, &to, sizeof(to));
	pthread_create(&server, NULL, serve, &s);
	pthread_create(&swapper, NULL, swap, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		done += attempt(i);
	}
	over = true;
	pthread_join(swapper, NULL);
	printf("%d\n", done);
	return 0;
}
