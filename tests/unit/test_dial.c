/* test_dial.c - the dialler runs in its own process. The tests send it requests over its socket. */
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"
#include "base/limits.h"
#include "base/own.h"
#include "egress/dial.h"
#include "egress/race.h"
#include "os/clone.h"
#include "os/net.h"
#include "dial_world.h"

static uint16_t tcp_ports[] = { OPEN, CLOSED, FULL };
static uint16_t udp_ports[] = { DATAGRAM };

#define TCP_RULE(text, k)                                                                          \
	{                                                                                          \
		.domain = { .s = (char *)(uintptr_t)(text) }, .kind = HOST_##k,                    \
		.protocol = PROTO_TCP, .ports = tcp_ports, .n_ports = 3                            \
	}

enum { ONE, BOTH, MIXED, DNS, WILD, SHORT, SLOW, LITERAL4, LITERAL6, MAPPED, PUBLIC, UDP, RULES };

static struct egress_rule rules[RULES] = {
	[ONE] = TCP_RULE("one.test", EXACT),
	[BOTH] = TCP_RULE("both.test", EXACT),
	[MIXED] = TCP_RULE("mixed.test", EXACT),
	[DNS] = TCP_RULE("dns.test", EXACT),
	[WILD] = TCP_RULE("*.wild.test", WILDCARD),
	[SHORT] = TCP_RULE("short", EXACT),
	[SLOW] = TCP_RULE("slow.test", EXACT),
	[LITERAL4] = TCP_RULE("127.0.0.1", ADDRESS),
	[LITERAL6] = TCP_RULE("::1", ADDRESS),
	[MAPPED] = TCP_RULE("::ffff:127.0.0.1", ADDRESS),
	[PUBLIC] = TCP_RULE("192.31.196.1", ADDRESS), /* public; there is no route to it */
	[UDP] = { .domain = { .s = (char *)(uintptr_t) "one.test" },
	          .kind = HOST_EXACT,
	          .protocol = PROTO_UDP,
	          .ports = udp_ports,
	          .n_ports = 1 },
};
static const struct ssb_plan PLAN = { .egress = rules, .n_egress = RULES };
static struct egress_table *table;
static struct world world;

/* ---- a dialler and requests to it ------------------------------------------ */

struct dialler {
	pid_t pid;
	int sock;
};

/* If `granted`, the owner has granted loopback, which is the test's only network. */
static struct dialler start(bool granted, unsigned timeout_ms)
{
	static struct cidr ranges[2];
	struct dial_config config = { .ready = -1,
		                      .table = table,
		                      .allow_private = ranges,
		                      .n_allow_private = granted ? 2 : 0,
		                      .timeout_ms = timeout_ms };
	int pair[2];

	assert_true(cidr_parse("127.0.0.0/8", &ranges[0]) && cidr_parse("::1/128", &ranges[1]));
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	pid_t pid = fork();
	if (pid == 0) {
		/* Close every other fd. An inherited socket of another dialler would keep that
		 * dialler running. */
		(void)dup2(pair[1], 3);
		(void)close_range(4, ~0U, 0);
		dial_main(3, &config);
	}
	assert_true(pid > 0);
	(void)close(pair[1]);
	return (struct dialler){ pid, pair[0] };
}

/* The dialler must end soon after its socket is closed, whatever it is doing. */
static void stop(struct dialler *d)
{
	int status = -1;
	int64_t start_us = race_now_us();

	(void)close(d->sock);
	assert_int_equal(waitpid(d->pid, &status, 0), d->pid);
	assert_int_equal(status, 0);
	assert_true(race_now_us() - start_us < 3000000);
}

static struct dial_request request(uint64_t id, uint32_t rule, const char *name, uint16_t port)
{
	struct dial_request q;

	memset(&q, 0, sizeof(q));
	q.id.serial = id;
	q.rule = rule;
	q.port = port;
	q.id.kind = rule == UDP ? DIAL_UDP : DIAL_TCP;
	(void)snprintf(q.name, sizeof(q.name), "%s", name);
	return q;
}

/* Returns the next reply. *ret_fd is the socket that came with the reply, or -1. */
static struct dial_reply hear(const struct dialler *d, int *ret_fd)
{
	struct dial_reply reply;
	struct msg_fds fds = { .n = 0 };
	struct pollfd p = { .fd = d->sock, .events = POLLIN };

