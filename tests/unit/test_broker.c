/* test_broker.c - the steps of one connection through the broker, and their order. The test
 * replaces the loop, the dialler and the supervisor. The linker replaces some functions, so that
 * the test sees their calls. */
#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"
#include "egress/broker_priv.h"

/* ---- recorded calls -------------------------------------------------------- */

static char calls[512];
static int events_fd = -1, listener_fd = -1, server_fd = -1;

static void note(const char *call, int fd)
{
	size_t n = strlen(calls);

	snprintf(calls + n, sizeof(calls) - n, "%s%s %s", n > 0 ? ", " : "", call,
	         fd == events_fd     ? "record"
	         : fd == listener_fd ? "listener"
	         : fd == server_fd   ? "server"
	                             : "client");
}

static void assert_called(const char *expected)
{
	assert_string_equal(calls, expected);
	calls[0] = '\0';
}

ssize_t __real_send(int fd, const void *data, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t len, int flags);
int __real_getsockname(int fd, struct sockaddr *at, socklen_t *len);
int __wrap_getsockname(int fd, struct sockaddr *at, socklen_t *len);
int __real_epoll_ctl(int epoll, int op, int fd, struct epoll_event *e);
int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *e);
int __real_shutdown(int fd, int how);
int __wrap_shutdown(int fd, int how);

ssize_t __wrap_send(int fd, const void *data, size_t len, int flags)
{
	note("send", fd);
	return __real_send(fd, data, len, flags);
}

int __wrap_getsockname(int fd, struct sockaddr *at, socklen_t *len)
{
	note("ask", fd);
	return __real_getsockname(fd, at, len);
}

int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *e)
{
	note("watch", fd);
	return __real_epoll_ctl(epoll, op, fd, e);
}

int __wrap_shutdown(int fd, int how)
{
	note("end", fd);
	return __real_shutdown(fd, how);
}

/* ---- the world around the broker ------------------------------------------- */

struct world {
	uint16_t ports[1];
	struct egress_rule rule;
	struct ssb_plan plan;
	struct broker_config config;
	struct broker b;
	struct source listener;
	int dialler, supervisor; /* the test's ends of the broker's sockets to both */
};

static void wait_for(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, 10000), 1);
}

static void pair_up(int type, int *ret_ours, int *ret_theirs)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
	*ret_ours = pair[0];
	*ret_theirs = pair[1];
}

static struct sockaddr_in at(const char *address, uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

	assert_int_equal(inet_pton(AF_INET, address, &in.sin_addr), 1);
	return in;
}

/* Listens on a free port of `address`, which may be 0.0.0.0. */
static int listen_at(const char *address, uint16_t *ret_port)
{
	struct sockaddr_in in = at(address, 0);
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&in, len) == 0);
	assert_true(listen(fd, 8) == 0 && __real_getsockname(fd, (void *)&in, &len) == 0);
	*ret_port = ntohs(in.sin_port);
	return fd;
}

static void world_start(struct world *w, const char *address, uint64_t max_connections)
{
	struct ssb_error err = { 0 };

	*w = (struct world){ .listener = { .kind = SOURCE_LISTENER, .listener = LISTEN_TCP } };
	w->listener.fd = listener_fd = listen_at(address, &w->ports[0]);
	w->rule = (struct egress_rule){ .domain = { .s = (char *)(uintptr_t) "127.0.0.0/24" },
		                        .kind = HOST_ADDRESS,
		                        .protocol = PROTO_TCP,
		                        .ports = w->ports,
		                        .n_ports = 1 };
	w->plan = (struct ssb_plan){ .egress = &w->rule, .n_egress = 1 };
	w->config = (struct broker_config){ .max_connections = max_connections,
		                            .max_bytes_out = 1000,
		                            .max_bytes_in = 1000 };
	assert_int_equal(egress_table_new(&w->plan, &w->config.table, &err), 0);
	pair_up(SOCK_SEQPACKET, &w->dialler, &w->config.dial);
	pair_up(SOCK_SEQPACKET, &w->supervisor, &w->config.events);
	events_fd = w->config.events;
	server_fd = -1;
	w->b = (struct broker){ .c = &w->config, .epoll = epoll_create1(EPOLL_CLOEXEC) };
	assert_true(w->b.epoll >= 0);
	bucket_init(&w->b.starts, 100, 100, clock_us());
	TAILQ_INIT(&w->b.again);
	calls[0] = '\0';
}

static void world_stop(struct world *w)
{
	conn_close_all(&w->b);
	conn_sweep(&w->b);
	free(w->b.head);
	(void)close(w->listener.fd);
	(void)close(w->dialler);
	(void)close(w->config.dial);
	(void)close(w->supervisor);
	(void)close(w->config.events);
	(void)close(w->b.epoll);
	egress_table_free(w->config.table);
}

