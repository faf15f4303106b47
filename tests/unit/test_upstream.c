/* test_upstream.c - the owner's proxy: valid forms, the setting that decides, and the parts that
 * are never shown. */
#include "plan_world.h"

#include "policy/upstream.h"

#define ONE_HOST "permissions: {network: {egress: [{domain: api.example.com}]}}\n"
#define WITH_UDP                                                                                   \
	"permissions: {network: {egress: [{domain: a.example.com}, "                               \
	"{domain: b.example.com, protocol: udp}]}}\n"
#define LONG10  "aaaaaaaaaa"
#define LONG100 LONG10 LONG10 LONG10 LONG10 LONG10 LONG10 LONG10 LONG10 LONG10 LONG10
#define LONG512 LONG100 LONG100 LONG100 LONG100 LONG100 LONG10 "aa"

static const struct {
	const char *url;
	const char *host; /* NULL: refused */
	unsigned port;
	const char *rest; /* the credentials; if it is invalid, a part of the reason */
} FORMS[] = {
	{ "http://proxy.example.com:3128", "proxy.example.com", 3128, NULL },
	{ "http://proxy.example.com:3128/", "proxy.example.com", 3128, NULL },
	{ "proxy:8080", "proxy", 8080, NULL },
	{ "HTTP://Proxy.Example.COM.:1", "proxy.example.com", 1, NULL },
	{ "http://127.0.0.1:65535", "127.0.0.1", 65535, NULL },
	{ "http://[::1]:3128", "::1", 3128, NULL },
	{ "http://user:pass@proxy:3128", "proxy", 3128, "dXNlcjpwYXNz" },
	{ "http://user@proxy:3128", "proxy", 3128, "dXNlcjo=" },
	{ "http://user:@proxy:3128", "proxy", 3128, "dXNlcjo=" },
	{ "http://u:p%40ss%3aw@proxy:3128", "proxy", 3128, "dTpwQHNzOnc=" },
	{ "http://u:a@b@proxy:3128", "proxy", 3128, "dTphQGI=" },
	{ "u:pp@[fd00::1]:3128", "fd00::1", 3128, "dTpwcA==" },
	{ "http://u:%c3%A4@proxy:3128", "proxy", 3128, "dTrDpA==" },
	{ "http://:p@proxy:3128", NULL, 0, "user name" },
	{ "http://@proxy:3128", NULL, 0, "user name" },
	{ "http://a%3ab:p@proxy:3128", NULL, 0, "user name" },
	{ "http://a%0d%0aX:p@proxy:3128", NULL, 0, "user name" },
	{ "http://u:%0a@proxy:3128", NULL, 0, "password" },
	{ "http://u:%00@proxy:3128", NULL, 0, "password" },
	{ "http://u:%7f@proxy:3128", NULL, 0, "password" },
	{ "http://u:%4@proxy:3128", NULL, 0, "password" },
	{ "http://u:%@proxy:3128", NULL, 0, "password" },
	{ "http://u:%g1@proxy:3128", NULL, 0, "password" },
	{ "http://u:" LONG512 "@proxy:3128", NULL, 0, "password" },
	{ "http://" LONG512 ":x@proxy:3128", NULL, 0, "user name" },
	{ "https://proxy:3128", NULL, 0, "behind TLS" },
	{ "socks5://proxy:1080", NULL, 0, "SOCKS" },
	{ "socks5h://u:p@proxy:1080", NULL, 0, "SOCKS" },
	{ "SOCKS4a://proxy:1080", NULL, 0, "SOCKS" },
	{ "ftp://proxy:21", NULL, 0, "not an http://" },
	{ "://proxy:21", NULL, 0, "not an http://" },
	{ "http://proxy", NULL, 0, "no port" },
	{ "http://proxy:", NULL, 0, "no port" },
	{ "http://proxy:0", NULL, 0, "port" },
	{ "http://proxy:65536", NULL, 0, "port" },
	{ "http://proxy:80x", NULL, 0, "port" },
	{ "http://proxy:000080", NULL, 0, "port" },
	{ "http://:80", NULL, 0, "empty" },
	{ "http://", NULL, 0, "no port" },
	{ "http://[::1:80", NULL, 0, "cannot be separated" },
	{ "http://[::1]80", NULL, 0, "cannot be separated" },
	{ "http://::1:80", NULL, 0, "cannot be separated" },
	{ "http://127.1:80", NULL, 0, "number" },
	{ "http://*.example.com:80", NULL, 0, "more than one" },
	{ "http://a b:80", NULL, 0, "space" },
	{ "http://proxy:80/path", NULL, 0, "path" },
	{ "http://proxy:80?x", NULL, 0, "path" },
	{ "http://proxy:80#x", NULL, 0, "path" },
	{ "http://10.0.0.0/8:80", NULL, 0, "path" },
};

