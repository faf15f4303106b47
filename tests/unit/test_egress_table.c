/* test_egress_table.c - the table that gives each declared name a synthetic address: the addresses
 * of names, the names of addresses, pools for wildcards, and rules. */
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"
#include "base/limits.h"
#include "base/own.h"
#include "egress/table.h"
#include "os/net.h"

#define RULE(text, k, proto, ...)                                                                  \
	{                                                                                          \
		.domain = { .s = (char *)(uintptr_t)(text) }, .kind = HOST_##k,                    \
		.protocol = PROTO_##proto, .ports = (uint16_t[]){ __VA_ARGS__ },                   \
		.n_ports = sizeof((uint16_t[]){ __VA_ARGS__ }) / sizeof(uint16_t)                  \
	}

/* Returns the table of a plan; fails the test if there is none. */
static struct egress_table *table(const struct ssb_plan *plan)
{
	struct egress_table *t = NULL;
	struct ssb_error err = { 0 };

	if (egress_table_new(plan, &t, &err) < 0) {
		fail_msg("%s", err.text);
	}
	return t;
}

static void tablep_free(struct egress_table **t)
{
	egress_table_free(*t);
}
#define auto_table AUTO(tablep_free) struct egress_table *

static struct slot *by_address(struct egress_table *t, const char *text)
{
	struct address a;

	assert_true(address_parse(text, &a));
	return egress_by_address(t, &a);
}

static struct slot *by_name(struct egress_table *t, const char *name)
{
	bool full = true;
	struct slot *s = egress_by_name(t, name, &full);

	assert_false(full);
	return s;
}

static void empty_plan(void **state)
{
	struct ssb_plan plan = { 0 };
	auto_table t = table(&plan);

	assert_int_equal(t->n_slots, 0);
	assert_null(by_name(t, "api.example.com"));
	assert_null(by_name(t, ""));
	assert_null(by_address(t, "198.18.1.1"));
	egress_table_free(NULL);
}

static void names_and_addresses(void **state)
{
	struct egress_rule rules[] = {
		RULE("api.example.com", EXACT, TLS, 443),
		RULE("db.example.com", EXACT, TCP, 5432),
		RULE("api.example.com", EXACT, TCP, 22, 443),
		RULE("api.example.com", EXACT, UDP, 443),
	};
	struct ssb_plan plan = { .egress = rules, .n_egress = 4 };
	auto_table t = table(&plan);

	assert_int_equal(t->n_slots, 2);
	struct slot *api = by_name(t, "api.example.com");
	assert_non_null(api);
	assert_ptr_equal(by_address(t, "198.18.1.1"), api);
	assert_ptr_equal(by_address(t, "::ffff:198.18.1.1"), api);
	assert_ptr_equal(by_address(t, "fd53:7373:6273:1::1"), api);
	assert_string_equal(by_address(t, "198.18.1.2")->name, "db.example.com");
	assert_string_equal(by_address(t, "fd53:7373:6273:1::2")->name, "db.example.com");
	assert_null(by_address(t, "198.18.1.0"));
	assert_null(by_address(t, "198.18.1.3"));
	assert_null(by_address(t, EGRESS_DNS4));
	assert_null(by_address(t, EGRESS_DNS6));
	assert_null(by_name(t, "example.com"));
	assert_null(by_name(t, "evilapi.example.com"));
	assert_null(by_name(t, "api.example.com.evil.test"));

	assert_int_equal(egress_rule_for(t, api, 443, false), 0);
	assert_int_equal(egress_rule_for(t, api, 22, false), 2);
	assert_int_equal(egress_rule_for(t, api, 443, true), 3);
	assert_int_equal(egress_rule_for(t, api, 22, true), -1);
	assert_int_equal(egress_rule_for(t, api, 5432, false), -1);
}

/* Several rules for one name and port are combined: a TCP rule allows any bytes, other rules only
 * the protocol of the first bytes. */
