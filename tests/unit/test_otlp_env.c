/* test_otlp_env.c - the owner's OTEL variables: which are used, which are refused, and that
 * messages contain no secret. */
#include <stdio.h>
#include <string.h>

#include "unit.h"
#include "otel/otel_config.h"
#include "base/limits.h"
#include "base/own.h"

#define BASE "OTEL_EXPORTER_OTLP_"

static int load(struct otel_config *ret, struct ssb_error *err, char *const environ[])
{
	struct owner owner = { .environ = environ };

	*err = (struct ssb_error){ 0 };
	return otel_config_load(ret, &owner, err);
}

#define LOAD(c, err, ...) load(c, err, (char *[]){ __VA_ARGS__, NULL })

static void test_defaults(void **state)
{
	struct otel_config c;
	struct ssb_error err;

	assert_int_equal(LOAD(&c, &err, BASE "ENDPOINT=", "HOME=/x"), 0);
	assert_true(c.traces.on && c.logs.on && !c.traces.tls);
	assert_string_equal(c.traces.host, "localhost");
	assert_string_equal(c.traces.port, "4318");
	assert_string_equal(c.traces.path, "/v1/traces");
	assert_string_equal(c.logs.path, "/v1/logs");
	assert_ptr_equal(c.logs.format, &OTLP_PROTO);
	assert_int_equal(c.logs.timeout_ms, 10000);
	assert_string_equal(c.service, "skillsandbox");
	assert_int_equal(c.flags, 1);
	assert_false(c.has_parent);
	assert_string_equal(c.note, "");
	otel_config_done(&c);
}

