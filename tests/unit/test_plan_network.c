/* test_plan_network.c - the network of a plan: hosts, ranges, limits, certificate bundles. */
#include "plan_world.h"

#include "base/buf.h"

#define EGRESS(rules)   "permissions: {network: {egress: [" rules "]}}\n"
#define NETWORK(values) "permissions: {network: {" values "}}\n"
#define ONE_HOST        EGRESS("{domain: api.example.com}")

static void test_names(void **state)
{
	policy(NULL);
	struct ssb_plan *p = skill(EGRESS("{domain: API.example.com, ports: [8443, 443], protocol: "
	                                  "tls}, {domain: '*.example.org', protocol: udp}"),
	                           FLAGS({ SSB_OPT_NET, "own.example.com:25" }));

	assert_int_equal(p->n_refusals, 0);
	assert_int_equal(p->warnings.n, 0); /* no warning that UDP would not work */
	assert_int_equal(p->n_egress, 3);
	assert_string_equal(p->egress[0].domain.s, "own.example.com");
	assert_int_equal(p->egress[0].protocol, PROTO_TCP);
	assert_int_equal(p->egress[0].ports[0], 25);
	assert_string_equal(p->egress[1].domain.s, "api.example.com");
	assert_int_equal(p->egress[1].protocol, PROTO_TLS);
	assert_int_equal(p->egress[1].n_ports, 2);
	assert_int_equal(p->egress[2].kind, HOST_WILDCARD);
	assert_int_equal(p->egress[2].protocol, PROTO_UDP);
	/* a host with another port is another request */
	assert_int_equal(p->requested.n, 2);
	assert_string_equal(p->requested.v[0], "connect to api.example.com:443,8443/tls");
	assert_string_equal(p->requested.v[1], "connect to *.example.org:443/udp");
	ssb_plan_free(p);
	p = skill(NOTHING, NULL);
	assert_int_equal(p->n_egress, 0);
	ssb_plan_free(p);
}

/* If the protocol of a rule is not the usual one of its port, the text of the request names the
 * protocol. */
static void test_spoken(void **state)
{
	static const struct {
		const char *rule;
		const char *asked;
	} ROWS[] = {
		{ "{domain: a.example, ports: [9000]}", "connect to a.example:9000" },
		{ "{domain: a.example, ports: [9000], protocol: tls}",
		  "connect to a.example:9000/tls" },
		{ "{domain: a.example, ports: [9000], protocol: http}",
		  "connect to a.example:9000/http" },
		{ "{domain: a.example, protocol: tls}", "connect to a.example" },
		{ "{domain: a.example, protocol: http}", "connect to a.example:443/http" },
		{ "{domain: a.example, ports: [80], protocol: http}", "connect to a.example:80" },
	};

	policy(NULL);
	for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
		char yaml[256];
		snprintf(yaml, sizeof(yaml), EGRESS("%s"), ROWS[i].rule);
		struct ssb_plan *p = skill(yaml, NULL);
		assert_string_equal(p->requested.v[0], ROWS[i].asked);
		ssb_plan_free(p);
		p = skill(yaml, FLAGS({ SSB_OPT_WITHHOLD, ROWS[i].asked }));
		assert_int_equal(p->n_egress, 0);
		ssb_plan_free(p);
	}
	/* --withhold with HOST:PORT removes the request, whatever its protocol is. */
	struct ssb_plan *p = skill(EGRESS("{domain: a.example, ports: [9000], protocol: tls}"),
	                           FLAGS({ SSB_OPT_WITHHOLD, "connect to a.example:9000" }));
	assert_int_equal(p->n_egress, 0);
	assert_int_equal(p->n_withheld, 1);
	assert_string_equal(p->withheld[0].what, p->requested.v[0]);
	ssb_plan_free(p);
}

static void test_literals(void **state)
{
	static const char ASKS[] = EGRESS("{domain: api.example.com}, {domain: 192.0.2.1}");
	policy(NULL);
	struct ssb_plan *p = skill(ASKS, NULL);

	assert_int_equal(p->n_egress, 1);
	assert_non_null(refused(p, "connect to 192.0.2.1"));
	assert_non_null(strstr(refused(p, "connect to 192.0.2.1")->remedy, "--net 192.0.2.1:443,"));
	ssb_plan_free(p);
	p = skill(ASKS, FLAGS({ SSB_OPT_NET, "192.0.2.1:443" }));
	assert_int_equal(p->n_refusals, 0);
	ssb_plan_free(p);
	policy("network: {allow_literal_addresses: true}\n");
	p = skill(ASKS, NULL);
	assert_int_equal(p->n_refusals, 0);
	assert_int_equal(p->n_egress, 2);
	ssb_plan_free(p);
	policy(NULL);
}