static void rules_add_up(void **state)
{
	struct egress_rule rules[] = {
		RULE("api.example.com", EXACT, HTTP, 9000, 9001),
		RULE("api.example.com", EXACT, TLS, 9000, 9001, 443),
		RULE("api.example.com", EXACT, TCP, 9001),
		RULE("*.example.com", WILDCARD, TCP, 9000),
	};
	struct ssb_plan plan = { .egress = rules, .n_egress = 4 };
	auto_table t = table(&plan);
	struct slot *api = by_name(t, "api.example.com");

	assert_int_equal(egress_rule_for(t, api, 9000, false), 0);
	assert_int_equal(egress_rule_speaking(t, api, 9000, FIRST_HTTP), 0);
	assert_int_equal(egress_rule_speaking(t, api, 9000, FIRST_TLS), 1);
	/* only the wildcard's rule allows these bytes, and it does not apply to an exact name */
	assert_int_equal(egress_rule_speaking(t, api, 9000, FIRST_RAW), -1);
	assert_int_equal(egress_rule_for(t, api, 9001, false), 2);
	assert_int_equal(egress_rule_speaking(t, api, 443, FIRST_HTTP), -1);
	assert_int_equal(egress_rule_speaking(t, api, 22, FIRST_TLS), -1);
}

/* Each /24 of synthetic addresses has 254 of them. In IPv6, the number of a name may need more than
 * one byte. */
static void numbering(void **state)
{
	enum { N = 600 };
	static char names[N][32];
	static struct egress_rule rules[N];
	struct ssb_plan plan = { .egress = rules, .n_egress = N };

	for (size_t i = 0; i < N; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "n%zu.test", i);
		rules[i] = (struct egress_rule){ .domain.s = names[i], .kind = HOST_EXACT };
	}
	auto_table t = table(&plan);
	assert_string_equal(by_address(t, "198.18.1.254")->name, "n253.test");
	assert_null(by_address(t, "198.18.1.255"));
	assert_null(by_address(t, "198.18.2.0"));
	assert_string_equal(by_address(t, "198.18.2.1")->name, "n254.test");
	assert_string_equal(by_address(t, "fd53:7373:6273:1::100")->name, "n255.test");
	for (size_t i = 0; i < t->n_slots; i++) {
		struct address a = { .b = { [10] = 0xff, 0xff } };
		memcpy(a.b + 12, t->slots[i].v4, 4);
		assert_ptr_equal(egress_by_address(t, &a), &t->slots[i]);
		memcpy(a.b, t->slots[i].v6, 16);
		assert_ptr_equal(egress_by_address(t, &a), &t->slots[i]);
		assert_string_equal(guard_address_special(&a), "unique_local");
	}
}

static void wildcard_pool(void **state)
{
	struct egress_rule rules[] = {
		RULE("*.example.com", WILDCARD, TLS, 443),
		RULE("*.example.com", WILDCARD, TCP, 22), /* shares the pool of the first rule */
	};
	struct ssb_plan plan = { .egress = rules, .n_egress = 2 };
	auto_table t = table(&plan);
	char name[32];
	bool full = false;

	assert_int_equal(t->n_slots, EGRESS_POOL);
	assert_null(by_address(t, "198.18.1.1")); /* no name has this address yet */
	for (int i = 0; i < EGRESS_POOL; i++) {
		(void)snprintf(name, sizeof(name), "n%d.example.com", i);
		struct slot *s = by_name(t, name);
		assert_non_null(s);
		assert_true(s->pool);
		assert_string_equal(s->name, name);
		assert_ptr_equal(by_name(t, name), s);
		assert_int_equal(egress_rule_for(t, s, 443, false), 0);
		assert_int_equal(egress_rule_for(t, s, 22, false), 1);
	}
	assert_string_equal(by_address(t, "198.18.1.1")->name, "n0.example.com");
	assert_null(egress_by_name(t, "one-more.example.com", &full));
	assert_true(full);
	assert_non_null(by_name(t, "n31.example.com"));
	assert_null(by_name(t, "example.org"));
}

/* The pool of a wildcard also allows the ports of each wider wildcard, even before the pool has
 * names. */
