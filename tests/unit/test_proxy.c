/* test_proxy.c - connecting through a proxy: which hosts use it, the request that it gets, and the
 * results of its answers. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unit.h"
#include "base/own.h"
#include "egress/proxy.h"
#include "wire/connect_reply.h"
#include "dial_world.h"

#define RULE(text, k, proto, ...)                                                                  \
	{                                                                                          \
		.domain = { .s = (char *)(uintptr_t)(text) }, .kind = HOST_##k,                    \
		.protocol = PROTO_##proto, .ports = (uint16_t[]){ __VA_ARGS__ },                   \
		.n_ports = sizeof((uint16_t[]){ __VA_ARGS__ }) / sizeof(uint16_t)                  \
	}

enum { NAME, WILD, LOCAL, LOOPBACK, PRIVATE, PUBLIC6, RANGE, UDP, HTTP, RULES };
static struct egress_rule rules[RULES] = {
	[NAME] = RULE("api.corp.test", EXACT, TCP, 443, 80, 22),
	[WILD] = RULE("*.wild.test", WILDCARD, TCP, 443),
	[LOCAL] = RULE("localhost", EXACT, TCP, 443),
	[LOOPBACK] = RULE("127.0.0.2", ADDRESS, TCP, 443),
	[PRIVATE] = RULE("10.1.2.3", ADDRESS, TCP, 443),
	[PUBLIC6] = RULE("2600::1", ADDRESS, TCP, 443),
	[RANGE] = RULE("192.31.196.0/24", CIDR, TCP, 443),
	[UDP] = RULE("api.corp.test", EXACT, UDP, 443),
	[HTTP] = RULE("api.corp.test", EXACT, HTTP, 9000),
};
static struct ssb_plan plan = { .egress = rules, .n_egress = RULES };
static struct egress_table *table;
static struct world world;

static struct dial_request request(uint32_t rule, const char *name, uint16_t port)
{
	struct dial_request q = { .id = { 1, rule == UDP ? DIAL_UDP : DIAL_TCP },
		                  .rule = rule,
		                  .port = port };

	(void)snprintf(q.name, sizeof(q.name), "%s", name);
	return q;
}

/* ---- which proxy -------------------------------------------------------- */

static const struct {
	const char *no_proxy;
	uint32_t rule;
	const char *name;
	uint16_t port;
	int use; /* index in plan.upstream; -1: connect directly */
} USES[] = {
	{ NULL, NAME, "api.corp.test", 443, UPSTREAM_OTHER },
	{ NULL, NAME, "api.corp.test", 22, UPSTREAM_OTHER },
	{ NULL, NAME, "api.corp.test", 80, UPSTREAM_HTTP },
	{ NULL, HTTP, "api.corp.test", 9000, UPSTREAM_HTTP },
	{ NULL, UDP, "api.corp.test", 443, UPSTREAM_OTHER },
	{ NULL, WILD, "a.wild.test", 443, UPSTREAM_OTHER },
	{ NULL, PRIVATE, "10.1.2.3", 443, UPSTREAM_OTHER },
	{ NULL, RANGE, "192.31.196.9", 443, UPSTREAM_OTHER },
	/* this machine is never reached through a proxy */
	{ NULL, LOCAL, "localhost", 443, -1 },
	{ NULL, LOOPBACK, "127.0.0.2", 443, -1 },
	/* no_proxy */
	{ "*", NAME, "api.corp.test", 443, -1 },
	{ "*", PRIVATE, "10.1.2.3", 443, -1 },
	{ "*", UDP, "api.corp.test", 443, -1 },
	{ "api.corp.test", NAME, "api.corp.test", 443, -1 },
	{ "corp.test", NAME, "api.corp.test", 80, -1 },
	{ "test", NAME, "api.corp.test", 443, -1 },
	{ "orp.test", NAME, "api.corp.test", 443, UPSTREAM_OTHER },
	{ "v.api.corp.test", NAME, "api.corp.test", 443, UPSTREAM_OTHER },
	{ "wild.test", WILD, "a.b.wild.test", 443, -1 },
	{ "b.wild.test", WILD, "a.b.wild.test", 443, -1 },
	{ "b.wild.test", WILD, "ab.wild.test", 443, UPSTREAM_OTHER },
	{ "10.1.2.3", PRIVATE, "10.1.2.3", 443, -1 },
	{ "10.0.0.0/8", PRIVATE, "10.1.2.3", 443, -1 },
	{ "10.2.0.0/16", PRIVATE, "10.1.2.3", 443, UPSTREAM_OTHER },
	{ "0.0.0.0/0", NAME, "api.corp.test", 443,
	  UPSTREAM_OTHER }, /* a range does not match a name, because its address is not known */
	{ "2600::/16", PUBLIC6, "2600::1", 443, -1 },
	{ "192.31.196.8/29", RANGE, "192.31.196.9", 443, -1 },
	{ "192.31.196.8/29", RANGE, "192.31.196.99", 443, UPSTREAM_OTHER },
};