/* If the owner gives --net for one port of an address, requests for its other ports, or for another
 * protocol, are still refused. */
static void test_literal_ports(void **state)
{
	const struct flag *ssh =
	        FLAGS({ SSB_OPT_NET, "[2001:db8::1]:443" }, { SSB_OPT_NET, "[2001:db8::1]:22" });

	policy(NULL);
	struct ssb_plan *p = skill(EGRESS("{domain: '2001:db8::1', ports: [22, 443]}"), ssh);
	assert_int_equal(p->n_refusals, 0);
	ssb_plan_free(p);
	p = skill(EGRESS("{domain: '2001:db8::1', ports: [22, 80]}"), ssh);
	const struct refusal *r = refused(p, "connect to [2001:db8::1]:22,80");
	assert_non_null(r);
	assert_non_null(strstr(r->remedy, "--net [2001:db8::1]:80,"));
	assert_int_equal(p->n_egress, 2); /* the two ports of --net */
	ssb_plan_free(p);
	p = skill(EGRESS("{domain: '2001:db8::1', ports: [22, 80]}"), NULL);
	/* one refusal for each port, each with its own remedy */
	assert_int_equal(p->n_refusals, 2);
	assert_string_equal(p->refusals[0].value, "[2001:db8::1]:22");
	assert_string_equal(p->refusals[1].value, "[2001:db8::1]:80");
	ssb_plan_free(p);
	p = skill(EGRESS("{domain: '2001:db8::1', ports: [443], protocol: udp}"), ssh);
	assert_non_null(refused(p, "connect to [2001:db8::1]:443/udp"));
	assert_null(strstr(refused(p, "connect to [2001:db8::1]:443/udp")->remedy, "--net"));
	ssb_plan_free(p);
}

/* A requested range of addresses needs the owner's permission, as a single address does. */
static void test_ranges(void **state)
{
	static const char ASKS[] =
	        EGRESS("{domain: 192.0.2.0/28, ports: [80]}, {domain: '2001:db8::/64'}, "
	               "{domain: 192.0.2.99/32, ports: [80]}");

	policy(NULL);
	struct ssb_plan *p = skill(ASKS, NULL);
	const struct refusal *r = refused(p, "connect to 192.0.2.0/28:80");
	assert_non_null(r);
	assert_non_null(strstr(r->remedy, "--net 192.0.2.0/28:80,"));
	assert_non_null(strstr(r->where, "skillsandbox.yaml:3:"));
	r = refused(p, "connect to 2001:db8::/64");
	assert_non_null(strstr(r->remedy, "--net [2001:db8::/64]:443,"));
	assert_int_equal(p->n_egress, 0);
	ssb_plan_free(p);
	policy("network: {allow_literal_addresses: true}\n");
	p = skill(ASKS, NULL);
	assert_int_equal(p->n_refusals, 0);
	assert_int_equal(p->n_egress, 3);
	assert_int_equal(p->egress[0].kind, HOST_CIDR);
	assert_string_equal(p->egress[1].domain.s, "2001:db8::/64");
	/* a range of one address becomes that address */
	assert_int_equal(p->egress[2].kind, HOST_ADDRESS);
	assert_string_equal(p->egress[2].domain.s, "192.0.2.99");
	ssb_plan_free(p);
	policy(NULL);
	/* A range in --net permits requests for addresses and ranges inside of it, but only on the
	 * port of --net. */
	p = skill(EGRESS("{domain: 192.0.2.16/28, ports: [80]}, {domain: 192.0.2.5, ports: [80]}"),
	          FLAGS({ SSB_OPT_NET, "192.0.2.0/24:80" }));
	assert_int_equal(p->n_refusals, 0);
	assert_int_equal(p->n_egress, 3);
	ssb_plan_free(p);
	p = skill(EGRESS("{domain: 192.0.0.0/22, ports: [80]}, {domain: 192.0.2.5, ports: [81]}"),
	          FLAGS({ SSB_OPT_NET, "192.0.2.0/24:80" }));
	assert_int_equal(p->n_refusals, 2);
	ssb_plan_free(p);
}