static void nested_wildcards(void **state)
{
	struct egress_rule rules[] = {
		RULE("*.example.com", WILDCARD, TCP, 443, 25),
		RULE("*.a.example.com", WILDCARD, TCP, 443, 26),
		RULE("x.a.example.com", EXACT, TCP, 443, 27),
	};
	struct ssb_plan plan = { .egress = rules, .n_egress = 3 };
	auto_table t = table(&plan);
	const struct slot *outer = &t->slots[0];
	const struct slot *inner = &t->slots[EGRESS_POOL];

	assert_int_equal(egress_rule_for(t, outer, 443, false), 0);
	assert_int_equal(egress_rule_for(t, outer, 26, false), -1);
	assert_int_equal(egress_rule_for(t, inner, 443, false), 1);
	assert_int_equal(egress_rule_for(t, inner, 25, false), 0);
	assert_int_equal(egress_rule_for(t, inner, 27, false), -1);
	assert_ptr_equal(by_name(t, "y.a.example.com"), inner);
	assert_ptr_equal(by_name(t, "a.example.com"), outer);
	const struct slot *exact = by_name(t, "x.a.example.com");
	assert_false(exact->pool);
	assert_int_equal(egress_rule_for(t, exact, 443, false), 2);
	assert_int_equal(egress_rule_for(t, exact, 26, false), 1);
	assert_int_equal(egress_rule_for(t, exact, 25, false), 0);
}

#define LABEL63 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const struct {
	const char *domain;
	enum host_kind kind;
	const char *name;
	bool matches;
} MATCHES[] = {
	{ "a.test", HOST_EXACT, "a.test", true },
	{ "a.test", HOST_EXACT, "b.a.test", false },
	{ "a.test", HOST_EXACT, "a.test.", false },
	{ "a.test", HOST_EXACT, "", false },
	{ "*.a.test", HOST_WILDCARD, "b.a.test", true },
	{ "*.a.test", HOST_WILDCARD, "c.b.a.test", true },
	{ "*.a.test", HOST_WILDCARD, "a.test", false },
	{ "*.a.test", HOST_WILDCARD, ".a.test", false },
	{ "*.a.test", HOST_WILDCARD, "ba.test", false },
	{ "*.a.test", HOST_WILDCARD, "b.a.test.evil.test", false },
	{ "*.a.test", HOST_WILDCARD, "*.a.test", false },
	{ "*.a.test", HOST_WILDCARD, "b..a.test", false },
	{ "*.a.test", HOST_WILDCARD, "b c.a.test", false },
	{ "*.a.test", HOST_WILDCARD, "b/c.a.test", false },
	{ "*.a.test", HOST_WILDCARD, "b\xff.a.test", false },
	{ "*.a.test", HOST_WILDCARD, LABEL63 ".a.test", true },
	{ "*.a.test", HOST_WILDCARD, LABEL63 "a.a.test", false },
	{ "*.a.test", HOST_WILDCARD, LABEL63 "." LABEL63 "." LABEL63 "." LABEL63 ".a.test", false },
	{ "192.0.2.1", HOST_ADDRESS, "192.0.2.1", true },
	{ "192.0.2.1", HOST_ADDRESS, "::ffff:192.0.2.1", true },
	{ "192.0.2.1", HOST_ADDRESS, "192.0.2.2", false },
	{ "2001:db8::1", HOST_ADDRESS, "2001:db8:0::1", true },
	{ "127.0.0.1", HOST_ADDRESS, "127.1", false },
	{ "192.0.2.0/24", HOST_CIDR, "192.0.2.0/24", false },
	{ "192.0.2.0/24", HOST_CIDR, "192.0.2.1", true },
	{ "192.0.2.0/24", HOST_CIDR, "192.0.2.255", true },
	{ "192.0.2.0/24", HOST_CIDR, "::ffff:192.0.2.1", true },
	{ "192.0.2.0/24", HOST_CIDR, "192.0.3.0", false },
	{ "192.0.2.0/24", HOST_CIDR, "192.0.1.255", false },
	{ "192.0.2.0/24", HOST_CIDR, "192.0.2.1.", false },
	{ "192.0.2.0/24", HOST_CIDR, "192.0.2", false },
	{ "192.0.2.0/24", HOST_CIDR, "a.test", false },
	{ "2001:db8::/64", HOST_CIDR, "2001:db8::ffff:1", true },
	{ "2001:db8::/64", HOST_CIDR, "2001:db8:0:1::", false },
	{ "2001:db8::/64", HOST_CIDR, "192.0.2.1", false },
};

