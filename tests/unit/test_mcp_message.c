/* test_mcp_message.c - the messages of the protocol: which are accepted, which are refused, and
 * their caps. */
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "base/limits.h"
#include "base/own.h"
#include "mcp/mcp_priv.h"

static int read_text(struct mcp_message *m, const char *text, int *ret_code)
{
	const char *why = NULL;
	int r = mcp_message_read(m, text, strlen(text), ret_code, &why);

	assert_true(r == 0 || why != NULL);
	return r;
}

static const struct {
	const char *text;
	enum mcp_kind kind;
	const char *id;
	const char *method;
	const char *version;
	const char *name;
} GOOD[] = {
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", MCP_REQUEST, "1", "ping", NULL,
	  NULL },
	{ " { \"method\":\"ping\", \"id\":\"a\\u0062\\n\", \"jsonrpc\":\"2.0\", \"x\":1 } ",
	  MCP_REQUEST, "\"ab\\n\"", "ping", NULL, NULL },
	{ "{\"jsonrpc\":\"2.0\",\"id\":9007199254740991,\"method\":\"ping\"}", MCP_REQUEST,
	  "9007199254740991", "ping", NULL, NULL },
	{ "{\"jsonrpc\":\"2.0\",\"id\":-1,\"method\":\"ping\"}", MCP_REQUEST, "-1", "ping", NULL,
	  NULL },
	{ "{\"jsonrpc\":\"2.0\",\"id\":\"\",\"method\":\"ping\"}", MCP_REQUEST, "\"\"", "ping",
	  NULL, NULL },
	{ "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}", MCP_NOTIFICATION, NULL,
	  "notifications/initialized", NULL, NULL },
	{ "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}", MCP_RESPONSE, "7", NULL, NULL, NULL },
	{ "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-1,\"message\":\"\"}}", MCP_RESPONSE,
	  "7", NULL, NULL, NULL },
	{ "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{}}", MCP_RESPONSE, NULL, NULL, NULL, NULL },
	{ "{\"jsonrpc\":\"2.0\",\"error\":{}}", MCP_RESPONSE, NULL, NULL, NULL, NULL },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"t\","
	  "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}}",
	  MCP_REQUEST, "1", "tools/call", "2026-07-28", "t" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"name\":\"t\","
	  "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":1}}}",
	  MCP_REQUEST, "1", "tools/list", "", NULL },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/"
	  "read\",\"params\":{\"uri\":\"u:\"}}",
	  MCP_REQUEST, "1", "resources/read", NULL, "u:" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tasks/get\",\"params\":{\"taskId\":\"7\"}}",
	  MCP_REQUEST, "1", "tasks/get", NULL, "7" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
	  "call\",\"params\":{\"name\":7,\"_meta\":3}}",
	  MCP_REQUEST, "1", "tools/call", NULL, NULL },
};

/* A raw DEL is valid JSON. (Our own records never contain it.) */
static void reads_a_raw_del(void **state)
{
	struct mcp_message m = { 0 };
	int code = 0;

	assert_int_equal(
	        read_text(&m, "{\"jsonrpc\":\"2.0\",\"id\":\"\\\\\x7f\",\"method\":\"a\"}", &code),
	        0);
	assert_string_equal(json_string(json_member(&m.doc, json_top(&m.doc), "id"), ""), "\\\x7f");
	mcp_message_done(&m);
	assert_int_equal(
	        read_text(&m, "{\"jsonrpc\":\"2.0\",\"id\":\"\\\x7f\",\"method\":\"a\"}", &code),
	        -1);
	mcp_message_done(&m);
	assert_int_equal(
	        read_text(&m, "{\x7f\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}", &code), -1);
	mcp_message_done(&m);
}

static bool same(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static void reads_what_is_good(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(GOOD); i++) {
		struct mcp_message m = { 0 };
		int code = 0;
		print_message("%s\n", GOOD[i].text);
		assert_int_equal(read_text(&m, GOOD[i].text, &code), 0);
		assert_int_equal(m.kind, GOOD[i].kind);
		assert_true(same(m.id, GOOD[i].id));
		assert_true(same(m.method, GOOD[i].method));
		assert_true(same(m.version, GOOD[i].version));
		assert_true(same(m.name, GOOD[i].name));
		mcp_message_done(&m);
	}
}