static void test_forms(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(FORMS); i++) {
		struct upstream u = { .port = 7 };
		const char *wrong = upstream_parse(FORMS[i].url, &u);
		if (FORMS[i].host == NULL) {
			assert_int_equal(u.port, 7); /* a failure must not change it */
			if (wrong == NULL || strstr(wrong, FORMS[i].rest) == NULL) {
				fail_msg("%s: %s", FORMS[i].url, wrong != NULL ? wrong : "taken");
			}
			continue;
		}
		if (wrong != NULL || strcmp(u.host, FORMS[i].host) != 0 ||
		    u.port != FORMS[i].port || (u.credentials == NULL) != (FORMS[i].rest == NULL) ||
		    (u.credentials != NULL && strcmp(u.credentials, FORMS[i].rest) != 0)) {
			fail_msg("%s: %s, %s, %u, %s", FORMS[i].url, wrong, u.host, u.port,
			         u.credentials);
		}
		upstream_done(&u);
	}
}

static void test_bounds(void **state)
{
	static char url[MAX_PROXY_URL + 64];
	struct upstream u;

	/* user, ":" and password at the limit, and one byte longer */
	snprintf(url, sizeof(url), "http://u:%.510s@proxy:1", LONG512);
	assert_null(upstream_parse(url, &u));
	assert_int_equal(strlen(u.credentials), 684);
	upstream_done(&u);
	snprintf(url, sizeof(url), "http://u:%.511s@proxy:1", LONG512);
	assert_non_null(upstream_parse(url, &u));
	memset(url, '0', sizeof(url));
	memcpy(url, "http://u@proxy:1/", 17);
	url[MAX_PROXY_URL + 1] = '\0';
	assert_string_equal(upstream_parse(url, &u), "is too long");
	url[MAX_PROXY_URL] = '\0';
	assert_string_equal(upstream_parse(url, &u), "has a path in it");
}

static const struct {
	const char *text, *form, *wrong;
} ITEMS[] = {
	{ "*", "*", NULL },
	{ "example.com", "example.com", NULL },
	{ ".Example.com", "example.com", NULL },
	{ "*.example.com", "example.com", NULL },
	{ "co.uk", "co.uk", NULL },
	{ "10.0.0.1", "10.0.0.1", NULL },
	{ "10.0.0.0/8", "10.0.0.0/8", NULL },
	{ "[fd00::1]", "fd00::1", NULL },
	{ "fd00::/8", "fd00::/8", NULL },
	{ "localhost", "localhost", NULL },
	{ "", NULL, "empty" },
	{ ".", NULL, "empty" },
	{ "*.*.example.com", NULL, "" },
	{ ".10.0.0.1", NULL, "dot before" },
	{ "10.0.0.1/8", NULL, "bits" },
	{ "host:80", NULL, "port" },
	{ "http://host", NULL, "scheme" },
	{ "127.1", NULL, "number" },
};