static void matching(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(MATCHES); i++) {
		struct egress_rule rule = { .domain.s = (char *)(uintptr_t)MATCHES[i].domain,
			                    .kind = MATCHES[i].kind };
		if (egress_name_matches(&rule, MATCHES[i].name) != MATCHES[i].matches) {
			fail_msg("%s and %s", MATCHES[i].domain, MATCHES[i].name);
		}
	}
}

static void literals(void **state)
{
	static const uint8_t zero[16];
	struct egress_rule rules[] = {
		RULE("192.0.2.7", ADDRESS, TCP, 80), RULE("2001:db8::7", ADDRESS, TCP, 80),
		RULE("::ffff:192.0.2.7", ADDRESS, TCP, 81), /* the same address as the first rule */
	};
	struct ssb_plan plan = { .egress = rules, .n_egress = 3 };
	auto_table t = table(&plan);

	assert_int_equal(t->n_slots, 2);
	struct slot *s4 = by_address(t, "192.0.2.7");
	struct slot *s6 = by_address(t, "2001:db8::7");
	assert_true(s4->literal4 && !s4->literal6);
	assert_true(s6->literal6 && !s6->literal4);
	assert_string_equal(s4->name, "192.0.2.7");
	assert_int_equal(egress_rule_for(t, s4, 80, false), 0);
	assert_int_equal(egress_rule_for(t, s4, 81, false), 2);
	assert_int_equal(egress_rule_for(t, s6, 80, false), 1);
	assert_int_equal(egress_rule_for(t, s6, 81, false), -1);
	/* A literal has no address in the other IP family. */
	assert_memory_equal(s4->v6, zero, 16);
	assert_null(by_address(t, "::"));
	assert_null(by_address(t, "0.0.0.0"));
	assert_null(by_address(t, "198.18.1.1"));
	/* A literal cannot be resolved as a name. */
	assert_null(by_name(t, "192.0.2.7"));
}

/* An address belongs to the narrowest rule. It may use the ports of every rule that contains it. */
static void ranges(void **state)
{
	struct egress_rule rules[] = {
		RULE("192.0.2.0/24", CIDR, TCP, 80),     RULE("192.0.2.16/28", CIDR, TCP, 81),
		RULE("192.0.2.20", ADDRESS, TCP, 82),    RULE("192.0.2.16/28", CIDR, UDP, 80),
		RULE("2001:db8::/64", CIDR, TCP, 80),    RULE("192.0.2.0/24", CIDR, TCP, 83),
		RULE("2001:db8::1:0/126", CIDR, TCP, 9), RULE("192.0.2.16/28", CIDR, TLS, 83),
	};
	struct ssb_plan plan = { .egress = rules, .n_egress = ARRAY_LEN(rules) };
	auto_table t = table(&plan);
	char text[ADDRESS_TEXT];
	struct address a;

	assert_int_equal(t->n_slots, 5);
	struct slot *outer = by_address(t, "192.0.2.1");
	struct slot *inner = by_address(t, "192.0.2.31");
	struct slot *one = by_address(t, "192.0.2.20");
	assert_string_equal(outer->name, "192.0.2.0/24");
	assert_string_equal(inner->name, "192.0.2.16/28");
	assert_string_equal(one->name, "192.0.2.20");
	assert_ptr_equal(by_address(t, "192.0.2.32"), outer);
	assert_ptr_equal(by_address(t, "::ffff:192.0.2.31"), inner);
	assert_null(by_address(t, "192.0.3.0"));
	assert_null(by_address(t, "2001:db8:0:1::"));
	assert_int_equal(egress_rule_for(t, outer, 80, false), 0);
	assert_int_equal(egress_rule_for(t, outer, 81, false), -1);
	assert_int_equal(egress_rule_for(t, outer, 83, false), 5);
	assert_int_equal(egress_rule_for(t, outer, 80, true), -1);
	assert_int_equal(egress_rule_for(t, inner, 80, false), 0);
	assert_int_equal(egress_rule_for(t, inner, 81, false), 1);
	assert_int_equal(egress_rule_for(t, inner, 80, true), 3);
	assert_int_equal(egress_rule_for(t, inner, 82, false), -1);
	assert_int_equal(egress_rule_for(t, inner, 83, false), 7);
	assert_int_equal(egress_rule_for(t, one, 80, false), 0);
	assert_int_equal(egress_rule_for(t, one, 81, false), 1);
	assert_int_equal(egress_rule_for(t, one, 82, false), 2);
	assert_int_equal(egress_rule_for(t, one, 83, false), 7);
	assert_true(outer->wide && !inner->wide && !one->wide);
	assert_true(by_address(t, "2001:db8::5")->wide);
	/* This range is not wide: it has four addresses and two ports (its own, and the port of the
	 * range around it). */
	assert_false(by_address(t, "2001:db8::1:3")->wide);

	/* The name of a connection to a range is the address to which the skill connects, as
	 * text. */
	assert_true(address_parse("::ffff:192.0.2.31", &a));
	assert_string_equal(egress_name(inner, &a, text), "192.0.2.31");
	assert_string_equal(egress_name(one, &a, text), "192.0.2.20");
	assert_true(egress_is_at(t, inner, &a) && !egress_is_at(t, outer, &a));
	assert_null(by_name(t, "192.0.2.31"));
	assert_null(by_name(t, "192.0.2.16/28"));
}