static void test_ranges_are_refused(void **state)
{
	static const struct {
		const char *rule, *part; /* expected text of the refusal; NULL: accepted */
	} CASES[] = {
		{ "{domain: 10.0.0.0/16}", NULL },
		{ "{domain: 10.0.0.0/15}", "too wide" },
		{ "{domain: '2001:db8::/48'}", NULL },
		{ "{domain: '2001:db8::/47'}", "too wide" },
		{ "{domain: 127.0.0.0/24}", "127.0.0.0/8" },
		{ "{domain: 198.18.7.0/24}", "198.18.0.0/15" },
		{ "{domain: 198.19.0.0/16}", "198.18.0.0/15" },
		{ "{domain: 198.17.0.0/16}", NULL },
		{ "{domain: 198.20.0.0/16}", NULL },
		{ "{domain: '::/96'}", "::/96" },
		{ "{domain: '::/64'}", "::/96" },
		{ "{domain: 'fd53:7373:6273::/64'}", "fd53:7373:6273::/48" },
		{ "{domain: 'fd53:7373:6274::/64'}", NULL },
		{ "{domain: 0.0.0.0/16}", "0.0.0.0/8" },
		{ "{domain: 224.0.0.0/16}", "224.0.0.0/3" },
		{ "{domain: 255.255.255.0/24}", "224.0.0.0/3" },
		{ "{domain: 'fe80::/64'}", "fe80::/10" },
		{ "{domain: 'ff02::/64'}", "ff00::/8" },
		{ "{domain: 10.0.0.0/25, protocol: udp}", NULL },
		{ "{domain: 10.0.0.0/24, protocol: udp}", "128 pairs" },
		{ "{domain: 10.0.0.0/26, ports: [1, 2], protocol: udp}", NULL },
		{ "{domain: 10.0.0.0/25, ports: [1, 2], protocol: udp}", "128 pairs" },
		{ "{domain: 10.0.0.0/25, ports: [53]}", NULL },
		{ "{domain: 10.0.0.0/24, ports: [53, 80]}", "resolver" },
	};

	policy("network: {allow_literal_addresses: true}\n");
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		char text[256];
		snprintf(text, sizeof(text), EGRESS("%s"), CASES[i].rule);
		struct ssb_plan *p = skill(text, NULL);
		if (p->n_refusals != (CASES[i].part != NULL) ||
		    (CASES[i].part != NULL && strstr(p->refusals[0].why, CASES[i].part) == NULL)) {
			fail_msg("%s: %s", CASES[i].rule,
			         p->n_refusals > 0 ? p->refusals[0].why : "taken");
		}
		ssb_plan_free(p);
	}
	struct ssb_plan *p = command(
	        FLAGS({ SSB_OPT_NET, "10.0.0.0/8:80" }, { SSB_OPT_NET, "10.0.0.1:80" }), "true");
	assert_string_equal(refused(p, "connect to 10.0.0.0/8")->where, "--net");
	assert_int_equal(p->n_egress, 1);
	ssb_plan_free(p);
	policy(NULL);
}

static void test_allow_private(void **state)
{
	policy("network: {allow_private: [192.168.1.0/24, 'FD00::/8', 10.0.0.0/8]}\n");
	struct ssb_plan *p = skill(ONE_HOST, FLAGS({ SSB_OPT_ALLOW_PRIVATE, "10.0.0.0/8" },
	                                           { SSB_OPT_ALLOW_PRIVATE, "::ffff:127.0.0.1" }));
	static const char *const WANT[] = { "10.0.0.0/8", "127.0.0.1/32", "192.168.1.0/24",
		                            "fd00::/8" };

	assert_int_equal(p->allow_private.n, ARRAY_LEN(WANT)); /* equal ranges are listed once */
	for (size_t i = 0; i < ARRAY_LEN(WANT); i++) {
		assert_string_equal(p->allow_private.v[i], WANT[i]);
	}
	assert_int_equal(p->warnings.n, 0);
	ssb_plan_free(p);

	policy(NULL);
	p = skill(ONE_HOST, NULL);
	assert_int_equal(p->allow_private.n, 0);
	ssb_plan_free(p);
	p = skill(ONE_HOST, FLAGS({ SSB_OPT_ALLOW_PRIVATE, "0.0.0.0/0" }));
	assert_true(warned(p, "0.0.0.0/0 lets granted host names lead"));
	ssb_plan_free(p);
	p = command(FLAGS({ SSB_OPT_ALLOW_PRIVATE, "10.0.0.0/8" }), "true");
	assert_true(warned(p, "no host is granted"));
	ssb_plan_free(p);
}