static void test_items(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(ITEMS); i++) {
		auto_free char *form = NULL;
		const char *wrong = upstream_no_proxy_item(ITEMS[i].text, &form);
		if (ITEMS[i].wrong != NULL
		            ? wrong == NULL || strstr(wrong, ITEMS[i].wrong) == NULL || form != NULL
		            : wrong != NULL || strcmp(form, ITEMS[i].form) != 0) {
			fail_msg("'%s': %s, %s", ITEMS[i].text, form, wrong);
		}
	}
}

/* ---- plans ------------------------------------------------------------------- */

static struct ssb_plan *plan_with(const char *text, char *const *variables)
{
	owner.environ = variables;
	struct ssb_plan *p = skill(text, NULL);
	owner.environ = environment;
	return p;
}

#define ENV(...) ((char *const[]){ __VA_ARGS__, NULL })
#define V(text)  ((char[]){ text })

static void expect(const struct ssb_plan *p, enum upstream_use use, const char *host,
                   const char *where)
{
	const struct upstream *u = &p->upstream[use];

	if (host == NULL) {
		assert_null(u->host);
		return;
	}
	assert_non_null(u->host);
	assert_string_equal(u->host, host);
	if (strstr(u->where, where) == NULL) {
		fail_msg("%s, not %s", u->where, where);
	}
}

static void test_environment(void **state)
{
	static const struct {
		const char *set[4];
		const char *http, *http_where, *other, *other_where;
	} CASES[] = {
		{ { "X=1" }, NULL, NULL, NULL, NULL },
		{ { "https_proxy=a:1" }, NULL, NULL, "a", "https_proxy" },
		{ { "HTTPS_PROXY=b:1" }, NULL, NULL, "b", "HTTPS_PROXY" },
		{ { "https_proxy=a:1", "HTTPS_PROXY=b:1" }, NULL, NULL, "a", "https_proxy" },
		{ { "https_proxy=", "HTTPS_PROXY=b:1" }, NULL, NULL, "b", "HTTPS_PROXY" },
		{ { "http_proxy=a:1" }, "a", "http_proxy", NULL, NULL },
		{ { "HTTP_PROXY=a:1" }, NULL, NULL, NULL, NULL },
		{ { "all_proxy=c:1" }, "c", "all_proxy", "c", "all_proxy" },
		{ { "ALL_PROXY=c:1", "http_proxy=a:1" }, "a", "http_proxy", "c", "ALL_PROXY" },
		{ { "all_proxy=c:1", "https_proxy=a:1" }, "c", "all_proxy", "a", "https_proxy" },
	};

	policy(NULL);
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		char *set[5] = { NULL };
		for (size_t k = 0; k < 4 && CASES[i].set[k] != NULL; k++) {
			set[k] = strdup(CASES[i].set[k]);
		}
		struct ssb_plan *p = plan_with(ONE_HOST, set);
		assert_int_equal(p->n_refusals, 0);
		expect(p, UPSTREAM_HTTP, CASES[i].http, CASES[i].http_where);
		expect(p, UPSTREAM_OTHER, CASES[i].other, CASES[i].other_where);
		assert_int_equal(plan_proxied(p), CASES[i].http || CASES[i].other);
		ssb_plan_free(p);
		p = plan_with(NOTHING, set); /* without network access, no proxy is used */
		assert_false(plan_proxied(p));
		ssb_plan_free(p);
		for (size_t k = 0; k < 4; k++) {
			free(set[k]);
		}
	}
}

/* If the owner's proxy is of a kind that is not supported, the plan is refused, so that no
 * connection bypasses the proxy. The proxy's URL is never shown. */