static const struct {
	struct egress_rule rule;
	bool wide;
} WIDTHS[] = {
	{ RULE("192.0.2.0/25", CIDR, TCP, 80), false },
	{ RULE("192.0.2.0/25", CIDR, TCP, 80, 81), true },
	{ RULE("192.0.2.0/26", CIDR, TCP, 80, 81), false },
	{ RULE("192.0.2.0/24", CIDR, TCP, 80), true },
	/* UDP ports do not count for this */
	{ RULE("192.0.2.0/25", CIDR, UDP, 80, 81), false },
	{ RULE("2001:db8::/121", CIDR, TCP, 80), false },
	{ RULE("2001:db8::/120", CIDR, TCP, 80), true },
	{ RULE("2001:db8::/48", CIDR, TCP, 80), true },
};

/* A range is wide if its addresses and ports need more sockets than the cap. */
static void wide(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(WIDTHS); i++) {
		struct egress_rule rules[] = { WIDTHS[i].rule };
		struct ssb_plan plan = { .egress = rules, .n_egress = 1 };
		auto_table t = table(&plan);
		if (t->slots[0].wide != WIDTHS[i].wide) {
			fail_msg("%s", WIDTHS[i].rule.domain.s);
		}
	}
}

static const struct {
	struct egress_rule rule;
	enum ssb_code code;
	const char *text;
} REFUSED[] = {
	{ RULE("198.16.0.0/14", CIDR, TCP, 80), SSB_E_POLICY, "198.18.0.0/15" },
	{ RULE("198.19.255.0/24", CIDR, TCP, 80), SSB_E_POLICY, "198.18.0.0/15" },
	{ RULE("fd53:7373:6273:ff::/64", CIDR, TCP, 80), SSB_E_POLICY, "fd53:7373:6273::/48" },
	{ RULE("192.0.2.1/24", CIDR, TCP, 80), SSB_E_POLICY, "not an address" },
	{ RULE("198.18.1.1", ADDRESS, TCP, 80), SSB_E_POLICY, "198.18.0.0/15" },
	{ RULE("198.18.0.53", ADDRESS, TCP, 53), SSB_E_POLICY, "198.18.0.0/15" },
	{ RULE("fd53:7373:6273:1::1", ADDRESS, TCP, 80), SSB_E_POLICY, "fd53:7373:6273::/48" },
	{ RULE("127.1", ADDRESS, TCP, 80), SSB_E_POLICY, "127.1" },
};