static void test_policy_values(void **state)
{
	static const struct {
		const char *text;
		const char *where;
	} BAD[] = {
		{ "network: {allow_private: 10.0.0.0/8}\n", "policy.yaml:1:26" },
		{ "network: {allow_private: [10.0.0.1/8]}\n", "policy.yaml:1:27" },
		{ "network: {allow_private: [10.1]}\n", "policy.yaml:1:27" },
		{ "network: {allow_private: [localhost]}\n", "policy.yaml:1:27" },
		{ "network: {allow_private: [[10.0.0.0/8]]}\n", "policy.yaml:1:27" },
		{ "network: {allow_privates: []}\n", "policy.yaml:1:11" },
		{ "network: {allow_literal_addresses: [10.0.0.0/8]}\n", "policy.yaml:1:36" },
		{ "limits: {max_connections: 0}\n", "policy.yaml:1:27" },
		{ "limits: {max_connections: 4097}\n", "policy.yaml:1:27" },
		{ "limits: {max_connections_per_second: 100001}\n", "policy.yaml:1:38" },
		{ "limits: {max_bytes_out: 1125899906842625}\n", "policy.yaml:1:25" },
	};
	char *argv[] = { (char[]){ "true" }, NULL };

	for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
		struct ssb_error err = { 0 };
		struct ssb_plan *p = NULL;
		policy(BAD[i].text);
		if (plan_decide(&(struct plan_request){ .owner = &owner, .args = argv }, &p, NULL,
		                &err) == 0) {
			fail_msg("taken: %s", BAD[i].text);
		}
		if (strstr(err.where, BAD[i].where) == NULL) {
			fail_msg("%s: at %s, not %s", BAD[i].text, err.where, BAD[i].where);
		}
	}
	policy("network: {allow_private: []}\n");
	ssb_plan_free(command(NULL, "true"));
	policy(NULL);
}

/* Returns the plan with `n` ranges in the policy file, or NULL if the policy is refused. */
static struct ssb_plan *with_ranges(unsigned n)
{
	char *argv[] = { (char[]){ "true" }, NULL };
	struct ssb_error err = { 0 };
	struct ssb_plan *p = NULL;
	auto_buf text;

	buf_init(&text, 1UL << 16);
	buf_adds(&text, "network: {allow_private: [");
	for (unsigned i = 0; i < n; i++) {
		buf_addf(&text, "10.0.%u.%u, ", i / 256, i % 256);
	}
	buf_adds(&text, "]}\n");
	policy(text.data);
	(void)plan_decide(&(struct plan_request){ .owner = &owner, .args = argv }, &p, NULL, &err);
	policy(NULL);
	return p;
}

static void test_number_of_ranges(void **state)
{
	struct ssb_plan *p = with_ranges(MAX_LIST_ITEMS);

	assert_non_null(p);
	assert_int_equal(p->allow_private.n, MAX_LIST_ITEMS);
	ssb_plan_free(p);
	assert_null(with_ranges(MAX_LIST_ITEMS + 1));
}

static void test_limits(void **state)
{
	static const char ASKS[] =
	        NETWORK("egress: [{domain: a.example}], max_connections: 200, max_bytes_out: 5");

	policy(NULL);
	struct ssb_plan *p = skill(ASKS, NULL);
	assert_int_equal(p->net.max_connections, 200);
	assert_int_equal(p->net.max_connections_per_second, 100);
	assert_int_equal(p->net.max_bytes_out, 5);
	assert_int_equal(p->net.max_bytes_in, 1073741824);
	ssb_plan_free(p);
	p = command(FLAGS({ SSB_OPT_NET, "a.example" }), "true");
	assert_memory_equal(&p->net, &NET_DEFAULTS, sizeof(p->net));
	ssb_plan_free(p);

	policy("limits: {max_connections: 100, max_connections_per_second: 9, max_bytes_out: 100, "
	       "max_bytes_in: 1000}\n");
	p = skill(ASKS, NULL);
	assert_int_equal(p->net.max_connections, 100);
	assert_true(warned(
	        p, "max_connections: 200 is requested, but the policy file allows at most 100"));
	assert_int_equal(p->net.max_connections_per_second, 9);
	assert_int_equal(p->net.max_bytes_out, 5);
	assert_int_equal(p->net.max_bytes_in, 1000);
	ssb_plan_free(p);
	p = skill(NOTHING, NULL); /* the skill requests no network */
	assert_int_equal(p->warnings.n, 0);
	ssb_plan_free(p);
	policy(NULL);
}

