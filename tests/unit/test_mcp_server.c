/* test_mcp_server.c - the answers to each method of the protocol in both eras, and the refused
 * requests. */
#include <stdio.h>
#include <string.h>

#include "unit.h"
#include "base/own.h"
#include "mcp_world.h"

#define META(members) "'params':{'_meta':{" members "}}"
#define V(version)    "'io.modelcontextprotocol/protocolVersion':" version
#define CAPS          "'io.modelcontextprotocol/clientCapabilities':{}"

static void initialize_in_each_revision(void **state)
{
	static const char *const rows[][2] = {
		{ "2024-11-05", "2024-11-05" }, { "2025-03-26", "2025-03-26" },
		{ "2025-06-18", "2025-06-18" }, { "2025-11-25", "2025-11-25" },
		{ "2026-07-28", "2025-11-25" }, { "1999-01-01", "2025-11-25" },
		{ "", "2025-11-25" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char want[64];
		world_init();
		assert_false(mcp_peer_initialized(w.peer));
		assert_string_equal(mcp_peer_version(w.peer), "");
		world_say("{'jsonrpc':'2.0','id':0,'method':'initialize','params':{"
		          "'protocolVersion':'%s','capabilities':{},"
		          "'clientInfo':{'name':'c','version':'1'}}}",
		          rows[i][0]);
		(void)snprintf(want, sizeof(want), "'protocolVersion':'%s'", rows[i][1]);
		world_expect(&w.out, want);
		world_expect(&w.out, "'id':0,");
		world_expect(&w.out,
		             "'serverInfo':{'name':'world','title':'A world','version':'1'}");
		world_expect(&w.out, "'instructions':'Be kind.'");
		world_expect(&w.out, "'tools':{'listChanged':true}");
		world_expect(&w.out, "'resources':{'subscribe':true}");
		world_expect(&w.out, "'prompts':{},'completions':{},'logging':{}");
		world_expect(&w.out, "'extensions':{'com.example/y':{}}");
		assert_null(strstr(world_last(&w.out), "resultType"));
		assert_int_equal(world_last_status(&w.out), 200);
		assert_int_equal(w.out.n_ended, 1);
		assert_true(mcp_peer_initialized(w.peer));
		assert_string_equal(mcp_peer_version(w.peer), rows[i][1]);
	}
}

static void initialize_is_checked(void **state)
{
	static const char *const bad[] = {
		"{'jsonrpc':'2.0','id':0,'method':'initialize'}",
		"{'jsonrpc':'2.0','id':0,'method':'initialize','params':{}}",
		"{'jsonrpc':'2.0','id':0,'method':'initialize','params':{'protocolVersion':7}}",
		"{'jsonrpc':'2.0','id':0,'method':'initialize','params':{"
		"'protocolVersion':'2025-11-25','capabilities':[]}}",
		"{'jsonrpc':'2.0','id':0,'method':'initialize','params':{"
		"'protocolVersion':'2025-11-25','clientInfo':'me'}}",
	};

	world_init();
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		world_say("%s", bad[i]);
		world_expect(&w.out, "'code':-32602");
		assert_false(mcp_peer_initialized(w.peer));
	}
	world_initialize("{}");
	world_say("{'jsonrpc':'2.0','id':1,'method':'initialize','params':{"
	          "'protocolVersion':'2024-11-05'}}");
	world_expect(&w.out, "'code':-32600");
	assert_string_equal(mcp_peer_version(w.peer), "2025-11-25");
}

static void nothing_before_initialize_but_ping(void **state)
{
	world_init();
	world_say("{'jsonrpc':'2.0','id':1,'method':'ping'}");
	world_expect(&w.out, "{'jsonrpc':'2.0','id':1,'result':{}}");
	world_say("{'jsonrpc':'2.0','id':2,'method':'tools/list'}");
	world_expect(&w.out, "'id':2,'error':{'code':-32602");
	assert_int_equal(world_last_status(&w.out), 400);
	assert_int_equal(w.n_handled, 0);
	world_initialize("{}");
	world_say("{'jsonrpc':'2.0','id':2,'method':'tools/list'}");
	world_expect(&w.out, "{'jsonrpc':'2.0','id':2,'result':{'tools':[]}}");
	assert_int_equal(w.n_handled, 1);
}

static void discover(void **state)
{
	world_init();
	world_say("{'jsonrpc':'2.0','id':'d','method':'server/discover','params':{" MODERN "}}");
	world_expect(&w.out, "'id':'d','result':{'resultType':'complete','ttlMs':5000,"
	                     "'cacheScope':'private','_meta':{"
	                     "'io.modelcontextprotocol/serverInfo':{'name':'world'");
	world_expect(&w.out, "'supportedVersions':['2026-07-28','2025-11-25',");
	world_expect(&w.out,
	             "'extensions':{'io.modelcontextprotocol/tasks':{},'com.example/y':{}}");
	world_expect(&w.out, "'instructions':'Be kind.'");
	assert_int_equal(world_last_status(&w.out), 200);
	assert_int_equal(w.out.n_ended, 1);
	assert_false(mcp_peer_initialized(w.peer));
}