static const struct {
	const char *text;
	int code;
	const char *id; /* the id for the error's answer; NULL: none could be read */
} BAD[] = {
	{ "", MCP_E_PARSE, NULL },
	{ "{", MCP_E_PARSE, NULL },
	{ "{}{}", MCP_E_PARSE, NULL },
	{ "\xff", MCP_E_PARSE, NULL },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}", MCP_E_PARSE, NULL },
	{ "[]", MCP_E_REQUEST, NULL },
	{ "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", MCP_E_REQUEST, NULL },
	{ "1", MCP_E_REQUEST, NULL },
	{ "null", MCP_E_REQUEST, NULL },
	{ "\"ping\"", MCP_E_REQUEST, NULL },
	{ "{}", MCP_E_REQUEST, NULL },
	{ "{\"id\":1,\"method\":\"ping\"}", MCP_E_REQUEST, "1" },
	{ "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", MCP_E_REQUEST, "1" },
	{ "{\"jsonrpc\":2.0,\"id\":1,\"method\":\"ping\"}", MCP_E_REQUEST, "1" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", MCP_E_REQUEST, NULL },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", MCP_E_REQUEST, NULL },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1e3,\"method\":\"ping\"}", MCP_E_REQUEST, NULL },
	{ "{\"jsonrpc\":\"2.0\",\"id\":9007199254740992,\"method\":\"ping\"}", MCP_E_REQUEST,
	  NULL },
	{ "{\"jsonrpc\":\"2.0\",\"id\":-9007199254740992,\"method\":\"ping\"}", MCP_E_REQUEST,
	  NULL },
	{ "{\"jsonrpc\":\"2.0\",\"id\":99999999999999999999,\"method\":\"ping\"}", MCP_E_REQUEST,
	  NULL },
	{ "{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"ping\"}", MCP_E_REQUEST, NULL },
	{ "{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"ping\"}", MCP_E_REQUEST, NULL },
	{ "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", MCP_E_REQUEST, NULL },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", MCP_E_REQUEST, "1" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\"}", MCP_E_REQUEST, "1" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\\u0000ng\"}", MCP_E_REQUEST, "1" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[]}", MCP_E_REQUEST, "1" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":null}", MCP_E_REQUEST,
	  "1" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"result\":{}}", MCP_E_REQUEST, "1" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1}", MCP_E_REQUEST, "1" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{}}", MCP_E_REQUEST, "1" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":\"x\"}", MCP_E_REQUEST, "1" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{}}", MCP_E_REQUEST, NULL },
	{ "{\"jsonrpc\":\"2.0\",\"result\":{}}", MCP_E_REQUEST, NULL },
};

static void refuses_what_is_not(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
		struct mcp_message m = { 0 };
		int code = 0;
		print_message("%s\n", BAD[i].text);
		assert_int_equal(read_text(&m, BAD[i].text, &code), -1);
		assert_int_equal(code, BAD[i].code);
		assert_true(same(m.id, BAD[i].id));
		mcp_message_done(&m);
	}
}

/* Returns a new message: `before`, then `fill` times `c`, then `after`. */
static char *filled(const char *before, char c, size_t fill, const char *after)
{
	char *text = malloc(strlen(before) + fill + strlen(after) + 1);

	assert_non_null(text);
	(void)stpcpy(text, before);
	memset(text + strlen(before), c, fill);
	(void)stpcpy(text + strlen(before) + fill, after);
	return text;
}

static void caps(void **state)
{
	static const struct {
		const char *before;
		const char *after;
		size_t most;
		char c;
		int code;
	} rows[] = {
		{ "{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"id\":\"", "\"}", MAX_MCP_ID, 'a',
		  MCP_E_REQUEST },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"", "\"}", MAX_MCP_METHOD, 'a',
		  MCP_E_REQUEST },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}", "",
		  MAX_MCP_MESSAGE - strlen("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}"), ' ',
		  MCP_E_REQUEST },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		for (size_t past = 0; past < 2; past++) {
			auto_free char *text = filled(rows[i].before, rows[i].c,
			                              rows[i].most + past, rows[i].after);
			struct mcp_message m = { 0 };
			int code = 0;
			assert_int_equal(read_text(&m, text, &code), past == 0 ? 0 : -1);
			assert_int_equal(code, past == 0 ? 0 : rows[i].code);
			mcp_message_done(&m);
		}
	}
}

static void depth_is_capped(void **state)
{
	for (size_t past = 0; past < 2; past++) {
		size_t n = MAX_JSON_DEPTH - 2 + past;
		auto_free char *open = filled("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\","
		                              "\"params\":{\"x\":",
		                              '[', n, "");
		auto_free char *text = filled(open, ']', n, "}}");
		struct mcp_message m = { 0 };
		int code = 0;
		assert_int_equal(read_text(&m, text, &code), past == 0 ? 0 : -1);
		assert_int_equal(code, past == 0 ? 0 : MCP_E_PARSE);
		mcp_message_done(&m);
	}
}