	assert_int_equal(poll(&p, 1, 20000), 1);
	assert_int_equal(msg_fds_recv(d->sock, &reply, sizeof(reply), &fds), sizeof(reply));
	assert_int_equal(fds.n, reply.result == DIAL_OK ? 1 : 0);
	*ret_fd = fds.n == 1 ? fds.v[0] : -1;
	return reply;
}

static struct dial_reply ask(const struct dialler *d, uint32_t rule, const char *name,
                             uint16_t port, int *ret_fd)
{
	static uint64_t id = 1000;
	struct dial_request q = request(++id, rule, name, port);

	assert_int_equal(msg_fds_send(d->sock, &q, sizeof(q), NULL), 0);
	struct dial_reply reply = hear(d, ret_fd);
	assert_int_equal(reply.id.serial, q.id.serial);
	assert_int_equal(reply.id.kind, q.id.kind);
	return reply;
}

/* Sends a request, closes the socket that came with the reply, and compares the reply. If `address`
 * is NULL, any address is right. */
static void expect_at(int line, const struct dialler *d, uint32_t rule, const char *name,
                      uint16_t port, enum dial_result result, const char *address)
{
	auto_fd fd = -1;
	struct dial_reply reply = ask(d, rule, name, port, &fd);
	char text[ADDRESS_TEXT];

	address_format(&reply.address, text);
	if (reply.result != result || (address != NULL && strcmp(address, text) != 0)) {
		fail_msg("line %d: %s:%u: %s, %s, %s", line, name, port,
		         reason_code(dial_result_reason(reply.result)), text, reply.range);
	}
	assert_string_equal(reply.range, result == DIAL_GUARDED ? "loopback" : "");
}
#define expect(...) expect_at(__LINE__, __VA_ARGS__)

static int accept_soon(int listener)
{
	struct pollfd p = { .fd = listener, .events = POLLIN };

	assert_int_equal(poll(&p, 1, 5000), 1);
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void drain(int listener)
{
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		(void)close(fd);
	}
}

/* ---- tests ----------------------------------------------------------------- */

static void connected_socket(void **state)
{
	struct dialler d = start(true, 5000);
	struct sockaddr_in peer;
	socklen_t len = sizeof(peer);
	int nodelay = 0;
	socklen_t int_len = sizeof(nodelay);
	char got[8] = { 0 };
	auto_fd fd = -1;

	drain(world.open4);
	struct dial_reply reply = ask(&d, ONE, "one.test", OPEN, &fd);
	assert_int_equal(reply.result, DIAL_OK);
	assert_int_equal(getpeername(fd, (struct sockaddr *)&peer, &len), 0);
	assert_int_equal(ntohs(peer.sin_port), OPEN);
	assert_memory_equal(&peer.sin_addr, reply.address.b + 12, 4);
	assert_true((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
	assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &nodelay, &int_len), 0);
	assert_int_equal(nodelay, 1);
	auto_fd other = accept_soon(world.open4);
	assert_int_equal(write(fd, "hello", 5), 5);
	assert_int_equal(read(other, got, sizeof(got)), 5);
	assert_string_equal(got, "hello");
	stop(&d);
}

/* For UDP the broker does not get the socket, because that could send to any address. It gets a
 * gate that leads only to the address that the dialler has checked. */
static void datagrams(void **state)
{
	struct dialler d = start(true, 5000);
	struct pollfd p = { .fd = world.datagram4, .events = POLLIN };
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);
	int family = 0;
	socklen_t int_len = sizeof(family);
	char got[8] = { 0 };
	auto_fd fd = -1;

	assert_int_equal(ask(&d, UDP, "one.test", DATAGRAM, &fd).result, DIAL_OK);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &int_len), 0);
	assert_int_equal(family, AF_UNIX);
	assert_true((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
	assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
	for (size_t n = 0; n <= 5; n += 5) { /* an empty datagram must pass, too */
		assert_int_equal(send(fd, "\0hello", n + 1, 0), n + 1);
		assert_int_equal(poll(&p, 1, 5000), 1);
		assert_int_equal(recvfrom(world.datagram4, got, sizeof(got), 0,
		                          (struct sockaddr *)&from, &len),
		                 n);
		assert_int_equal(
		        sendto(world.datagram4, "back", 4, 0, (struct sockaddr *)&from, len), 4);
		assert_int_equal(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 5000), 1);
		assert_int_equal(recv(fd, got, sizeof(got), 0), 5);
		assert_memory_equal(got, "\0back", 5);
	}
	stop(&d);
}