/* A request of the modern era on the connection of a legacy session changes nothing in this
 * session. */
static void eras_side_by_side(void **state)
{
	world_begin("{'roots':{}}");
	world_say("{'jsonrpc':'2.0','id':1,'method':'test/who','params':{" MODERN_WITH(
	        "{'sampling':{},'extensions':{'com.example/x':{}}}") "}}");
	world_expect(&w.out, "'client':'','version':'2026-07-28','modern':true,'elicit':false,"
	                     "'sample':true,'roots':false,'ext':true");
	world_say("{'jsonrpc':'2.0','id':2,'method':'test/who'}");
	world_expect(&w.out, "'principal':'tester','client':'tester','version':'2025-11-25',"
	                     "'modern':false,'elicit':false,'sample':false,'roots':true,"
	                     "'ext':false");
	world_say("{'jsonrpc':'2.0','id':3,'method':'tools/list','params':{" MODERN "}}");
	world_expect(&w.out, "'resultType':'complete','ttlMs':5000,'cacheScope':'private'");
	world_say("{'jsonrpc':'2.0','id':4,'method':'test/who','params':{" MODERN "}}");
	assert_null(strstr(world_last(&w.out), "ttlMs"));
}

static void abilities(void **state)
{
	static const struct {
		const char *caps;
		const char *want;
	} rows[] = {
		{ "{}", "'elicit':false,'sample':false,'roots':false,'ext':false" },
		{ "{'elicitation':{}}", "'elicit':true," },
		{ "{'elicitation':{'form':{}}}", "'elicit':true," },
		{ "{'elicitation':{'form':{},'url':{}}}", "'elicit':true," },
		{ "{'elicitation':{'url':{}}}", "'elicit':false," },
		{ "{'elicitation':true}", "'elicit':false," },
		{ "{'sampling':{},'roots':{'listChanged':true}}", "'sample':true,'roots':true" },
		{ "{'extensions':{'com.example/x':{}}}", "'ext':true" },
		{ "{'extensions':{'com.example/w':{},'com.example/x':{}}}", "'ext':true" },
		{ "{'extensions':{'com.example/x':1,'com.example/xx':{}}}", "'ext':false" },
		{ "{'extensions':[]}", "'ext':false" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		world_begin(rows[i].caps);
		world_say("{'jsonrpc':'2.0','id':1,'method':'test/who'}");
		world_expect(&w.out, rows[i].want);
		world_say("{'jsonrpc':'2.0','id':1,'method':'test/who','params':{'_meta':{" V(
		                  "'2026-07-28'") ","
		                                  "'io.modelcontextprotocol/clientCapabilities':%s,"
		                                  "'io.modelcontextprotocol/"
		                                  "clientInfo':{'name':'m'}}}}",
		          rows[i].caps);
		world_expect(&w.out, rows[i].want);
		world_expect(&w.out, "'client':'m'");
	}
}

static void modern_requests_are_checked(void **state)
{
	static const struct {
		const char *params;
		const char *want;
	} rows[] = {
		{ META(V("'2026-07-28'")), "'code':-32602" },
		{ META(V("'2026-07-28'") ",'io.modelcontextprotocol/clientCapabilities':[]"),
		  "'code':-32602" },
		{ META(V("7") "," CAPS), "'code':-32602" },
		{ META(V("'2026-07-28'") "," CAPS ",'io.modelcontextprotocol/logLevel':'loud'"),
		  "'code':-32602" },
		{ META(V("'2026-07-28'") "," CAPS ",'io.modelcontextprotocol/clientInfo':7"),
		  "'code':-32602" },
		{ META(V("'2026-07-28'") "," CAPS ",'progressToken':{}"), "'code':-32602" },
		{ META(V("'1900-01-01'") "," CAPS),
		  "'code':-32022,'message':'unsupported protocol version','data':{'supported':["
		  "'2026-07-28','2025-11-25','2025-06-18','2025-03-26','2024-11-05'],"
		  "'requested':'1900-01-01'}" },
		{ META(V("'2025-11-25'") "," CAPS), "'code':-32022" },
		{ META(CAPS), "'code':-32602" },
		{ "'params':{'_meta':7}", "'code':-32602" },
	};

	world_init();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		world_say("{'jsonrpc':'2.0','id':'x','method':'tools/list',%s}", rows[i].params);
		world_expect(&w.out, rows[i].want);
		world_expect(&w.out, "'id':'x'");
		assert_int_equal(world_last_status(&w.out), 400);
		assert_int_equal(w.out.n_ended, i + 1);
	}
	assert_int_equal(w.n_handled, 0);
	world_say("{'jsonrpc':'2.0','id':'x','method':'tools/list'," META(
	        V("'2026-07-28'") "," CAPS) "}");
	assert_int_equal(w.n_handled, 1);
}