static void test_explained(void **state)
{
	static const char *const IN_JSON[] = {
		"\"protocol\": \"tls\"",         "\"network_limits\": {",
		"\"max_connections\": 7",        "\"max_bytes_in\": 9",
		"\"allow_private\": [",          "\"10.0.0.0/8\"",
		"\"max_bytes_out\": 1073741824", "\"max_connections_per_second\": 100",
	};

	policy(NULL);
	struct ssb_plan *p =
	        skill(NETWORK("egress: [{domain: a.example, protocol: tls}], max_connections: 7, "
	                      "max_bytes_in: 9"),
	              FLAGS({ SSB_OPT_ALLOW_PRIVATE, "10.0.0.0/8" }));
	auto_free char *json = ssb_plan_json(p);
	auto_free char *text = ssb_plan_text(p);
	for (size_t i = 0; i < ARRAY_LEN(IN_JSON); i++) {
		if (strstr(json, IN_JSON[i]) == NULL) {
			fail_msg("no %s in %s", IN_JSON[i], json);
		}
	}
	assert_non_null(strstr(text, "network   tls a.example:443  (skillsandbox.yaml:3:"));
	assert_non_null(strstr(text, "at most 7 connections, 100 new connections a second, "
	                             "1 GiB out, 9 bytes in\n"));
	assert_non_null(strstr(text, "may have addresses in 10.0.0.0/8"));
	ssb_plan_free(p);

	p = skill(NOTHING, FLAGS({ SSB_OPT_ALLOW_PRIVATE, "10.0.0.0/8" }));
	auto_free char *none = ssb_plan_text(p);
	assert_non_null(strstr(none, "network   none\n"));
	assert_null(strstr(none, "at most 64 connections"));
	ssb_plan_free(p);
}

/* ---- certificate bundles ------------------------------------------------------ */

static char ssl_cert_file[512];
static char node_certs[512];
static char *with_bundles[] = { (char[]){ "PATH=/usr/bin:/bin" }, ssl_cert_file, node_certs, NULL };

static void bundles(const char *ssl, const char *node)
{
	snprintf(ssl_cert_file, sizeof(ssl_cert_file), "SSL_CERT_FILE=%s", ssl);
	snprintf(node_certs, sizeof(node_certs), "NODE_EXTRA_CA_CERTS=%s", node);
	owner.environ = with_bundles;
}

static int bundle_teardown(void **state)
{
	owner.environ = environment;
	policy(NULL);
	return 0;
}

static void test_bundles(void **state)
{
	policy(NULL);
	write_file(at("other/ca.pem"), "ca", 0644);
	write_file(at("u/notes/node.pem"), "ca", 0644);
	assert_int_equal(symlink(at("u/notes/node.pem"), at("u/node.pem")), 0);
	bundles(at("other/ca.pem"), at("u/node.pem"));

	struct ssb_plan *p = skill(ONE_HOST, NULL);
	const struct grant *g = granted(p, at("other/ca.pem"));
	assert_non_null(g);
	assert_int_equal(g->access, ACCESS_READ);
	assert_int_equal(g->origin, ORIGIN_POLICY);
	assert_string_equal(g->where, "SSL_CERT_FILE");
	assert_true(!g->is_dir && g->fd >= 0);
	assert_string_equal(env(p, "SSL_CERT_FILE"), at("other/ca.pem"));
	/* A symlink is resolved: the variable contains the real path, at which the file is
	 * granted. */
	assert_non_null(granted(p, at("u/notes/node.pem")));
	assert_string_equal(env(p, "NODE_EXTRA_CA_CERTS"), at("u/notes/node.pem"));
	assert_int_equal(p->n_refusals + p->warnings.n, 0);
	ssb_plan_free(p);

	p = command(FLAGS({ SSB_OPT_NET, "a.example" }), "true");
	assert_non_null(env(p, "SSL_CERT_FILE"));
	ssb_plan_free(p);
	p = skill(NOTHING, NULL); /* a skill without egress gets no certificate bundle */
	assert_null(env(p, "SSL_CERT_FILE"));
	assert_null(env(p, "NODE_EXTRA_CA_CERTS"));
	assert_null(granted(p, at("other/ca.pem")));
	ssb_plan_free(p);
}