static const struct {
	uint32_t rule;
	const char *name, *address;
} LOOPBACK[] = {
	{ ONE, "one.test", "127.0.0.1" },
	{ BOTH, "both.test", NULL },
	{ DNS, "dns.test", "127.0.0.1" },
	{ WILD, "any.wild.test", "127.0.0.1" },
	{ LITERAL4, "127.0.0.1", "127.0.0.1" },
	{ LITERAL6, "::1", "::1" },
	{ LITERAL4, "::ffff:127.0.0.1", "127.0.0.1" },
	{ MAPPED, "::ffff:127.0.0.1", "127.0.0.1" },
};

static void guarded_and_granted(void **state)
{
	struct dialler closed = start(false, 5000);
	struct dialler granted = start(true, 5000);

	for (size_t i = 0; i < ARRAY_LEN(LOOPBACK); i++) {
		expect(&closed, LOOPBACK[i].rule, LOOPBACK[i].name, OPEN, DIAL_GUARDED,
		       LOOPBACK[i].address);
		expect(&granted, LOOPBACK[i].rule, LOOPBACK[i].name, OPEN, DIAL_OK,
		       LOOPBACK[i].address);
	}
	expect(&granted, LITERAL4, "127.0.0.1", CLOSED, DIAL_UNREACHABLE, "127.0.0.1");
	expect(&granted, BOTH, "both.test", CLOSED, DIAL_UNREACHABLE, NULL);
	/* The guard allows a public address; here there is no route to it. */
	expect(&closed, PUBLIC, "192.31.196.1", OPEN, DIAL_UNREACHABLE, "192.31.196.1");
	/* mixed.test has two addresses, and only one of them is granted: the dialler connects to
	 * that one. */
	expect(&granted, MIXED, "mixed.test", OPEN, DIAL_OK, "127.0.0.1");
	stop(&closed);
	stop(&granted);
}

/* A public address that belongs to this machine is guarded. */
static void own_addresses(void **state)
{
	static const uint8_t own4[4] = { 192, 31, 196, 1 };
	static const uint8_t own6[16] = { 0x26, 0x20, 0, 0xfe, [15] = 1 };
	struct address a;

	assert_true(address_parse("2620:fe::1", &a));
	assert_int_equal(net_place_of(&a), NET_BEYOND);
	assert_int_equal(net_local_range(AF_INET, own4, 32), 0);
	assert_int_equal(net_local_range(AF_INET6, own6, 128), 0);
	assert_int_equal(net_place_of(&a), NET_HERE);
	struct dialler closed = start(false, 5000);
	auto_fd fd = -1;
	struct dial_reply reply = ask(&closed, PUBLIC, "192.31.196.1", OPEN, &fd);
	assert_int_equal(reply.result, DIAL_GUARDED);
	assert_string_equal(reply.range, "this_machine");
	stop(&closed);
}

/* An IPv6 address is guarded if a router translates it to an IPv4 address of this machine. */
static void own_addresses_in_others(void **state)
{
	static const char *const FORMS[] = {
		"64:ff9b::192.31.197.1",       "2002:c01f:c501::1",
		"2001:0:c01f:c501::f7f7:f7f7", "2001:0:808:808::3fe0:3afe",
		"2620:fe::5efe:c01f:c501",     "2620:fe::200:5efe:c01f:c501"
	};
	static const uint8_t own4[4] = { 192, 31, 197, 1 };
	struct address a;
	const char *kind;

	for (int owned = 0; owned < 2; owned++) {
		for (size_t i = 0; i < ARRAY_LEN(FORMS); i++) {
			kind = "none";
			assert_true(address_parse(FORMS[i], &a));
			assert_int_equal(guard_allows(&a, NULL, 0, &kind), owned == 0);
			assert_string_equal(kind, owned == 0 ? "none" : "this_machine");
		}
		assert_int_equal(net_local_range(AF_INET, own4, 32), 0);
	}
}

/* The dialler uses /etc/hosts and DNS, but not the search list. The control: getaddrinfo() in the
 * test uses the search list. */
static void search_list(void **state)
{
	struct dialler d = start(true, 5000);
	struct addrinfo *list = NULL;

	expect(&d, SHORT, "short", OPEN, DIAL_NO_NAME, NULL);
	expect(&d, WILD, "a.b.wild.test", OPEN, DIAL_OK, "127.0.0.1");
	assert_true(world_was_asked("short"));
	assert_false(world_was_asked("short.search.test"));
	assert_true(world_was_asked("a.b.wild.test"));
	assert_false(world_was_asked("one.test")); /* the address is in /etc/hosts */
	stop(&d);

	assert_int_equal(getaddrinfo("short", NULL, NULL, &list), 0);
	freeaddrinfo(list);
	assert_true(world_was_asked("short.search.test"));
}