static void test_refused(void **state)
{
	char *const *set = ENV(V("ALL_PROXY=socks5://me:hush-hush@proxy:1080"));

	policy(NULL);
	struct ssb_plan *p = plan_with(ONE_HOST, set);
	assert_int_equal(p->n_refusals, 1);
	const struct refusal *r = refused(p, "the proxy in ALL_PROXY");
	assert_non_null(r);
	assert_string_equal(r->where, "ALL_PROXY");
	assert_non_null(strstr(r->why, "SOCKS"));
	assert_non_null(strstr(r->remedy, "upstream_proxy: none"));
	auto_free char *json = ssb_plan_json(p);
	assert_null(strstr(json, "hush"));
	ssb_plan_free(p);
	p = plan_with(NOTHING, set);
	assert_int_equal(p->n_refusals, 0);
	ssb_plan_free(p);
	p = plan_with(ONE_HOST, ENV(V("all_proxy=socks5://x:1"), V("http_proxy=a:1"),
	                            V("https_proxy=https://a:1")));
	/* only one refusal: http_proxy and https_proxy are set, so all_proxy is not used */
	assert_int_equal(p->n_refusals, 1);
	assert_non_null(refused(p, "the proxy in https_proxy"));
	ssb_plan_free(p);
	policy("network: {upstream_proxy: none}\n");
	p = plan_with(ONE_HOST, set);
	assert_int_equal(p->n_refusals, 0);
	assert_false(plan_proxied(p));
	ssb_plan_free(p);
	policy(NULL);
}

static void test_policy_wins(void **state)
{
	char *const *set = ENV(V("https_proxy=env:1"), V("no_proxy=env.example.com, .b.example"));

	policy(NULL);
	struct ssb_plan *p = plan_with(ONE_HOST, set);
	assert_int_equal(p->no_proxy.n, 2);
	assert_string_equal(p->no_proxy.v[0], "env.example.com");
	assert_string_equal(p->no_proxy.v[1], "b.example");
	assert_int_equal(p->warnings.n, 0);
	ssb_plan_free(p);

	policy("network:\n  upstream_proxy: http://me:hush@mine:3128\n");
	p = plan_with(ONE_HOST, set);
	expect(p, UPSTREAM_HTTP, "mine", "policy.yaml:2:19");
	expect(p, UPSTREAM_OTHER, "mine", "policy.yaml:2:19");
	assert_string_equal(p->upstream[0].credentials, "bWU6aHVzaA==");
	/* no_proxy of the environment is used only together with a proxy of the environment */
	assert_int_equal(p->no_proxy.n, 0);
	plan_wipe_credentials(p);
	assert_string_equal(p->upstream[0].credentials, "");
	assert_string_equal(p->upstream[1].credentials, "");
	ssb_plan_free(p);

	policy("network: {no_proxy: [10.0.0.0/8, '*.corp.example']}\n");
	p = plan_with(ONE_HOST, set);
	expect(p, UPSTREAM_OTHER, "env", "https_proxy");
	assert_int_equal(p->no_proxy.n, 2);
	assert_string_equal(p->no_proxy.v[1], "corp.example");
	ssb_plan_free(p);
	policy("network: {no_proxy: []}\n");
	p = plan_with(ONE_HOST, set);
	assert_int_equal(p->no_proxy.n, 0);
	ssb_plan_free(p);
	policy(NULL);
	p = plan_with(ONE_HOST, ENV(V("https_proxy=a:1"), V("NO_PROXY=,,*, host:80 10.0.0.1,")));
	assert_int_equal(p->no_proxy.n, 2);
	assert_true(warned(p, "an item of NO_PROXY is not used"));
	ssb_plan_free(p);
}

static void test_policy_errors(void **state)
{
	static const struct {
		const char *text, *where, *part;
	} BAD[] = {
		{ "network: {upstream_proxy: 'socks5://me:hush@p:1'}\n", ":1:27", "SOCKS" },
		{ "network: {upstream_proxy: 'https://me:hush@p:1'}\n", ":1:27", "TLS" },
		{ "network: {upstream_proxy: 'http://me:hush@p'}\n", ":1:27", "no port" },
		{ "network: {upstream_proxy: ['http://me:hush@p:1']}\n", ":1:27", "text" },
		{ "network: {upstream_proxy: off}\n", ":1:27", "no port" },
		{ "network: {no_proxy: a.example}\n", ":1:21", "list" },
		{ "network: {no_proxy: ['a b']}\n", ":1:22", "space" },
		{ "network: {udp_direct: maybe}\n", ":1:23", "true or false" },
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
		if (strstr(err.where, BAD[i].where) == NULL ||
		    strstr(err.text, BAD[i].part) == NULL || strstr(err.text, "hush") != NULL) {
			fail_msg("%s: %s: %s", BAD[i].text, err.where, err.text);
		}
	}
	policy(NULL);
}