static void methods_of_the_other_era(void **state)
{
	static const struct {
		const char *method;
		bool legacy;
		bool modern;
	} rows[] = {
		{ "initialize", true, false },
		{ "ping", true, false },
		{ "logging/setLevel", true, false },
		{ "resources/subscribe", true, false },
		{ "resources/unsubscribe", true, false },
		{ "server/discover", false, true },
		{ "test/legacy", true, false },
		{ "test/modern", false, true },
		{ "tools/list", true, true },
		{ "nothing/at-all", false, false },
		{ "notifications/cancelled", false, false },
	};

	world_begin("{}");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		world_say("{'jsonrpc':'2.0','id':1,'method':'%s','params':{}}", rows[i].method);
		assert_int_equal(strstr(world_last(&w.out), "-32601") == NULL, rows[i].legacy);
		assert_int_equal(world_last_status(&w.out), 200);
		world_say("{'jsonrpc':'2.0','id':1,'method':'%s','params':{" MODERN "}}",
		          rows[i].method);
		assert_int_equal(strstr(world_last(&w.out), "-32601") == NULL, rows[i].modern);
		assert_int_equal(world_last_status(&w.out), rows[i].modern ? 200 : 404);
	}
}

/* A method of a feature that the application does not have is unknown. */
static void features_decide(void **state)
{
	static const char *const methods[] = { "logging/setLevel", "resources/subscribe",
		                               "subscriptions/listen", "tasks/get" };

	world_init();
	w.app.features = MCP_TOOLS;
	w.app.extensions = NULL;
	w.app.instructions = NULL;
	world_initialize("{}");
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		world_say("{'jsonrpc':'2.0','id':1,'method':'%s','params':{}}", methods[i]);
		world_expect(&w.out, "'code':-32601");
		world_say("{'jsonrpc':'2.0','id':1,'method':'%s','params':{" MODERN "}}",
		          methods[i]);
		world_expect(&w.out, "'code':-32601");
	}
	world_say("{'jsonrpc':'2.0','id':'d','method':'server/discover','params':{" MODERN "}}");
	world_expect(&w.out, "'capabilities':{'tools':{}}}}");
}

static void errors(void **state)
{
	world_begin("{}");
	world_say("{'jsonrpc':'2.0','id':1,'method':'test/fail'}");
	world_expect(&w.out, "{'jsonrpc':'2.0','id':1,'error':{'code':-32002,"
	                     "'message':'no resource','data':{'uri':'x'}}}");
	world_say("{'jsonrpc':'2.0','id':1,'method':'test/fail','params':{" MODERN "}}");
	world_expect(&w.out, "'code':-32602,'message':'no resource','data':{'uri':'x'}");
	assert_int_equal(world_last_status(&w.out), 200);
	world_say("{'jsonrpc':'2.0','id':1,'method':'test/big'}");
	world_expect(&w.out,
	             "'code':-32603,'message':'the result is longer than the server can send'");
	assert_int_equal(w.out.n_ended, 3);
}

static size_t told(const struct world_out *o, const char *method)
{
	size_t n = 0;

	for (size_t i = 0; i < o->n_sent; i++) {
		n += o->kinds[i] == MCP_NOTIFICATION && strstr(o->sent[i], method) != NULL;
	}
	return n;
}

static void progress(void **state)
{
	world_begin("{}");
	world_say("{'jsonrpc':'2.0','id':1,'method':'test/tell'}");
	assert_int_equal(told(&w.out, "notifications/progress"), 0);
	world_say("{'jsonrpc':'2.0','id':1,'method':'test/tell','params':{'_meta':{"
	          "'progressToken':'t\\u0001'}}}");
	assert_int_equal(told(&w.out, "notifications/progress"), 2);
	assert_non_null(strstr(w.out.sent[2], "\"params\":{\"progressToken\":\"t\\u0001\","
	                                      "\"progress\":1,\"total\":10,\"message\":\"one\"}"));
	assert_non_null(strstr(w.out.sent[3], "\"progress\":5}"));
	world_forget(&w.out);
	world_say("{'jsonrpc':'2.0','id':1,'method':'test/tell','params':{'_meta':{" V(
	        "'2026-07-28'") "," CAPS ",'progressToken':12}}}");
	assert_int_equal(told(&w.out, "\"progressToken\":12"), 2);
	world_expect(&w.out, "'resultType':'complete'"); /* the result comes last */
}