static const struct {
	uint32_t rule;
	const char *name;
	uint16_t port;
} NOT_GRANTED[] = {
	{ RULES, "one.test", OPEN },     { UINT32_MAX, "one.test", OPEN },
	{ ONE, "both.test", OPEN },      { ONE, "", OPEN },
	{ ONE, "one.test.", OPEN },      { ONE, "ONE.test", OPEN },
	{ ONE, "one.test", 22 },         { ONE, "one.test", 0 },
	{ ONE, "one.test", DATAGRAM },   { UDP, "one.test", OPEN },
	{ WILD, "wild.test", OPEN },     { WILD, "*.wild.test", OPEN },
	{ WILD, "a b.wild.test", OPEN }, { WILD, "a.wild.test.evil.test", OPEN },
	{ LITERAL4, "127.0.0.2", OPEN }, { LITERAL4, "127.1", OPEN },
	{ LITERAL4, "one.test", OPEN },  { ONE, "127.0.0.1", OPEN },
};

static void rules_are_kept(void **state)
{
	struct dialler d = start(true, 5000);

	for (size_t i = 0; i < ARRAY_LEN(NOT_GRANTED); i++) {
		expect(&d, NOT_GRANTED[i].rule, NOT_GRANTED[i].name, NOT_GRANTED[i].port,
		       DIAL_REFUSED_RULE, NULL);
	}
	struct dial_request q = request(1, ONE, "one.test", OPEN);
	auto_fd fd = -1;
	q.id.kind = DIAL_UDP; /* the rule is for TCP */
	assert_int_equal(msg_fds_send(d.sock, &q, sizeof(q), NULL), 0);
	assert_int_equal(hear(&d, &fd).result, DIAL_REFUSED_RULE);
	expect(&d, ONE, "one.test", OPEN, DIAL_OK, "127.0.0.1");
	stop(&d);
}

static void send_raw(const struct dialler *d, const void *data, size_t len, bool with_fd)
{
	struct msg_fds fds = { .v = { d->sock }, .n = with_fd ? 1 : 0 };
	auto_fd fd = -1;

	assert_int_equal(msg_fds_send(d->sock, data, len, &fds), 0);
	struct dial_reply reply = hear(d, &fd);
	assert_int_equal(reply.result, DIAL_REFUSED_RULE);
	assert_int_equal(reply.id.serial, len >= sizeof(reply.id.serial) ? 77 : 0);
}

/* Sends a request with `n` fds, which the product never does. `n` may be more than msg_fds_recv()
 * has room for. */
static void send_many_fds(const struct dialler *d, const void *data, size_t len, size_t n)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)data, .iov_len = len };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(64 * sizeof(int))];
	} control = { 0 };
	struct msghdr msg = { .msg_iov = &iov,
		              .msg_iovlen = 1,
		              .msg_control = control.room,
		              .msg_controllen = CMSG_SPACE(n * sizeof(int)) };
	auto_fd fd = -1;

	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(n * sizeof(int));
	for (size_t i = 0; i < n; i++) {
		memcpy(CMSG_DATA(&control.head) + i * sizeof(int), &d->sock, sizeof(int));
	}
	assert_int_equal(sendmsg(d->sock, &msg, MSG_NOSIGNAL), len);
	assert_int_equal(hear(d, &fd).result, DIAL_REFUSED_RULE);
}

static void malformed(void **state)
{
	static const struct {
		uint8_t kind, spares;
	} BAD_KINDS[] = {
		{ DIAL_SPARES + 1, 0 }, { DIAL_SPARES + 1, 1 }, { DIAL_SPARES, 0 },
		{ DIAL_TCP, 1 },        { DIAL_UDP, 1 },        { DIAL_SPARES, MAX_SPARES + 1 },
	};
	struct dialler d = start(true, 5000);
	struct dial_request q = request(77, ONE, "one.test", OPEN);
	uint8_t raw[sizeof(q) + 8] = { 0 };

	memcpy(raw, &q, sizeof(q));
	send_raw(&d, raw, 8, false);
	send_raw(&d, raw, sizeof(q) - 1, false);
	send_raw(&d, raw, sizeof(q) + 1, false);
	send_raw(&d, raw, sizeof(q), true);
	for (size_t n = MSG_MAX_FDS; n <= 64; n++) {
		send_many_fds(&d, raw, sizeof(q), n);
	}
	for (size_t i = 0; i < ARRAY_LEN(BAD_KINDS); i++) {
		raw[offsetof(struct dial_id, kind)] = BAD_KINDS[i].kind;
		raw[offsetof(struct dial_request, spares)] = BAD_KINDS[i].spares;
		send_raw(&d, raw, sizeof(q), false);
	}
	raw[offsetof(struct dial_id, kind)] = DIAL_TCP;
	raw[offsetof(struct dial_request, spares)] = 0;
	memset(raw + offsetof(struct dial_request, name), 'a', sizeof(q.name));
	send_raw(&d, raw, sizeof(q), false);
	memset(raw, 0, sizeof(raw));
	send_raw(&d, raw, 1, false);
	expect(&d, ONE, "one.test", OPEN, DIAL_OK, "127.0.0.1");
	stop(&d);
}