static void refused(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(REFUSED); i++) {
		struct egress_rule rules[] = { RULE("a.test", EXACT, TCP, 80), REFUSED[i].rule };
		struct ssb_plan plan = { .egress = rules, .n_egress = 2 };
		struct egress_table *t = (struct egress_table *)&plan;
		struct ssb_error err = { 0 };

		assert_int_equal(egress_table_new(&plan, &t, &err), -1);
		assert_ptr_equal(t, &plan);
		assert_int_equal(err.code, REFUSED[i].code);
		assert_non_null(strstr(err.text, REFUSED[i].text));
		plan.n_egress = 1;
		egress_table_free(table(&plan));
	}
}

static void slot_cap(void **state)
{
	enum { N = MAX_EGRESS_SLOTS / EGRESS_POOL };
	static char names[N + 1][32];
	static struct egress_rule rules[N + 1];
	struct ssb_plan plan = { .egress = rules, .n_egress = N };
	struct egress_table *t = NULL;
	struct ssb_error err = { 0 };

	for (size_t i = 0; i < N; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "*.n%zu.test", i);
		rules[i] = (struct egress_rule){ .domain.s = names[i], .kind = HOST_WILDCARD };
	}
	rules[N] = (struct egress_rule)RULE("a.test", EXACT, TCP, 80);
	assert_int_equal(egress_table_new(&plan, &t, &err), 0);
	assert_int_equal(t->n_slots, MAX_EGRESS_SLOTS);
	egress_table_free(t);
	plan.n_egress = N + 1;
	assert_int_equal(egress_table_new(&plan, &t, &err), -1);
	assert_int_equal(err.code, SSB_E_LIMIT);
}

static void first_bytes(void **state)
{
	static const uint16_t tls[] = { 443, 465, 636, 853, 990, 993, 995, 5061, 8443 };
	struct egress_rule rule = { .protocol = PROTO_TCP };

	for (size_t i = 0; i < ARRAY_LEN(tls); i++) {
		assert_int_equal(egress_first_bytes(&rule, tls[i]), FIRST_TLS);
	}
	assert_int_equal(egress_first_bytes(&rule, 80), FIRST_HTTP);
	assert_int_equal(egress_first_bytes(&rule, 8080), FIRST_HTTP);
	assert_int_equal(egress_first_bytes(&rule, 22), FIRST_RAW);
	rule.protocol = PROTO_TLS;
	assert_int_equal(egress_first_bytes(&rule, 80), FIRST_TLS);
	rule.protocol = PROTO_HTTP;
	assert_int_equal(egress_first_bytes(&rule, 443), FIRST_HTTP);
	rule.protocol = PROTO_UDP;
	assert_int_equal(egress_first_bytes(&rule, 443), FIRST_RAW);
}

static int add_v6(const char *text)
{
	struct {
		struct in6_addr address;
		uint32_t prefix;
		int index;
	} request = { .prefix = 128, .index = (int)if_nametoindex("lo") };
	struct address a;
	auto_fd fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || !address_parse(text, &a)) {
		return -1;
	}
	memcpy(&request.address, a.b, sizeof(a.b));
	return ioctl(fd, SIOCSIFADDR, &request);
}

static bool sees_v6(void)
{
	/* Without a rule nothing is answered with an address of either family. */
	struct egress_rule rule = { .domain.s = (char *)(uintptr_t) "a.example" };
	struct ssb_plan plan = { .egress = &rule, .n_egress = 1 };
	struct egress_table *t = NULL;

	if (egress_table_new(&plan, &t, NULL) < 0) {
		_exit(9);
	}
	bool v6 = t->v6;
	egress_table_free(t);
	return v6;
}

/* IPv6 is used only if the host has an IPv6 address that is neither loopback nor link-local. The
 * test makes a network namespace, so the host's addresses do not matter. */