static void logging(void **state)
{
	world_begin("{}");
	world_say("{'jsonrpc':'2.0','id':1,'method':'test/tell'}");
	assert_int_equal(told(&w.out, "notifications/message"), 1);
	assert_non_null(strstr(w.out.sent[0], "{\"level\":\"warning\",\"logger\":\"test\","
	                                      "\"data\":{\"high\":1}}"));
	world_forget(&w.out);
	world_say("{'jsonrpc':'2.0','id':1,'method':'logging/setLevel','params':{'level':'x'}}");
	world_expect(&w.out, "'code':-32602");
	world_say("{'jsonrpc':'2.0','id':1,'method':'logging/setLevel','params':{"
	          "'level':'debug'}}");
	world_expect(&w.out, "'result':{}");
	world_say("{'jsonrpc':'2.0','id':1,'method':'test/tell'}");
	assert_int_equal(told(&w.out, "notifications/message"), 2);
	world_say("{'jsonrpc':'2.0','id':1,'method':'logging/setLevel','params':{"
	          "'level':'emergency'}}");
	world_forget(&w.out);
	world_say("{'jsonrpc':'2.0','id':1,'method':'test/tell'}");
	world_say("{'jsonrpc':'2.0','id':1,'method':'test/tell','params':{" MODERN "}}");
	assert_int_equal(told(&w.out, "notifications/message"), 0);
	world_say("{'jsonrpc':'2.0','id':1,'method':'test/tell','params':{'_meta':{" V(
	        "'2026-07-28'") "," CAPS ",'io.modelcontextprotocol/logLevel':'info'}}}");
	assert_int_equal(told(&w.out, "notifications/message"), 1);
	w.app.features &= ~(unsigned)MCP_LOGGING;
	world_say("{'jsonrpc':'2.0','id':1,'method':'test/tell','params':{'_meta':{" V(
	        "'2026-07-28'") "," CAPS ",'io.modelcontextprotocol/logLevel':'info'}}}");
	assert_int_equal(told(&w.out, "notifications/message"), 1);
}

/* The server sends nothing for a notification or for a response that it did not request. */
static void notifications_and_stray_responses(void **state)
{
	static const char *const rows[] = {
		"{'jsonrpc':'2.0','method':'notifications/initialized'}",
		"{'jsonrpc':'2.0','method':'notifications/roots/list_changed'}",
		"{'jsonrpc':'2.0','method':'notifications/progress','params':{'progressToken':1,"
		"'progress':1}}",
		"{'jsonrpc':'2.0','method':'notifications/nothing'}",
		"{'jsonrpc':'2.0','method':'tools/list'}",
		"{'jsonrpc':'2.0','method':'initialize'}",
		"{'jsonrpc':'2.0','method':'notifications/cancelled'}",
		"{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':null}}",
		"{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':77}}",
		"{'jsonrpc':'2.0','id':1,'result':{}}",
		"{'jsonrpc':'2.0','id':'x','error':{}}",
		"{'jsonrpc':'2.0','error':{}}",
	};

	world_init();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		world_say("%s", rows[i]);
	}
	assert_int_equal(w.out.n_sent + w.out.n_ended + w.n_handled, 0);
	assert_int_equal(w.server->n_calls, 0);
}

static void was_gone(void *arg, const char *principal)
{
	(void)arg;
	w.n_canceled++;
	assert_string_equal(principal, "tester");
}

/* When a client has disconnected, the library calls the application's `gone` exactly once. */
static void a_client_that_is_gone(void **state)
{
	world_init();
	w.app.gone = was_gone;
	assert_int_equal(w.n_canceled, 0);
	mcp_peer_free(steal_ptr(&w.peer));
	assert_int_equal(w.n_canceled, 1);
	world_done();
	assert_int_equal(w.n_canceled, 1);
}

/* `gone` is not called while another connection of the same client is open. */
static void a_connection_that_is_gone(void **state)
{
	struct mcp_peer *other = NULL;

	world_init();
	w.app.gone = was_gone;
	assert_int_equal(mcp_peer_new(w.server, "tester", NULL, &other), 0);
	mcp_peer_leave(other, w.peer);
	assert_int_equal(w.n_canceled, 0);
	mcp_peer_free(steal_ptr(&w.peer));
	assert_int_equal(w.n_canceled, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(initialize_in_each_revision),
		IN_WORLD(initialize_is_checked),
		IN_WORLD(nothing_before_initialize_but_ping),
		IN_WORLD(discover),
		IN_WORLD(eras_side_by_side),
		IN_WORLD(abilities),
		IN_WORLD(modern_requests_are_checked),
		IN_WORLD(methods_of_the_other_era),
		IN_WORLD(features_decide),
		IN_WORLD(errors),
		IN_WORLD(progress),
		IN_WORLD(logging),
		IN_WORLD(notifications_and_stray_responses),
		IN_WORLD(a_client_that_is_gone),
		IN_WORLD(a_connection_that_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