static void hundred_at_once(void **state)
{
	enum { N = 100 };
	struct dialler d = start(true, 10000);
	bool seen[N] = { 0 };
	size_t left = N;

	drain(world.open4);
	for (uint64_t i = 0; i < N; i++) {
		struct dial_request q = request(i, ONE, "one.test", OPEN);
		assert_int_equal(msg_fds_send(d.sock, &q, sizeof(q), NULL), 0);
	}
	while (left > 0) {
		auto_fd fd = -1;
		struct dial_reply reply = hear(&d, &fd);
		struct dial_request again = request(reply.id.serial, ONE, "one.test", OPEN);
		if (reply.result == DIAL_BUSY) {
			(void)usleep(1000);
			assert_int_equal(msg_fds_send(d.sock, &again, sizeof(again), NULL), 0);
			continue;
		}
		assert_int_equal(reply.result, DIAL_OK);
		assert_int_equal(write(fd, &reply.id.serial, sizeof(reply.id.serial)),
		                 sizeof(reply.id.serial));
		left--;
	}
	for (size_t i = 0; i < N; i++) { /* each request must have had another connection */
		uint64_t id = N;
		auto_fd fd = accept_soon(world.open4);
		assert_int_equal(read(fd, &id, sizeof(id)), sizeof(id));
		assert_true(id < N && !seen[id]);
		seen[id] = true;
	}
	stop(&d);
}

static void times_out(void **state)
{
	struct dialler d = start(true, 2500);
	int64_t start_us = race_now_us();

	expect(&d, ONE, "one.test", FULL, DIAL_TIMEOUT, "127.0.0.1");
	int64_t took = race_now_us() - start_us;
	assert_true(took >= 2490000 && took < 10000000);
	/* If the resolver does not answer, the dialler still answers in time. */
	start_us = race_now_us();
	expect(&d, SLOW, "slow.test", OPEN, DIAL_TIMEOUT, NULL);
	took = race_now_us() - start_us;
	assert_true(took >= 2490000 && took < 10000000);
	assert_true(world_was_asked("slow.test"));
	expect(&d, ONE, "one.test", OPEN, DIAL_OK, "127.0.0.1");
	/* The late answer of the resolver is dropped. */
	struct pollfd p = { .fd = d.sock, .events = POLLIN };
	assert_int_equal(poll(&p, 1, 6000), 0);
	expect(&d, SLOW, "slow.test", OPEN, DIAL_TIMEOUT, NULL);
	stop(&d); /* stops the dialler while a resolver is running */
}

static void busy(void **state)
{
	struct dialler d = start(true, 5000);
	auto_fd fd = -1;

	for (uint64_t i = 0; i < MAX_DIALS; i++) {
		struct dial_request q = request(i, ONE, "one.test", FULL);
		assert_int_equal(msg_fds_send(d.sock, &q, sizeof(q), NULL), 0);
	}
	expect(&d, ONE, "one.test", OPEN, DIAL_BUSY, NULL);
	for (size_t i = 0; i < MAX_DIALS; i++) {
		struct dial_reply reply = hear(&d, &fd);
		assert_int_equal(reply.result, DIAL_TIMEOUT);
		assert_true(reply.id.serial < MAX_DIALS);
	}
	(void)usleep(50000);
	expect(&d, ONE, "one.test", OPEN, DIAL_OK, "127.0.0.1");
	stop(&d);
}

static void without_privileges(void **state)
{
	struct dialler d = start(true, 5000);
	char path[64];
	char text[4096] = { 0 };

	expect(&d, ONE, "one.test", OPEN, DIAL_OK, NULL); /* wait until the dialler is running */
	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)d.pid);
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	assert_non_null(strstr(text, "NoNewPrivs:\t1"));
	stop(&d);
}

