/* test_gate.c - the gate between the broker and a UDP socket, with a server on loopback. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "unit.h"
#include "base/limits.h"
#include "base/own.h"
#include "egress/gate.h"
#include "os/net.h"

static int server_new(struct sockaddr_in *ret_at)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	*ret_at = at;
	return fd;
}

static int gate_to(const struct sockaddr_in *at)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)at, sizeof(*at)), 0);
	return gate_open(fd);
}

static ssize_t hear(int fd, void *buf, size_t room)
{
	assert_int_equal(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 5000), 1);
	return recv(fd, buf, room, 0);
}

static const size_t SIZES[] = { 0, 1, 1400, 65507 };

static void both_ways(void **state)
{
	static char out[GATE_MESSAGE], in[GATE_MESSAGE];
	struct sockaddr_in at, from;
	socklen_t len = sizeof(from);
	auto_fd server = server_new(&at);
	auto_fd gate = gate_to(&at);

	memset(out + 1, 'x', sizeof(out) - 1);
	for (size_t i = 0; i < ARRAY_LEN(SIZES); i++) {
		ssize_t n = (ssize_t)SIZES[i];
		out[0] = GATE_DATAGRAM;
		assert_int_equal(send(gate, out, SIZES[i] + 1, 0), n + 1);
		assert_int_equal(poll(&(struct pollfd){ .fd = server, .events = POLLIN }, 1, 5000),
		                 1);
		assert_int_equal(
		        recvfrom(server, in, sizeof(in), 0, (struct sockaddr *)&from, &len), n);
		assert_memory_equal(in, out + 1, SIZES[i]);
		assert_int_equal(sendto(server, in, SIZES[i], 0, (struct sockaddr *)&from, len), n);
		assert_int_equal(hear(gate, in, sizeof(in)), n + 1);
		assert_memory_equal(in, out, SIZES[i] + 1);
	}
}

/* The broker may send only messages of kind 0. Other kinds, and messages that are too large, are
 * dropped. The gate stays open. */
static void odd_messages(void **state)
{
	static char big[GATE_MESSAGE + 100];
	struct sockaddr_in at;
	char got[8];
	auto_fd server = server_new(&at);
	auto_fd gate = gate_to(&at);

	assert_int_equal(send(gate, "\1hello", 6, 0), 6);
	assert_int_equal(send(gate, "\177hello", 6, 0), 6);
	assert_int_equal(send(gate, big, sizeof(big), 0), sizeof(big));
	assert_int_equal(send(gate, big, GATE_MESSAGE, 0), GATE_MESSAGE); /* too large for UDP */
	assert_int_equal(send(gate, "\0fine", 5, 0), 5);
	assert_int_equal(hear(server, got, sizeof(got)), 4);
	assert_memory_equal(got, "fine", 4);
}

static void nobody_there(void **state)
{
	struct sockaddr_in at;
	char got[8] = { 0 };

	int server = server_new(&at);
	(void)close(server);
	auto_fd gate = gate_to(&at);
	assert_int_equal(send(gate, "\0hello", 6, 0), 6);
	assert_int_equal(hear(gate, got, sizeof(got)), 1);
	assert_int_equal(got[0], GATE_UNREACHABLE);
}

static uint16_t checksum(const void *data, size_t n)
{
	const uint8_t *p = data;
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < n; i += 2) {
		sum += (uint32_t)(p[i] << 8 | p[i + 1]);
	}
	sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t) ~(sum + (sum >> 16)));
}