/* The skill connects and sends `head` and `more` bytes. The broker has not accepted the connection
 * yet. */
static int skill_says(const struct world *w, const char *address, const char *head, size_t more)
{
	struct sockaddr_in in = at(address, w->ports[0]);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char body[5000] = { 0 };

	assert_true(fd >= 0 && connect(fd, (struct sockaddr *)&in, sizeof(in)) == 0);
	assert_int_equal(write(fd, head, strlen(head)), strlen(head));
	assert_int_equal(write(fd, body, more), more);
	wait_for(w->listener.fd);
	return fd;
}

static int skill_calls(const struct world *w, const char *address)
{
	return skill_says(w, address, "hello", 0);
}

/* The broker accepts the connection; *ret_request is its request to the dialler. */
static struct conn *broker_accepts(struct world *w, struct dial_request *ret_request)
{
	conn_accept(&w->b, &w->listener);
	assert_non_null(w->b.conns);
	wait_for(w->b.conns->client.fd);
	assert_int_equal(recv(w->dialler, ret_request, sizeof(*ret_request), 0),
	                 sizeof(*ret_request));
	return w->b.conns;
}

/* The dialler reports that it has connected. Returns the server's end of the connection. */
static int server_is_there(struct world *w, const struct dial_request *q)
{
	struct dial_reply r = { .id = q->id, .result = DIAL_OK };
	int server;

	pair_up(SOCK_STREAM, &server, &server_fd);
	conn_dialled(&w->b, &r, server_fd);
	return server;
}

/* Starts a world in which a skill and its server are connected. */
static struct conn *world_connected(struct world *w, uint64_t max_connections, int *ret_skill,
                                    int *ret_server)
{
	struct dial_request q;

	world_start(w, "127.0.0.2", max_connections);
	*ret_skill = skill_calls(w, "127.0.0.2");
	struct conn *c = broker_accepts(w, &q);
	*ret_server = server_is_there(w, &q);
	return c;
}

/* Like world_connected() with HTTP: the skill has sent a request. */
static struct conn *world_asked(struct world *w, const char *head, size_t more, int *ret_skill,
                                int *ret_server)
{
	struct dial_request q;

	world_start(w, "127.0.0.2", 4);
	w->rule.protocol = PROTO_HTTP;
	*ret_skill = skill_says(w, "127.0.0.2", head, more);
	conn_accept(&w->b, &w->listener);
	struct conn *c = w->b.conns;
	assert_int_equal(recv(w->dialler, &q, sizeof(q), 0), sizeof(q));
	*ret_server = server_is_there(w, &q);
	return c;
}

static enum egress_kind next_record(const struct world *w)
{
	struct egress_event e;

	return recv(w->supervisor, &e, sizeof(e), 0) == (ssize_t)sizeof(e) ? e.kind : EGRESS_KINDS;
}

/* ---- tests ------------------------------------------------------------------ */

/* The supervisor gets the record of a connection before the server gets the first byte. So if the
 * broker is killed, every byte that it has sent belongs to a recorded connection. */
static void on_record_before_the_first_byte(void **state)
{
	struct world w;
	struct dial_request q;
	char got[8];

	world_start(&w, "127.0.0.2", 4);
	auto_fd skill = skill_calls(&w, "127.0.0.2");
	(void)broker_accepts(&w, &q);
	assert_int_equal(next_record(&w), EGRESS_KINDS);
	calls[0] = '\0';
	auto_fd server = server_is_there(&w, &q);
	assert_called("send record, send server, watch server, watch client");
	assert_int_equal(next_record(&w), EGRESS_OPENED);
	assert_int_equal(recv(server, got, sizeof(got), 0), 5);
	world_stop(&w);
}

/* If one connection ends and another one begins in the same round of the loop, the beginning comes
 * first: only then is the socket to the first server shut down. */
static void a_beginning_goes_before_an_end(void **state)
{
	struct world w;
	struct dial_request q;
	auto_fd skill = -1, server = -1;

	struct conn *first = world_connected(&w, 4, &skill, &server);
	auto_fd next = skill_calls(&w, "127.0.0.2");
	assert_int_equal(shutdown(skill, SHUT_WR), 0);
	wait_for(first->client.fd);
	calls[0] = '\0';
	conn_event(&w.b, &first->client, EPOLLIN | EPOLLRDHUP);
	assert_called("");
	(void)broker_accepts(&w, &q);
	calls[0] = '\0';
	conn_sweep(&w.b);
	assert_called("");
	conn_sweep(&w.b);
	assert_called("end server");
	world_stop(&w);
}

/* If all connections are in use, the end of one is carried out at once, because it may make room
 * for another. */
static void without_places_an_end_goes_first(void **state)
{
	struct world w;
	auto_fd skill = -1, server = -1;

	struct conn *first = world_connected(&w, 1, &skill, &server);
	assert_int_equal(shutdown(skill, SHUT_WR), 0);
	wait_for(first->client.fd);
	calls[0] = '\0';
	conn_event(&w.b, &first->client, EPOLLIN | EPOLLRDHUP);
	assert_called("end server");
	world_stop(&w);
}