static void host_v6(void **state)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0 || net_loopback_up() < 0) {
			_exit(1);
		}
		if (sees_v6()) { /* only ::1 */
			_exit(2);
		}
		if (add_v6("fe80::1") < 0 || sees_v6()) {
			_exit(3);
		}
		_exit(add_v6("2001:db8::1") == 0 && sees_v6() ? 0 : 4);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static bool answers(struct egress_table *t, const char *text, uint16_t port, bool udp)
{
	struct address a;

	assert_true(address_parse(text, &a));
	return egress_answers(t, &a, port, udp);
}

static const char *known_as(struct egress_table *t, const char *text)
{
	static char name[HOST_NAME_SIZE];
	struct address a;

	assert_true(address_parse(text, &a));
	return egress_knows(t, &a, name) ? name : NULL;
}

/* The broker assigns addresses of a pool to names. The supervisor's copy of the table gets these
 * names through shared memory. */
static void seen_by_the_observer(void **state)
{
	struct egress_rule rules[] = {
		RULE("*.example.com", WILDCARD, TLS, 443),
		RULE("api.example.com", EXACT, TCP, 22),
	};
	struct ssb_plan plan = { .egress = rules, .n_egress = 2 };
	auto_table t = table(&plan);

	assert_string_equal(known_as(t, "198.18.1.1"), "");
	assert_string_equal(known_as(t, "198.18.1.33"), "api.example.com");
	assert_null(known_as(t, "198.18.1.34"));
	assert_true(answers(t, "198.18.1.1", 443, false));
	assert_false(answers(t, "198.18.1.1", 22, false)); /* port 22 is for another name */
	assert_true(answers(t, "198.18.1.33", 22, false));

	pid_t broker = fork();
	if (broker == 0) {
		_exit(by_name(t, "a.example.com") == &t->slots[0] ? 0 : 1);
	}
	int status = -1;
	assert_int_equal(waitpid(broker, &status, 0), broker);
	assert_int_equal(status, 0);
	assert_string_equal(t->slots[0].name, "");
	assert_string_equal(known_as(t, "198.18.1.1"), "a.example.com");
	assert_string_equal(known_as(t, "fd53:7373:6273:1::1"), "a.example.com");
	/* If the shared memory has a name that the rule does not allow, the name is ignored. */
	memset(t->given[0], 'x', sizeof(t->given[0]));
	assert_string_equal(known_as(t, "198.18.1.1"), "");
	(void)snprintf(t->given[0], sizeof(t->given[0]), "%s", "evil.test");
	assert_string_equal(known_as(t, "198.18.1.1"), "");
}

static void resolvers(void **state)
{
	struct egress_rule rules[] = {
		RULE("api.example.com", EXACT, TLS, 443),
		RULE("127.0.0.1", ADDRESS, UDP, 53),
	};
	struct ssb_plan plan = { .egress = rules, .n_egress = 2 };
	auto_table t = table(&plan);
	struct address a;

	t->v6 = true;
	assert_true(answers(t, EGRESS_DNS4, 53, true) && answers(t, EGRESS_DNS6, 53, true));
	assert_true(answers(t, "127.0.0.53", 53, true) && answers(t, "::1", 53, true));
	assert_false(answers(t, "127.0.0.53", 54, true) || answers(t, "127.0.0.2", 53, true));
	assert_true(address_parse("127.0.0.1", &a));
	/* the rule allows this address, so it is not a resolver */
	assert_false(egress_resolves_at(t, &a));
	t->v6 = false;
	assert_false(answers(t, "::1", 53, true));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_plan),    cmocka_unit_test(names_and_addresses),
		cmocka_unit_test(rules_add_up),  cmocka_unit_test(numbering),
		cmocka_unit_test(wildcard_pool), cmocka_unit_test(nested_wildcards),
		cmocka_unit_test(matching),      cmocka_unit_test(literals),
		cmocka_unit_test(refused),       cmocka_unit_test(slot_cap),
		cmocka_unit_test(first_bytes),   cmocka_unit_test(host_v6),
		cmocka_unit_test(ranges),        cmocka_unit_test(seen_by_the_observer),
		cmocka_unit_test(resolvers),     cmocka_unit_test(wide),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