static struct dial_reply ask_spare(const struct dialler *d, uint32_t rule, const char *name,
                                   int *ret_fd)
{
	struct dial_request q = request(4711, rule, name, rule == UDP ? DATAGRAM : OPEN);

	q.id.kind = DIAL_SPARES;
	q.spares = 1;
	assert_int_equal(msg_fds_send(d->sock, &q, sizeof(q), NULL), 0);
	return hear(d, ret_fd);
}

/* A spare is a socket that has not connected yet. The dialler gives the broker a spare only for a
 * name that it has already resolved and that the rules allow. */
static void spares(void **state)
{
	struct dialler d = start(true, 5000);
	struct dialler closed = start(false, 5000);
	auto_fd none = -1, fd = -1;

	drain(world.open4);
	assert_int_equal(ask_spare(&d, ONE, "one.test", &none).result, DIAL_BUSY);
	assert_int_equal(ask_spare(&d, ONE, "both.test", &none).result, DIAL_REFUSED_RULE);
	expect(&d, ONE, "one.test", OPEN, DIAL_OK, "127.0.0.1");
	(void)close(accept_soon(world.open4));
	struct dial_reply reply = ask_spare(&d, ONE, "one.test", &fd);
	assert_int_equal(reply.result, DIAL_OK);
	assert_true(reply.valid_us > 0 && reply.valid_us <= 2000000);
	assert_int_equal(accept4(world.open4, NULL, NULL, SOCK_CLOEXEC), -1);
	(void)send(fd, "", 0, MSG_NOSIGNAL);
	(void)close(accept_soon(world.open4));

	expect(&closed, ONE, "one.test", OPEN, DIAL_GUARDED, "127.0.0.1");
	assert_int_equal(ask_spare(&closed, ONE, "one.test", &none).result, DIAL_BUSY);
	assert_int_equal(ask_spare(&d, UDP, "one.test", &none).result, DIAL_REFUSED_RULE);
	stop(&d);
	stop(&closed);
}

/* One message carries several spares. Each of them connects when it is first used. */
static void many_spares(void **state)
{
	struct dialler d = start(true, 5000);
	struct dial_request q = request(4712, ONE, "one.test", OPEN);
	struct dial_reply reply;
	struct msg_fds fds = { .n = 0 };

	q.id.kind = DIAL_SPARES;
	q.spares = MAX_SPARES;
	drain(world.open4);
	expect(&d, ONE, "one.test", OPEN, DIAL_OK, "127.0.0.1");
	(void)close(accept_soon(world.open4));
	assert_int_equal(msg_fds_send(d.sock, &q, sizeof(q), NULL), 0);
	assert_int_equal(msg_fds_recv(d.sock, &reply, sizeof(reply), &fds), sizeof(reply));
	assert_int_equal(reply.result, DIAL_OK);
	assert_int_equal(fds.n, MAX_SPARES);
	for (size_t i = 0; i < fds.n; i++) {
		assert_int_equal(accept4(world.open4, NULL, NULL, SOCK_CLOEXEC), -1);
		(void)send(fds.v[i], "", 0, MSG_NOSIGNAL);
		(void)close(accept_soon(world.open4));
	}
	msg_fds_close(&fds);
	stop(&d);
}

static void result_names(void **state)
{
	assert_int_equal(dial_result_reason(DIAL_OK), REASON_OK);
	assert_int_equal(dial_result_reason(DIAL_BUSY), REASON_BUSY);
	assert_int_equal(dial_result_reason((enum dial_result)99), REASON_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connected_socket),
		cmocka_unit_test(datagrams),
		cmocka_unit_test(guarded_and_granted),
		cmocka_unit_test(own_addresses),
		cmocka_unit_test(own_addresses_in_others),
		cmocka_unit_test(search_list),
		cmocka_unit_test(rules_are_kept),
		cmocka_unit_test(malformed),
		cmocka_unit_test(hundred_at_once),
		cmocka_unit_test(times_out),
		cmocka_unit_test(busy),
		cmocka_unit_test(without_privileges),
		cmocka_unit_test(spares),
		cmocka_unit_test(many_spares),
		cmocka_unit_test(result_names),
	};
	struct ssb_error err = { 0 };

	world_start(&world);
	if (egress_table_new(&PLAN, &table, &err) < 0) {
		fail_msg("%s", err.text);
	}
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	world_stop(&world);
	egress_table_free(table);
	return failed;
}