static void which_proxy(void **state)
{
	plan.upstream[UPSTREAM_HTTP] = (struct upstream){ .host = (char[]){ "h" }, .port = 1 };
	plan.upstream[UPSTREAM_OTHER] = (struct upstream){ .host = (char[]){ "o" }, .port = 2 };
	for (size_t i = 0; i < ARRAY_LEN(USES); i++) {
		char *items[] = { (char *)(uintptr_t)USES[i].no_proxy };
		struct dial_request q = request(USES[i].rule, USES[i].name, USES[i].port);
		plan.no_proxy = (struct string_list){ items, items[0] != NULL };
		const struct upstream *want = USES[i].use < 0 ? NULL : &plan.upstream[USES[i].use];
		if (proxy_for(&plan, &q) != want) {
			fail_msg("%s with %s", USES[i].name, USES[i].no_proxy);
		}
	}
	plan.no_proxy = (struct string_list){ 0 };
	plan.udp_direct = true;
	struct dial_request q = request(UDP, "api.corp.test", 443);
	assert_null(proxy_for(&plan, &q));
	q = request(NAME, "api.corp.test", 443);
	assert_non_null(proxy_for(&plan, &q));
	plan.udp_direct = false;
	plan.upstream[UPSTREAM_OTHER] = (struct upstream){ 0 };
	assert_null(proxy_for(&plan, &q)); /* the only proxy left is for plain HTTP, on port 80 */
	q.port = 80;
	assert_non_null(proxy_for(&plan, &q));
}

/* ---- a proxy for the tests ----------------------------------------------- */

static struct {
	const char *answer;
	size_t len;
	size_t cut;        /* bytes of the answer in one write */
	int pause_ms;      /* pause between the writes */
	unsigned limit_ms; /* time limit for dialling; 0: 20 s */
	bool end;          /* the proxy closes the connection after its answer */
	char heard[4096];
	char after[64]; /* bytes that came after the request */
} script;

static void *serve(void *arg)
{
	auto_fd fd = accept4(world.open4, NULL, NULL, SOCK_CLOEXEC);
	size_t n = 0;

	if (fd < 0) {
		return arg;
	}
	while (strstr(script.heard, "\r\n\r\n") == NULL) {
		ssize_t r = read(fd, script.heard + n, sizeof(script.heard) - 1 - n);
		if (r <= 0) {
			return arg;
		}
		n += (size_t)r;
	}
	for (size_t at = 0; at < script.len; at += script.cut) {
		size_t k = script.len - at < script.cut ? script.len - at : script.cut;
		if (send(fd, script.answer + at, k, MSG_NOSIGNAL) < 0) {
			break;
		}
		(void)usleep((useconds_t)script.pause_ms * 1000);
	}
	if (!script.end) {
		ssize_t r = read(fd, script.after, sizeof(script.after) - 1);
		(void)r;
	}
	return arg;
}

static size_t no_resolver(const char *name, int type, struct race_target *targets)
{
	fail_msg("resolved %s", name);
	return 0;
}

static size_t resolver(const char *name, int type, struct race_target *targets)
{
	assert_int_equal(type, SOCK_STREAM);
	if (strcmp(name, "proxy.test") != 0) {
		return 0;
	}
	assert_true(address_parse("127.0.0.3", &targets[0].address)); /* no listener */
	assert_true(address_parse("127.0.0.1", &targets[1].address));
	return 2;
}

struct outcome {
	int fd;
	struct dial_reply reply;
	int64_t took_ms;
};

/* Connects through the proxy `u`, with a limit of `ms`. */
static struct outcome dial_with(const struct upstream *u, struct dial_request q, unsigned ms)
{
	struct dial_config config = { .table = table };
	struct outcome o = { 0 };
	int64_t start = race_now_us();

	o.fd = proxy_dial(&config, u, &q, u->host[0] == 'p' ? resolver : no_resolver,
	                  start + (int64_t)ms * 1000, &o.reply);
	o.took_ms = (race_now_us() - start) / 1000;
	assert_int_equal(o.fd >= 0, o.reply.result == DIAL_OK);
	assert_int_equal(o.reply.via_proxy, 1);
	return o;
}

static const struct upstream PLAIN = { .host = (char[]){ "127.0.0.1" }, .port = OPEN };
static const struct upstream NAMED = { .host = (char[]){ "proxy.test" }, .port = OPEN };
static const struct upstream SECRET = { .host = (char[]){ "127.0.0.1" },
	                                .port = OPEN,
	                                .credentials = (char[]){ "dXNlcjpwYXNz" } };

