/* dial_world.c - makes the network, and a DNS server that records the names it is asked for. */
#include "dial_world.h"

#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "os/net.h"
#include "wire/dns.h"

#define MAX_ASKED 64

static char (*asked)[DNS_MAX_NAME]; /* shared with the DNS server */

static const char *const FILES[][2] = {
	{ "/etc/hosts", "127.0.0.1 localhost one.test\n"
	                "127.0.0.1 both.test\n::1 both.test\n"
	                "10.1.2.3 mixed.test\n127.0.0.1 mixed.test\n" },
	{ "/etc/resolv.conf",
	  "nameserver 127.0.0.1\nsearch search.test\noptions timeout:6 attempts:1\n" },
	{ "/etc/nsswitch.conf", "hosts: files dns\n" },
};

static void need(bool ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

static void make_world(void)
{
	char paths[ARRAY_LEN(FILES)][32];

	for (size_t i = 0; i < ARRAY_LEN(FILES); i++) {
		size_t len = strlen(FILES[i][1]);
		(void)snprintf(paths[i], sizeof(paths[i]), "/tmp/test_dial.XXXXXX");
		auto_fd fd = mkstemp(paths[i]);
		need(fd >= 0 && fchmod(fd, 0644) == 0, paths[i]);
		need(write(fd, FILES[i][1], len) == (ssize_t)len, paths[i]);
	}
	need(unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS) == 0, "unshare");
	need(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "mount /");
	for (size_t i = 0; i < ARRAY_LEN(FILES); i++) {
		need(mount(paths[i], FILES[i][0], NULL, MS_BIND, NULL) == 0, FILES[i][0]);
		(void)umount2(paths[i], MNT_DETACH);
	}
	need(net_loopback_up() == 0, "loopback");
	for (size_t i = 0; i < ARRAY_LEN(FILES); i++) {
		(void)unlink(paths[i]);
	}
}

/* Answers DNS questions: 127.0.0.1 for dns.test and for every name beneath search.test and
 * wild.test, no answer for slow.test, and "does not exist" for any other name. */
static _Noreturn void dns_server(int sock)
{
	static const uint8_t loopback[4] = { 127, 0, 0, 1 };

	for (size_t n = 0;;) {
		uint8_t in[DNS_MAX_MESSAGE];
		uint8_t out[DNS_MAX_MESSAGE];
		struct sockaddr_in from;
		socklen_t from_len = sizeof(from);
		struct dns_question q;
		struct pollfd p = { .fd = sock, .events = POLLIN };
		(void)poll(&p, 1, -1);
		ssize_t len =
		        recvfrom(sock, in, sizeof(in), 0, (struct sockaddr *)&from, &from_len);
		if (len < 0 || dns_parse(in, (size_t)len, &q) != DNS_QUESTION) {
			continue;
		}
		if (n < MAX_ASKED) {
			memcpy(asked[n++], q.name, sizeof(q.name));
		}
		bool known = strcmp(q.name, "dns.test") == 0 || strstr(q.name, ".wild.test") ||
		             strstr(q.name, ".search.test");
		size_t answer = dns_answer(in, &q, known ? 0 : 3, loopback,
		                           known && q.type == DNS_A ? 1 : 0, 1, out, 512);
		if (strcmp(q.name, "slow.test") != 0) {
			(void)sendto(sock, out, answer, 0, (struct sockaddr *)&from, from_len);
		}
	}
}

bool world_was_asked(const char *name)
{
	for (size_t i = 0; i < MAX_ASKED; i++) {
		if (strcmp(asked[i], name) == 0) {
			return true;
		}
	}
	return false;
}

int world_listen(uint8_t last, int type, uint16_t port)
{
	const struct address a = { { [10] = 0xff, 0xff, 127, 0, 0, last } };
	int fd = net_listen(&a, type, port, false);

	need(fd >= 0, "listen");
	return fd;
}

/* Fills the queue of a listener that never accepts. Later clients get no answer. */
static void fill_queue(int listener, uint16_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
		                  .sin_port = htons(port),
		                  .sin_addr = { htonl(INADDR_LOOPBACK) } };

	need(listen(listener, 0) == 0, "listen");
	for (int i = 0; i < 3; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		(void)connect(fd, (struct sockaddr *)&to, sizeof(to)); /* fd stays open */
	}
}

static void start_dns(struct world *w)
{
	int sock = world_listen(1, SOCK_DGRAM, 53);

	asked = mmap(NULL, MAX_ASKED * sizeof(*asked), PROT_READ | PROT_WRITE,
	             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	need(asked != MAP_FAILED, "mmap");
	w->dns = fork();
	if (w->dns == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		dns_server(sock);
	}
	need(w->dns > 0, "fork");
	(void)close(sock);
}

void world_start(struct world *w)
{
	static const struct address loopback6 = { { [15] = 1 } };

	make_world();
	start_dns(w);
	w->open4 = world_listen(1, SOCK_STREAM, OPEN);
	w->open6 = net_listen(&loopback6, SOCK_STREAM, OPEN, false);
	need(w->open6 >= 0, "listen on ::1");
	w->datagram4 = world_listen(1, SOCK_DGRAM, DATAGRAM);
	fill_queue(world_listen(1, SOCK_STREAM, FULL), FULL);
}

void world_stop(struct world *w)
{
	(void)kill(w->dns, SIGKILL);
	(void)waitpid(w->dns, NULL, 0);
}