static void test_shown_without_credentials(void **state)
{
	policy("network: {upstream_proxy: 'http://me:hush@[fd00::1]:3128', no_proxy: "
	       "[a.example]}\n");
	struct ssb_plan *p = skill(ONE_HOST, NULL);
	auto_free char *json = ssb_plan_json(p);
	auto_free char *text = ssb_plan_text(p);
	ssb_plan_free(p);
	assert_non_null(strstr(json, "\"http://[fd00::1]:3128\""));
	assert_non_null(strstr(json, "\"for\": \"all\""));
	assert_non_null(strstr(json, "\"credentials\": true"));
	assert_non_null(strstr(json, "\"a.example\""));
	assert_non_null(strstr(
	        text,
	        "everything goes through the proxy http://[fd00::1]:3128, with credentials  ("));
	assert_non_null(strstr(text, "past the proxy: a.example\n"));
	for (size_t i = 0; i < 2; i++) {
		const char *shown = i == 0 ? json : text;
		assert_null(strstr(shown, "hush"));
		assert_null(strstr(shown, "bWU6aHVzaA")); /* "me:hush" in base64 */
		assert_null(strstr(shown, "me:"));
	}
	policy(NULL);
	p = plan_with(ONE_HOST, ENV(V("http_proxy=a:1"), V("https_proxy=b:2")));
	auto_free char *two = ssb_plan_text(p);
	ssb_plan_free(p);
	assert_non_null(
	        strstr(two, "plain http goes through the proxy http://a:1  (http_proxy)\n"));
	assert_non_null(strstr(
	        two,
	        "everything except plain http goes through the proxy http://b:2  (https_proxy)\n"));
	p = skill(ONE_HOST, NULL);
	auto_free char *none = ssb_plan_json(p);
	ssb_plan_free(p);
	assert_null(strstr(none, "proxy"));
}

static void test_udp(void **state)
{
	policy("network: {upstream_proxy: 'http://p:1'}\n");
	struct ssb_plan *p = skill(WITH_UDP, NULL);
	assert_true(warned(p, "udp cannot pass the proxy"));
	assert_false(p->udp_direct);
	ssb_plan_free(p);
	p = skill(ONE_HOST, NULL);
	assert_int_equal(p->warnings.n, 0);
	ssb_plan_free(p);
	policy("network: {upstream_proxy: 'http://p:1', udp_direct: true}\n");
	p = skill(WITH_UDP, NULL);
	assert_int_equal(p->warnings.n, 0);
	assert_true(p->udp_direct);
	ssb_plan_free(p);
	policy(NULL);
}

/* If a manifest requests a proxy variable, the skill does not get it. */
static void test_variable_is_not_passed(void **state)
{
	static const char ASKS[] = "permissions: {env_vars: {allow: [https_proxy, HTTPS_PROXY, "
	                           "NO_PROXY, API_KEY]}}\n";

	policy(NULL);
	struct ssb_plan *p = plan_with(
	        ASKS, ENV(V("https_proxy=http://me:hush@p:1"), V("HTTPS_PROXY=x"), V("API_KEY=k")));
	assert_null(env(p, "https_proxy"));
	assert_null(env(p, "HTTPS_PROXY"));
	assert_non_null(env(p, "API_KEY"));
	assert_true(warned(p, "environment https_proxy is not passed"));
	ssb_plan_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_items),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_policy_wins),
		cmocka_unit_test(test_policy_errors),
		cmocka_unit_test(test_shown_without_credentials),
		cmocka_unit_test(test_udp),
		cmocka_unit_test(test_variable_is_not_passed),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