static struct outcome play(const struct upstream *u, struct dial_request q, const char *answer,
                           size_t cut)
{
	pthread_t thread;

	script.answer = answer;
	script.len = strlen(answer);
	script.cut = cut;
	memset(script.heard, 0, sizeof(script.heard));
	memset(script.after, 0, sizeof(script.after));
	assert_int_equal(pthread_create(&thread, NULL, serve, NULL), 0);
	struct outcome o = dial_with(u, q, script.limit_ms > 0 ? script.limit_ms : 20000);
	if (o.fd >= 0 && !script.end) {
		assert_int_equal(send(o.fd, "to the server", 13, MSG_NOSIGNAL), 13);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	return o;
}

static void what_it_is_told(void **state)
{
	static const struct {
		const struct upstream *u;
		uint32_t rule;
		const char *name;
		uint16_t port;
		const char *heard;
	} CASES[] = {
		{ &PLAIN, NAME, "api.corp.test", 22,
		  "CONNECT api.corp.test:22 HTTP/1.1\r\nHost: api.corp.test:22\r\n\r\n" },
		{ &NAMED, WILD, "a.wild.test", 443,
		  "CONNECT a.wild.test:443 HTTP/1.1\r\nHost: a.wild.test:443\r\n\r\n" },
		{ &SECRET, PUBLIC6, "2600:0::1", 443,
		  "CONNECT [2600::1]:443 HTTP/1.1\r\nHost: [2600::1]:443\r\n"
		  "Proxy-Authorization: Basic dXNlcjpwYXNz\r\n\r\n" },
		{ &PLAIN, RANGE, "::ffff:192.31.196.7", 443,
		  "CONNECT 192.31.196.7:443 HTTP/1.1\r\nHost: 192.31.196.7:443\r\n\r\n" },
	};
	char text[ADDRESS_TEXT];

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		struct outcome o =
		        play(CASES[i].u, request(CASES[i].rule, CASES[i].name, CASES[i].port),
		             "HTTP/1.1 200 OK\r\n\r\n", 99);
		assert_int_equal(o.reply.result, DIAL_OK);
		address_format(&o.reply.address, text);
		assert_string_equal(text, "127.0.0.1");
		assert_string_equal(script.heard, CASES[i].heard);
		assert_string_equal(script.after, "to the server");
		(void)close(o.fd);
	}
}

static void longest_name(void **state)
{
	char name[254];
	static char secret[685];
	struct upstream u = { .host = PLAIN.host, .port = OPEN, .credentials = secret };

	memset(secret, 'A', sizeof(secret) - 1); /* of the maximum length */
	memset(name, 'a', sizeof(name) - 1);
	for (size_t i = 60; i < 240; i += 60) {
		name[i] = '.';
	}
	memcpy(name + 253 - 10, ".wild.test", 11);
	struct outcome o = play(&u, request(WILD, name, 443), "HTTP/1.1 200 OK\r\n\r\n", 99);
	assert_int_equal(o.reply.result, DIAL_OK);
	assert_non_null(strstr(script.heard, name));
	assert_non_null(strstr(script.heard, secret));
	(void)close(o.fd);
}

/* The proxy's answer comes in pieces of any size: all bytes after its head reach the client. */
static void bytes_behind_the_head(void **state)
{
	static const char ANSWER[] = "HTTP/1.1 100 Wait\r\n\r\nHTTP/1.1 200 OK\r\nVia: x\r\n\r\n"
	                             "220 the server speaks first\r\n\r\n";
	static const size_t CUTS[] = { 1, 2, 5, 44, 45, 46, 1000 };

	for (size_t i = 0; i < ARRAY_LEN(CUTS); i++) {
		char got[64] = { 0 };
		size_t n = 0;
		script.end = true;
		struct outcome o =
		        play(&PLAIN, request(NAME, "api.corp.test", 443), ANSWER, CUTS[i]);
		assert_int_equal(o.reply.result, DIAL_OK);
		for (ssize_t r = 1; r != 0 && n<sizeof(got) - 1; n += r> 0 ? (size_t)r : 0) {
			struct pollfd p = { .fd = o.fd, .events = POLLIN };
			assert_int_equal(poll(&p, 1, 20000), 1);
			r = read(o.fd, got + n, sizeof(got) - 1 - n);
			assert_true(r >= 0);
		}
		assert_string_equal(got, "220 the server speaks first\r\n\r\n");
		(void)close(o.fd);
	}
	script.end = false;
}