/* A listener that is bound to one address asks the kernel only once for that address, not for each
 * connection. */
static void one_address_is_asked_for_once(void **state)
{
	struct world w;
	struct dial_request q;

	world_start(&w, "127.0.0.2", 4);
	for (int i = 0; i < 3; i++) {
		auto_fd skill = skill_calls(&w, "127.0.0.2");
		(void)broker_accepts(&w, &q);
		assert_called(i == 0 ? "ask listener" : "");
		assert_string_equal(q.name, "127.0.0.2");
		assert_int_equal(q.port, w.ports[0]);
	}
	world_stop(&w);
}

/* A listener that is bound to all addresses asks the kernel for each connection to which address it
 * was made. */
static void many_addresses_are_told_apart(void **state)
{
	static const char *const ADDRESSES[] = { "127.0.0.2", "127.0.0.3", "127.0.0.2" };
	struct world w;
	struct dial_request q;

	world_start(&w, "0.0.0.0", 4);
	for (size_t i = 0; i < ARRAY_LEN(ADDRESSES); i++) {
		auto_fd skill = skill_calls(&w, ADDRESSES[i]);
		(void)broker_accepts(&w, &q);
		assert_called(i == 0 ? "ask listener, ask client" : "ask client");
		assert_string_equal(q.name, ADDRESSES[i]);
	}
	world_stop(&w);
}

/* The broker got the socket that is connected to the server from the dialler. The dialler may still
 * have it open after the broker has closed it. An event on that socket must not reach the closed
 * connection. */
static void an_end_is_the_end_of_events(void **state)
{
	struct world w;
	struct epoll_event e;
	auto_fd skill = -1, server = -1;

	struct conn *c = world_connected(&w, 4, &skill, &server);
	auto_fd dialler = dup(server_fd);
	conn_close(&w.b, c, REASON_OK);
	conn_sweep(&w.b);
	assert_int_equal(write(server, "late", 4), 4);
	assert_int_equal(epoll_wait(w.b.epoll, &e, 1, 0), 0);
	world_stop(&w);
}

/* Returns the number of bytes that a peer has received so far. */
static size_t got_by(int fd)
{
	char data[4096];
	size_t all = 0;
	ssize_t n;

	while ((n = recv(fd, data, sizeof(data), MSG_DONTWAIT)) > 0) {
		all += (size_t)n;
	}
	return all;
}

/* The byte limit also counts the bytes of HTTP requests, which the broker does not send in the same
 * way as other bytes. */
static void requests_count_as_bytes(void **state)
{
	static const char POST[] =
	        "POST / HTTP/1.1\r\nHost: 127.0.0.2\r\nContent-Length: 5000\r\n\r\n";
	struct world w;
	auto_fd skill = -1, server = -1;

	(void)world_asked(&w, POST, 5000, &skill, &server);
	assert_int_equal(got_by(server), 1000);
	assert_int_equal(w.b.bytes_out, 1000);
	assert_int_equal(next_record(&w), EGRESS_OPENED);
	assert_int_equal(next_record(&w), EGRESS_DENIED);
	assert_null(w.b.conns);
	world_stop(&w);
}

/* While the broker waits for a server's answer to an upgrade, the bytes from the server count for
 * the byte limit, too. */
static void an_awaited_answer_counts_as_bytes(void **state)
{
	static const char GET[] = "GET / HTTP/1.1\r\nHost: 127.0.0.2\r\nUpgrade: raw\r\n\r\n";
	struct world w;
	char hints[5000] = "HTTP/1.1 103 \r\nX: ";
	auto_fd skill = -1, server = -1;

	memset(hints + strlen(hints), 'x', sizeof(hints) - strlen(hints));
	struct conn *c = world_asked(&w, GET, 0, &skill, &server);
	assert_int_equal(write(server, hints, sizeof(hints)), sizeof(hints));
	conn_event(&w.b, &c->server, EPOLLIN);
	assert_int_equal(next_record(&w), EGRESS_OPENED);
	assert_int_equal(next_record(&w), EGRESS_DENIED);
	assert_int_equal(w.b.bytes_in, 1000);
	assert_true(got_by(skill) <= 1000);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(on_record_before_the_first_byte),
		cmocka_unit_test(a_beginning_goes_before_an_end),
		cmocka_unit_test(without_places_an_end_goes_first),
		cmocka_unit_test(one_address_is_asked_for_once),
		cmocka_unit_test(many_addresses_are_told_apart),
		cmocka_unit_test(an_end_is_the_end_of_events),
		cmocka_unit_test(requests_count_as_bytes),
		cmocka_unit_test(an_awaited_answer_counts_as_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