static void test_system_bundle(void **state)
{
	policy(NULL);
	bundles("/usr/bin/env", ""); /* every sandbox shows this file, so it needs no grant */
	struct ssb_plan *p = skill(ONE_HOST, NULL);
	assert_non_null(env(p, "SSL_CERT_FILE"));
	assert_null(env(p, "NODE_EXTRA_CA_CERTS"));
	assert_int_equal(p->n_grants, 1); /* only the grant of the skill's own files */
	assert_int_equal(p->warnings.n, 0);
	ssb_plan_free(p);
}

static void test_bundles_that_are_none(void **state)
{
	static const char *const BAD[] = { "other/none.pem", "other", "u/.ssh/id",
		                           "cfg/policy.yaml" };

	policy("deny: {read: [~/proj]}\n");
	write_file(at("u/.ssh/id"), "key", 0600);
	write_file(at("other/good.pem"), "ca", 0644);
	write_file(at("u/proj/ca.pem"), "ca", 0644);
	for (size_t i = 0; i <= ARRAY_LEN(BAD); i++) {
		bundles(at(i < ARRAY_LEN(BAD) ? BAD[i] : "u/proj/ca.pem"), at("other/good.pem"));
		struct ssb_plan *p = skill(ONE_HOST, NULL);
		if (env(p, "SSL_CERT_FILE") != NULL || p->n_grants != 2) {
			fail_msg("%s was passed", ssl_cert_file);
		}
		assert_true(warned(p, "SSL_CERT_FILE is not passed"));
		assert_int_equal(p->n_refusals, 0);
		/* the control: the good bundle is passed */
		assert_non_null(env(p, "NODE_EXTRA_CA_CERTS"));
		ssb_plan_free(p);
	}
}

static void test_bundles_and_the_owner(void **state)
{
	write_file(at("other/ca.pem"), "ca", 0644);
	bundles(at("other/ca.pem"), "");
	/* A value from --env is kept unchanged, and its path is not granted. */
	policy(NULL);
	struct ssb_plan *p = skill(ONE_HOST, FLAGS({ SSB_OPT_ENV, "SSL_CERT_FILE=/x" }));
	assert_string_equal(env(p, "SSL_CERT_FILE"), "/x");
	assert_null(granted(p, at("other/ca.pem")));
	ssb_plan_free(p);
	p = skill(ONE_HOST, FLAGS({ SSB_OPT_ENV, "SSL_CERT_FILE" }));
	assert_string_equal(env(p, "SSL_CERT_FILE"), at("other/ca.pem"));
	assert_non_null(granted(p, at("other/ca.pem")));
	ssb_plan_free(p);
	policy("deny: {env: [SSL_CERT_FILE]}\n");
	p = skill(ONE_HOST, NULL);
	assert_null(env(p, "SSL_CERT_FILE"));
	assert_null(granted(p, at("other/ca.pem")));
	ssb_plan_free(p);
	/* If the file is in a directory that is granted anyway, it gets no separate grant. */
	policy(NULL);
	p = skill(ONE_HOST, FLAGS({ SSB_OPT_READ, at("other") }));
	assert_int_equal(p->n_grants, 2);
	assert_non_null(env(p, "SSL_CERT_FILE"));
	ssb_plan_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_spoken),
		cmocka_unit_test(test_literals),
		cmocka_unit_test(test_literal_ports),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_ranges_are_refused),
		cmocka_unit_test(test_allow_private),
		cmocka_unit_test(test_policy_values),
		cmocka_unit_test(test_number_of_ranges),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_explained),
		cmocka_unit_test_teardown(test_bundles, bundle_teardown),
		cmocka_unit_test_teardown(test_system_bundle, bundle_teardown),
		cmocka_unit_test_teardown(test_bundles_that_are_none, bundle_teardown),
		cmocka_unit_test_teardown(test_bundles_and_the_owner, bundle_teardown),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