static void answers(void **state)
{
	static const struct {
		const char *answer;
		enum dial_result result;
	} CASES[] = {
		{ "HTTP/1.1 403 Forbidden\r\n\r\n", DIAL_PROXY_REFUSED },
		{ "HTTP/1.1 502 Bad gateway\r\nContent-Length: 2\r\n\r\nno", DIAL_PROXY_REFUSED },
		{ "HTTP/1.1 302 Found\r\nLocation: http://evil.test/\r\n\r\n", DIAL_PROXY_REFUSED },
		{ "HTTP/1.1 101 Switching\r\n\r\n", DIAL_PROXY_REFUSED },
		{ "HTTP/1.1 407 Who are you\r\n\r\n", DIAL_PROXY_AUTH },
		/* the connection ends within the head */
		{ "HTTP/1.1 200 OK\r\n", DIAL_PROXY_BROKEN },
		{ "", DIAL_PROXY_BROKEN },
		{ "SSH-2.0-x\r\n", DIAL_PROXY_BROKEN },
	};
	char text[ADDRESS_TEXT];

	script.end = true;
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		struct outcome o =
		        play(&SECRET, request(NAME, "api.corp.test", 443), CASES[i].answer, 999);
		if (o.reply.result != CASES[i].result) {
			fail_msg("%s: %s", CASES[i].answer,
			         reason_code(dial_result_reason(o.reply.result)));
		}
		address_format(&o.reply.address, text);
		assert_string_equal(text, "127.0.0.1");
	}
	script.end = false;
}

/* The head of the proxy's answer never ends. If it comes in large pieces, dialling fails at the
 * limit of size; if in tiny pieces, at the limit of time. */
static void hostile(void **state)
{
	static char flood[CONNECT_REPLY_MAX * 8];

	memset(flood, 'x', sizeof(flood) - 1);
	memcpy(flood, "HTTP/1.1 200 ", 13);
	script.end = true;
	struct outcome o = play(&PLAIN, request(NAME, "api.corp.test", 443), flood, 4096);
	assert_int_equal(o.reply.result, DIAL_PROXY_BROKEN);
	flood[3000] = '\0';
	script.pause_ms = 5;
	script.limit_ms = 1000;
	o = play(&PLAIN, request(NAME, "api.corp.test", 443), flood, 1);
	assert_int_equal(o.reply.result, DIAL_TIMEOUT);
	assert_true(o.took_ms >= 990 && o.took_ms < 10000);
	script.pause_ms = 0;
	script.limit_ms = 0;
	script.end = false;
}

static void silence(void **state)
{
	struct outcome o = dial_with(&PLAIN, request(NAME, "api.corp.test", 443), 300);

	/* the dialler's connection is still in the backlog of open4 */
	assert_int_equal(o.reply.result, DIAL_TIMEOUT);
	assert_true(o.took_ms >= 290 && o.took_ms < 10000);
	auto_fd stale = accept4(world.open4, NULL, NULL, SOCK_CLOEXEC);
	assert_true(stale >= 0);
	struct upstream closed = { .host = PLAIN.host, .port = CLOSED };
	o = dial_with(&closed, request(NAME, "api.corp.test", 443), 20000);
	assert_int_equal(o.reply.result, DIAL_PROXY_UNREACHABLE);
	struct upstream unknown = { .host = (char[]){ "p.unknown.test" }, .port = OPEN };
	o = dial_with(&unknown, request(NAME, "api.corp.test", 443), 20000);
	assert_int_equal(o.reply.result, DIAL_PROXY_UNREACHABLE);
}

/* A request that the dialler refuses is not sent to the proxy. */
static void judged_here(void **state)
{
	struct pollfd p = { .fd = world.open4, .events = POLLIN };

	struct outcome o = dial_with(&PLAIN, request(PRIVATE, "10.1.2.3", 443), 20000);
	assert_int_equal(o.reply.result, DIAL_GUARDED);
	assert_string_equal(o.reply.range, "private");
	o = dial_with(&PLAIN, request(UDP, "api.corp.test", 443), 20000);
	assert_int_equal(o.reply.result, DIAL_PROXY_NO_UDP);
	assert_int_equal(poll(&p, 1, 50), 0);
	assert_int_equal(dial_result_reason(DIAL_PROXY_NO_UDP), REASON_PROXY_NO_UDP);
	assert_int_equal(dial_result_reason(DIAL_PROXY_REFUSED), REASON_PROXY_REFUSED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(which_proxy),  cmocka_unit_test(what_it_is_told),
		cmocka_unit_test(longest_name), cmocka_unit_test(bytes_behind_the_head),
		cmocka_unit_test(answers),      cmocka_unit_test(hostile),
		cmocka_unit_test(silence),      cmocka_unit_test(judged_here),
	};
	struct ssb_error err = { 0 };

	world_start(&world);
	if (egress_table_new(&plan, &table, &err) < 0) {
		fail_msg("%s", err.text);
	}
	/* The dialler's listeners are nonblocking; the test's proxy needs a blocking one. */
	(void)fcntl(world.open4, F_SETFL, 0);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	world_stop(&world);
	egress_table_free(table);
	return failed;
}