static void test_endpoints(void **state)
{
	static const struct {
		const char *url;
		const char *where; /* NULL: the URL is refused */
		const char *path;  /* path if OTEL_..._ENDPOINT has the URL */
		const char *own;   /* path if the variable of the signal has it */
	} CASES[] = {
		{ "http://h", "http://h:80", "/v1/logs", "/" },
		{ "HTTPS://h", "https://h:443", "/v1/logs", "/" },
		{ "http://h:4318/", "http://h:4318", "/v1/logs", "/" },
		{ "http://h/a/b//", "http://h:80", "/a/b/v1/logs", "/a/b//" },
		{ "http://h/a?k=v", "http://h:80", "/a/v1/logs?k=v", "/a?k=v" },
		{ "http://[2001:db8::1]:1/x", "http://[2001:db8::1]:1", "/x/v1/logs", "/x" },
		{ "http://10.0.0.1", "http://10.0.0.1:80", "/v1/logs", "/" },
		{ "", NULL, NULL, NULL },
		{ "h:4318", NULL, NULL, NULL },
		{ "ftp://h", NULL, NULL, NULL },
		{ "http://", NULL, NULL, NULL },
		{ "http:///x", NULL, NULL, NULL },
		{ "http://h:0", NULL, NULL, NULL },
		{ "http://h:65536", NULL, NULL, NULL },
		{ "http://h:", NULL, NULL, NULL },
		{ "http://h:8x", NULL, NULL, NULL },
		{ "http://[::1", NULL, NULL, NULL },
		{ "http://u:topsecret@h", NULL, NULL, NULL },
		{ "http://h/a b", NULL, NULL, NULL },
		{ "http://h/\r\nX: y", NULL, NULL, NULL },
		{ "http://h/\xc3\xa4", NULL, NULL, NULL },
		{ "http://h/#topsecret", NULL, NULL, NULL },
		{ "http://h*topsecret", NULL, NULL, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		struct otlp_target t = { .port = "7" };
		struct otlp_target own = { 0 };
		struct ssb_error err = { 0 };
		char where[OTLP_WHERE_SIZE];
		int rc = otlp_target_parse(&t, CASES[i].url, "/v1/logs", "VAR", &err);
		if (CASES[i].where == NULL) {
			assert_int_equal(rc, -1);
			assert_string_equal(t.port, "7"); /* a failure must not change it */
			assert_string_equal(err.where, "VAR");
			assert_null(strstr(err.text, "topsecret"));
			continue;
		}
		assert_int_equal(rc, 0);
		otlp_target_where(&t, where);
		assert_string_equal(where, CASES[i].where);
		assert_string_equal(t.path, CASES[i].path);
		assert_int_equal(otlp_target_parse(&own, CASES[i].url, "", "VAR", &err), 0);
		assert_string_equal(own.path, CASES[i].own);
	}
}

static void test_url_caps(void **state)
{
	char url[OTLP_MAX_URL + 300] = "http://h/";
	struct otlp_target t = { 0 };
	struct ssb_error err = { 0 };

	memset(url + 9, 'a', OTLP_MAX_URL - 1 - 8 - 9);
	assert_int_equal(otlp_target_parse(&t, url, "/v1/logs", "VAR", &err), 0);
	url[strlen(url)] = 'a';
	assert_int_equal(otlp_target_parse(&t, url, "/v1/logs", "VAR", &err), -1);
	memset(url, 0, sizeof(url));
	memcpy(url, "http://", 7);
	memset(url + 7, 'a', sizeof(t.host) - 1);
	assert_int_equal(otlp_target_parse(&t, url, "", "VAR", &err), 0);
	url[strlen(url)] = 'a';
	assert_int_equal(otlp_target_parse(&t, url, "", "VAR", &err), -1);
}

static void test_pairs(void **state)
{
	static const struct {
		const char *text;
		int n; /* -1: the variable is refused */
		const char *name;
		const char *value;
	} CASES[] = {
		{ "", 0, NULL, NULL },
		{ " , ,", 0, NULL, NULL },
		{ "a=b", 1, "a", "b" },
		{ " a = b%20c ,d=e=f", 2, "a", "b c" },
		{ "a=", 1, "a", "" },
		{ "a=%C3%a4", 1, "a", "\xc3\xa4" },
		{ "a", -1, NULL, NULL },
		{ "=b", -1, NULL, NULL },
		{ "a=%zz", -1, NULL, NULL },
		{ "a=%2", -1, NULL, NULL },
		{ "a=%00", -1, NULL, NULL },
		{ "a=b%0d%0aX: y", -1, NULL, NULL },
		{ "a%0a=b", -1, NULL, NULL },
		{ "a b=c", -1, NULL, NULL },
		{ "Host=evil", -1, NULL, NULL },
		{ "content-LENGTH=0", -1, NULL, NULL },
		{ "ok=topsecret,bad", -1, NULL, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		struct otlp_pairs p = { 0 };
		struct ssb_error err = { 0 };
		int rc = otlp_pairs_parse(&p, CASES[i].text, true, "VAR", &err);
		assert_int_equal(rc, CASES[i].n < 0 ? -1 : 0);
		assert_int_equal(p.n, CASES[i].n < 0 ? 0 : CASES[i].n);
		assert_null(strstr(err.text, "topsecret"));
		if (CASES[i].n > 0) {
			assert_string_equal(p.v[0].name, CASES[i].name);
			assert_string_equal(p.v[0].value, CASES[i].value);
		}
		otlp_pairs_done(&p);
	}
}

static void test_pairs_caps(void **state)
{
	char text[4 * (OTLP_MAX_PAIRS + 1) + 1] = "";
	static char longer[OTLP_MAX_VALUE + 2] = "a=";
	struct otlp_pairs p = { 0 };
	struct ssb_error err = { 0 };

	for (size_t i = 0; i < OTLP_MAX_PAIRS; i++) {
		memcpy(text + 4 * i, "a=b,", 4);
	}
	assert_int_equal(otlp_pairs_parse(&p, text, true, "VAR", &err), 0);
	assert_int_equal(p.n, OTLP_MAX_PAIRS);
	otlp_pairs_done(&p);
	memcpy(text + strlen(text), "a=b", 3);
	assert_int_equal(otlp_pairs_parse(&p, text, true, "VAR", &err), -1);
	memset(longer + 2, 'b', OTLP_MAX_VALUE - 2);
	assert_int_equal(otlp_pairs_parse(&p, longer, true, "VAR", &err), 0);
	otlp_pairs_done(&p);
	longer[OTLP_MAX_VALUE] = 'b';
	assert_int_equal(otlp_pairs_parse(&p, longer, true, "VAR", &err), -1);
}

static void test_signals(void **state)
{
	struct otel_config c;
	struct ssb_error err;

	assert_int_equal(LOAD(&c, &err, BASE "ENDPOINT=http://all:1",
	                      BASE "LOGS_ENDPOINT=https://l/x", BASE "HEADERS=a=b",
	                      BASE "TRACES_HEADERS=c=d", BASE "TIMEOUT=5",
	                      BASE "LOGS_TIMEOUT=999999", BASE "LOGS_PROTOCOL=http/json",
	                      BASE "CERTIFICATE=/ca"),
	                 0);
	assert_string_equal(c.traces.host, "all");
	assert_string_equal(c.traces.path, "/v1/traces");
	assert_true(c.logs.tls);
	assert_string_equal(c.logs.path, "/x");
	assert_string_equal(c.traces.headers.v[0].name, "c");
	assert_string_equal(c.logs.headers.v[0].name, "a");
	assert_int_equal(c.traces.timeout_ms, 5);
	assert_int_equal(c.logs.timeout_ms, OTLP_MAX_TIMEOUT_MS);
	assert_ptr_equal(c.traces.format, &OTLP_PROTO);
	assert_ptr_equal(c.logs.format, &OTLP_JSON);
	assert_string_equal(c.logs.ca, "/ca");
	otel_config_done(&c);
	assert_int_equal(LOAD(&c, &err, BASE "PROTOCOL=grpc"), -1);
	assert_string_equal(err.where, BASE "PROTOCOL");
	/* If a signal (traces or logs) is switched off, its settings are not checked. */
	assert_int_equal(LOAD(&c, &err, BASE "LOGS_PROTOCOL=grpc", "OTEL_LOGS_EXPORTER=none"), 0);
	assert_true(c.traces.on && !c.logs.on);
	otel_config_done(&c);
	assert_int_equal(LOAD(&c, &err, BASE "PROTOCOL=grpc", "OTEL_SDK_DISABLED=True"), 0);
	assert_false(c.traces.on || c.logs.on);
}

static void test_notes(void **state)
{
	struct otel_config c;
	struct ssb_error err;

	assert_int_equal(LOAD(&c, &err, BASE "TIMEOUT=soon"), 0);
	assert_int_equal(c.traces.timeout_ms, 10000);
	assert_non_null(strstr(c.note, "TIMEOUT"));
	otel_config_done(&c);
	assert_int_equal(LOAD(&c, &err, "OTEL_RESOURCE_ATTRIBUTES=a=b,broken"), 0);
	assert_int_equal(c.resource.n, 0);
	assert_non_null(strstr(c.note, "RESOURCE"));
	otel_config_done(&c);
	assert_int_equal(LOAD(&c, &err, "OTEL_RESOURCE_ATTRIBUTES=service.name=x"), 0);
	assert_string_equal(c.service, "x");
	otel_config_done(&c);
}

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN  "b7ad6b7169203331"

static void test_parent(void **state)
{
	static const struct {
		const char *parent;
		bool taken;
		bool traces;
		int flags;
	} CASES[] = {
		{ "TRACEPARENT=00-" TRACE "-" SPAN "-01", true, true, 1 },
		{ "TRACEPARENT=00-" TRACE "-" SPAN "-00", true, false, 0 },
		{ "TRACEPARENT=00-" TRACE "-" SPAN "-03", true, true, 3 },
		{ "TRACEPARENT=00-" TRACE "-" SPAN "-ff", true, true, 3 },
		{ "TRACEPARENT=00-" TRACE "-" SPAN "-fc", true, false, 0 },
		{ "TRACEPARENT=cc-" TRACE "-" SPAN "-09-more", true, true, 1 },
		{ "TRACEPARENT=01-" TRACE "-" SPAN "-01-more", true, true, 1 },
		{ "TRACEPARENT=00-" TRACE "-" SPAN "-01-more", false, true, 1 },
		{ "TRACEPARENT=01-" TRACE "-" SPAN "-01x", false, true, 1 },
		{ "TRACEPARENT=ff-" TRACE "-" SPAN "-01", false, true, 1 },
		{ "TRACEPARENT=00-" TRACE "-" SPAN "-0", false, true, 1 },
		{ "TRACEPARENT=00_" TRACE "-" SPAN "-01", false, true, 1 },
		{ "TRACEPARENT=00-" TRACE "-0000000000000000-00", false, true, 1 },
		{ "TRACEPARENT=", false, true, 1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		struct otel_config c;
		struct ssb_error err;
		assert_int_equal(load(&c, &err,
		                      (char *[]){ (char *)(uintptr_t)CASES[i].parent,
		                                  "TRACESTATE=a=b", NULL }),
		                 0);
		assert_int_equal(c.has_parent, CASES[i].taken);
		assert_int_equal(c.traces.on, CASES[i].traces);
		assert_int_equal(c.flags, CASES[i].flags);
		assert_true(c.logs.on);
		if (CASES[i].taken) {
			assert_string_equal(c.state, "a=b");
			assert_int_equal(c.trace_id[0], 0x0a);
			assert_int_equal(c.parent_id[7], 0x31);
		} else {
			assert_null(c.state);
		}
		otel_config_done(&c);
	}
}

/* With an explicit URL, the environment sets the headers and the format, but not the
 * destination. */
static void test_at(void **state)
{
	static const struct {
		const char *url;
		const char *logs;
		const char *traces;
	} WANT[] = {
		{ "http://c:4318", "/v1/logs", "/v1/traces" },
		{ "http://c:4318/", "/v1/logs", "/v1/traces" },
		{ "http://c/a/b/", "/a/b/v1/logs", "/a/b/v1/traces" },
		{ "http://c/v1/logs", "/v1/logs", "/v1/traces" },
		{ "http://c/a/v1/logs/?k=v", "/a/v1/logs?k=v", "/a/v1/traces?k=v" },
		{ "http://c/v1/traces", "/v1/logs", "/v1/traces" },
		{ "http://c/xv1/logs", "/xv1/logs/v1/logs", "/xv1/logs/v1/traces" },
		{ "http://v1/logs", "/logs/v1/logs", "/logs/v1/traces" },
	};
	char *environ[] = { (char[]){ BASE "ENDPOINT=http://elsewhere" },
		            (char[]){ BASE "LOGS_ENDPOINT=nonsense" },
		            (char[]){ BASE "HEADERS=a=b" },
		            (char[]){ BASE "PROTOCOL=http/json" },
		            (char[]){ "OTEL_SDK_DISABLED=true" },
		            (char[]){ "OTEL_LOGS_EXPORTER=none" },
		            (char[]){ "TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-"
		                      "b7ad6b7169203331-00" },
		            (char[]){ "OTEL_SERVICE_NAME=s" },
		            NULL };
	struct owner owner = { .environ = environ };

	for (size_t i = 0; i < ARRAY_LEN(WANT); i++) {
		struct otel_config c;
		struct ssb_error err = { 0 };
		assert_int_equal(otel_config_at(&c, &owner, WANT[i].url, &err), 0);
		assert_string_equal(c.logs.path, WANT[i].logs);
		assert_string_equal(c.traces.path, WANT[i].traces);
		assert_string_not_equal(c.logs.host, "elsewhere");
		assert_true(c.logs.on && c.traces.on && !c.has_parent && c.flags == 1);
		assert_ptr_equal(c.logs.format, &OTLP_JSON);
		assert_string_equal(c.logs.headers.v[0].value, "b");
		assert_string_equal(c.service, "s");
		otel_config_done(&c);
	}
}

static void test_at_bad(void **state)
{
	static char longest[OTLP_MAX_URL + 20] = "http://c/";
	struct owner owner = { 0 };
	struct otel_config c;
	struct ssb_error err = { 0 };

	memset(longest + 9, 'a', sizeof(longest) - 10);
	assert_int_equal(otel_config_at(&c, &owner, longest, &err), -1);
	longest[OTLP_MAX_URL - 1] = '\0'; /* fits, but is too long with "/v1/traces" */
	assert_int_equal(otel_config_at(&c, &owner, longest, &err), -1);
	longest[MAX_OTEL_URL - 1] = '\0'; /* the longest URL of a policy */
	assert_int_equal(otel_config_at(&c, &owner, longest, &err), 0);
	otel_config_done(&c);
	assert_int_equal(otel_config_at(&c, &owner, "ftp://c", &err), -1);
	assert_int_equal(otel_config_at(&c, &owner, "http://u:p@c", &err), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_at),         cmocka_unit_test(test_at_bad),
		cmocka_unit_test(test_defaults),   cmocka_unit_test(test_endpoints),
		cmocka_unit_test(test_url_caps),   cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_pairs_caps), cmocka_unit_test(test_signals),
		cmocka_unit_test(test_notes),      cmocka_unit_test(test_parent),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