/* An id with any kind of escapes is returned as the same id. */
static void ids_are_echoed(void **state)
{
	struct mcp_message m = { 0 };
	struct mcp_message again = { 0 };
	auto_buf text = BUF(4096);
	int code = 0;

	assert_int_equal(read_text(&m,
	                           "{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"id\":"
	                           "\"\\\"\\\\\\u0000\\u0001\\ud83d\\ude00\\udcff\xc3\xa9\"}",
	                           &code),
	                 0);
	mcp_error_text(&text, m.id, -1, "x", NULL);
	assert_int_equal(read_text(&again, text.data, &code), 0);
	assert_string_equal(again.id, m.id);
	const struct json_node *a = json_member(&m.doc, json_top(&m.doc), "id");
	const struct json_node *b = json_member(&again.doc, json_top(&again.doc), "id");
	assert_int_equal(a->len, 11);
	assert_int_equal(b->len, a->len);
	assert_memory_equal(a->str, b->str, a->len);
	mcp_message_done(&m);
	mcp_message_done(&again);
}

static void errors_without_a_call(void **state)
{
	auto_buf text = BUF(4096);

	mcp_error_text(&text, NULL, MCP_E_PARSE, "a \"quote\"", NULL);
	assert_string_equal(text.data,
	                    "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,"
	                    "\"message\":\"a \\\"quote\\\"\"}}");
	buf_reset(&text);
	mcp_error_text(&text, "\"x\"", MCP_E_REQUEST, "", NULL);
	assert_string_equal(text.data,
	                    "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"error\":{\"code\":-32600,"
	                    "\"message\":\"\"}}");
}

static void versions(void **state)
{
	assert_true(mcp_version_known("2026-07-28") && mcp_version_modern("2026-07-28"));
	assert_true(mcp_version_known("2024-11-05") && !mcp_version_modern("2024-11-05"));
	assert_true(mcp_version_known("2025-03-26") && mcp_version_known("2025-06-18"));
	assert_true(mcp_version_known(MCP_LATEST_LEGACY) && !mcp_version_modern(MCP_LATEST_LEGACY));
	assert_false(mcp_version_known("2024-10-07") || mcp_version_modern("2030-01-01"));
	assert_false(mcp_version_known(""));
	assert_string_equal(mcp_version_negotiate("2025-03-26"), "2025-03-26");
	assert_string_equal(mcp_version_negotiate("1999-01-01"), MCP_LATEST_LEGACY);
	assert_string_equal(mcp_version_negotiate("2026-07-28"), MCP_LATEST_LEGACY);
}

static void digest_of(const char *text, uint8_t ret[SHA256_BYTES])
{
	struct json_doc doc AUTO(json_doc_done) = { 0 };
	const char *why = NULL;

	assert_int_equal(json_read(&doc, text, strlen(text), &why), 0);
	assert_int_equal(mcp_params_digest(&doc, json_top(&doc), ret), 0);
}

static void digests_know_what_matters(void **state)
{
	static const char *const others[] = {
		"{}",
		"{\"a\":1,\"b\":{\"c\":[1,2],\"d\":\"e\"},\"f\":null}",
		"{\"a\":1,\"b\":{\"c\":[2,1],\"d\":\"e\"}}",
		"{\"a\":\"1\",\"b\":{\"c\":[1,2],\"d\":\"e\"}}",
		"{\"a\":1,\"b\":{\"c\":[1,2,\"d\"],\"e\":\"e\"}}",
		"{\"a\":1,\"b\":{\"c\":[1,2],\"d\":\"e\",\"_meta\":{}}}",
	};
	uint8_t one[SHA256_BYTES];
	uint8_t two[SHA256_BYTES];

	digest_of("{\"a\":1,\"b\":{\"c\":[1,2],\"d\":\"e\"}}", one);
	digest_of("{\"_meta\":{\"x\":1},\"b\":{\"d\":\"e\",\"c\":[1,2]},\"requestState\":\"s\","
	          "\"a\":1,\"inputResponses\":{}}",
	          two);
	assert_memory_equal(one, two, sizeof(one));
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		digest_of(others[i], two);
		assert_memory_not_equal(one, two, sizeof(one));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_what_is_good),        cmocka_unit_test(reads_a_raw_del),
		cmocka_unit_test(refuses_what_is_not),       cmocka_unit_test(caps),
		cmocka_unit_test(depth_is_capped),           cmocka_unit_test(ids_are_echoed),
		cmocka_unit_test(errors_without_a_call),     cmocka_unit_test(versions),
		cmocka_unit_test(digests_know_what_matters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