/* Sends the ICMP error of a router whose next link is too narrow for a datagram. */
static void say_narrow(int raw, const struct sockaddr_in *from, const struct sockaddr_in *to)
{
	struct {
		struct icmphdr icmp;
		struct iphdr ip;
		struct udphdr udp;
	} m = { .icmp = { .type = ICMP_DEST_UNREACH, .code = ICMP_FRAG_NEEDED },
		.ip = { .version = 4,
		        .ihl = 5,
		        .ttl = 64,
		        .protocol = IPPROTO_UDP,
		        .saddr = from->sin_addr.s_addr,
		        .daddr = to->sin_addr.s_addr },
		.udp = { .source = from->sin_port, .dest = to->sin_port } };

	m.icmp.un.frag.mtu = htons(1400);
	m.icmp.checksum = checksum(&m, sizeof(m));
	assert_int_equal(
	        sendto(raw, &m, sizeof(m), 0, (const struct sockaddr *)from, sizeof(*from)),
	        sizeof(m));
}

static bool hears_of_narrow(void)
{
	struct sockaddr_in at, from;
	socklen_t len = sizeof(from);
	char got[8];

	assert_int_equal(unshare(CLONE_NEWUSER | CLONE_NEWNET), 0);
	assert_int_equal(net_loopback_up(), 0);
	auto_fd server = server_new(&at);
	auto_fd raw = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_true(raw >= 0 && fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&from, &len), 0);
	auto_fd gate = gate_open(fd);
	for (int i = 0; i < 5000; i++) {
		struct pollfd room = { .fd = gate, .events = POLLOUT };
		assert_int_equal(poll(&room, 1, 5000), 1);
		assert_int_equal(send(gate, "\0fine", 5, 0), 5);
		say_narrow(raw, &from, &at);
		while (recv(server, got, sizeof(got), MSG_DONTWAIT) >= 0) {
		}
	}
	return recv(gate, got, sizeof(got), MSG_DONTWAIT) >= 0;
}

/* After an ICMP error about the path, the kernel reports the error at a later send, although that
 * datagram is not too large: the gate must continue. The test runs in a child process, which makes
 * its own network before the thread of the gates exists. */
static void narrow_path(void **state)
{
	int status = -1;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		_exit(hears_of_narrow() ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Opens a gate. The thread frees closed gates a little later, so this tries again until there is
 * room. */
static int gate_soon(const struct sockaddr_in *at)
{
	int fd = gate_to(at);

	for (int i = 0; i < 500 && fd < 0; i++) {
		(void)nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
		fd = gate_to(at);
	}
	return fd;
}

/* There can be MAX_UDP_FLOWS gates. One more is refused, and is possible after another has been
 * closed. */
static void cap(void **state)
{
	static int gates[MAX_UDP_FLOWS];
	struct rlimit files;
	struct sockaddr_in at;
	auto_fd server = server_new(&at);

	assert_true(server >= 0 && getrlimit(RLIMIT_NOFILE, &files) == 0);
	files.rlim_cur = 4UL * MAX_UDP_FLOWS;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
	for (size_t i = 0; i < MAX_UDP_FLOWS; i++) {
		gates[i] = gate_soon(&at);
		assert_true(gates[i] >= 0);
	}
	errno = 0;
	assert_int_equal(gate_to(&at), -1);
	assert_int_equal(errno, EMFILE);
	(void)close(gates[7]);
	gates[7] = gate_soon(&at);
	assert_true(gates[7] >= 0);
	for (size_t i = 0; i < MAX_UDP_FLOWS; i++) {
		(void)close(gates[i]);
	}
}

static size_t open_files(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 4 * MAX_UDP_FLOWS; fd++) {
		n += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
	}
	return n;
}

/* Checks that the thread has closed its fds of the closed gates. */
static int nothing_left(void **state)
{
	size_t before = *(size_t *)*state + 1; /* 1: the epoll fd of the thread stays open */

	for (int i = 0; i < 500 && open_files() > before; i++) {
		(void)nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	}
	(void)nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
	return open_files() == before ? 0 : -1;
}

static int count_files(void **state)
{
	static size_t n;

	n = open_files();
	*state = &n;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(narrow_path),  cmocka_unit_test(both_ways),
		cmocka_unit_test(odd_messages), cmocka_unit_test(nobody_there),
		cmocka_unit_test(cap),
	};

	return cmocka_run_group_tests(tests, count_files, nothing_left);
}
