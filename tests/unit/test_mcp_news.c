/* test_mcp_news.c - subscriptions of both eras: which client is notified, how much, and until
 * when. */
#include <stdio.h>
#include <string.h>

#include "unit.h"
#include "base/limits.h"
#include "base/own.h"
#include "mcp_world.h"

#define URI "skillsandbox://runs/1"

static void begin(void)
{
	world_init();
	w.app.features |= MCP_RESOURCES_CHANGE;
}

static void subscribe(const char *verb, const char *uri)
{
	world_say("{'jsonrpc':'2.0','id':1,'method':'resources/%s','params':{'uri':%s}}", verb,
	          uri);
}

static void listen_to(struct world_out *o, const char *id, const char *filter)
{
	auto_free char *text = NULL;

	assert_true(asprintf(&text,
	                     "{'jsonrpc':'2.0','id':%s,'method':'subscriptions/listen','params':{"
	                     "%s,'notifications':%s}}",
	                     id, MODERN, filter) > 0);
	world_say_to(w.peer, &o->out, text);
}

static void test_legacy(void **state)
{
	begin();
	world_initialize("{}");
	subscribe("subscribe", "'" URI "'");
	subscribe("subscribe", "'" URI "'"); /* two subscriptions to the same resource count once */
	world_expect(&w.out, "'result':{}");
	assert_true(mcp_resource_wanted(w.server, URI));
	assert_false(mcp_resource_wanted(w.server, URI "/x"));
	world_forget(&w.out);
	mcp_resource_updated(w.server, URI "/x");
	assert_int_equal(w.out.n_sent, 0);
	mcp_resource_updated(w.server, URI);
	assert_int_equal(w.out.n_sent, 1);
	assert_int_equal(w.out.kinds[0], MCP_NOTIFICATION);
	assert_string_equal(world_last(&w.out),
	                    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\","
	                    "\"params\":{\"uri\":\"" URI "\"}}");
	subscribe("unsubscribe", "'" URI "'");
	subscribe("unsubscribe", "'" URI "'");
	world_expect(&w.out, "'result':{}");
	assert_false(mcp_resource_wanted(w.server, URI));
	world_forget(&w.out);
	mcp_resource_updated(w.server, URI);
	assert_int_equal(w.out.n_sent, 0);
}

static void test_legacy_bad(void **state)
{
	static const char *const URIS[] = { "7", "''", "null", "'a\\u0000b'" };
	char uri[MAX_MCP_URI + 8];

	begin();
	world_initialize("{}");
	for (size_t i = 0; i < ARRAY_LEN(URIS); i++) {
		subscribe("subscribe", URIS[i]);
		world_expect(&w.out, "'code':-32602");
	}
	memset(uri, 'u', sizeof(uri));
	uri[0] = '\'';
	(void)snprintf(uri + 1 + MAX_MCP_URI, 2, "'");
	subscribe("subscribe", uri);
	world_expect(&w.out, "'result':{}");
	uri[1 + MAX_MCP_URI] = 'u';
	(void)snprintf(uri + 2 + MAX_MCP_URI, 2, "'");
	subscribe("subscribe", uri);
	world_expect(&w.out, "'code':-32602");
	for (size_t i = 1; i < MAX_MCP_WATCHED; i++) {
		(void)snprintf(uri, sizeof(uri), "'u%zu'", i);
		subscribe("subscribe", uri);
		world_expect(&w.out, "'result':{}");
	}
	subscribe("subscribe", "'one-more'");
	world_expect(&w.out, "too many subscriptions");
	subscribe("subscribe", "'u1'"); /* already subscribed */
	world_expect(&w.out, "'result':{}");
	/* The subscriptions end with their peer. */
	mcp_peer_free(steal_ptr(&w.peer));
	assert_false(mcp_resource_wanted(w.server, "u1"));
	mcp_resource_updated(w.server, "u1");
}

static void test_lists(void **state)
{
	begin();
	/* a client that has not initialized gets no notification */
	mcp_list_changed(w.server, MCP_TOOLS);
	assert_int_equal(w.out.n_sent, 0);
	world_initialize("{}");
	/* the server did not declare that prompts change */
	mcp_list_changed(w.server, MCP_PROMPTS);
	assert_int_equal(w.out.n_sent, 0);
	mcp_list_changed(w.server, MCP_TOOLS);
	assert_string_equal(world_last(&w.out), "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
	                                        "tools/list_changed\"}");
	mcp_list_changed(w.server, MCP_RESOURCES);
	world_expect(&w.out, "notifications/resources/list_changed");
	assert_int_equal(w.out.n_sent, 2);
}

static void test_listen(void **state)
{
	struct world_out a AUTO(world_out_done);
	struct world_out b AUTO(world_out_done);

	begin();
	world_out_init(&a);
	world_out_init(&b);
	listen_to(&a, "7",
	          "{'toolsListChanged':true,'promptsListChanged':true,"
	          "'resourcesListChanged':false,'resourceSubscriptions':['" URI "','other','" URI
	          "'],'unknown':{}}");
	listen_to(&b, "'x'", "{'resourcesListChanged':true}");
	/* The acknowledgement comes first. It lists what the server will report: only what the
	 * client asked for, and only lists that can change (here not the list of prompts). */
	assert_int_equal(a.n_sent, 1);
	assert_string_equal(world_last(&a),
	                    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/"
	                    "acknowledged\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/"
	                    "subscriptionId\":7},\"notifications\":{\"toolsListChanged\":true,"
	                    "\"resourceSubscriptions\":[\"" URI "\",\"other\"]}}}");
	world_expect(&b, "'params':{'_meta':{'io.modelcontextprotocol/subscriptionId':'x'},"
	                 "'notifications':{'resourcesListChanged':true}}");
	assert_true(mcp_resource_wanted(w.server, "other"));
	mcp_resource_updated(w.server, URI);
	world_expect(&a, "'method':'notifications/resources/updated','params':{'_meta':{"
	                 "'io.modelcontextprotocol/subscriptionId':7},'uri':'" URI "'}}");
	mcp_list_changed(w.server, MCP_TOOLS);
	world_expect(&a, "'method':'notifications/tools/list_changed','params':{'_meta':{"
	                 "'io.modelcontextprotocol/subscriptionId':7}}}");
	assert_int_equal(a.n_sent, 3);
	assert_int_equal(b.n_sent, 1);
	mcp_list_changed(w.server, MCP_RESOURCES);
	assert_int_equal(a.n_sent, 3);
	assert_int_equal(b.n_sent, 2);
	/* A peer that has not initialized gets nothing on its main connection. */
	assert_int_equal(w.out.n_sent, 0);
	/* When a stream is closed, its subscriptions end. */
	mcp_out_gone(w.peer, &a.out);
	assert_false(mcp_resource_wanted(w.server, "other"));
	mcp_resource_updated(w.server, URI);
	assert_int_equal(a.n_sent, 3);
	assert_int_equal(w.server->n_calls, 1);
	/* When the server ends, the client gets a result with the id, and the stream ends. */
	mcp_server_end(w.server);
	assert_string_equal(world_last(&b),
	                    "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{\"resultType\":"
	                    "\"complete\",\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":"
	                    "\"x\"}}}");
	assert_int_equal(b.kinds[b.n_sent - 1], MCP_RESPONSE);
	assert_int_equal(b.n_ended, 1);
	assert_int_equal(w.server->n_calls, 0);
	mcp_list_changed(w.server, MCP_RESOURCES);
	assert_int_equal(b.n_sent, 3);
}

static void test_listen_canceled_by_id(void **state)
{
	begin();
	listen_to(&w.out, "7", "{'toolsListChanged':true}");
	listen_to(&w.out, "8", "{'toolsListChanged':true}");
	world_say("{'jsonrpc':'2.0','method':'notifications/cancelled','params':{"
	          "'requestId':7}}");
	world_forget(&w.out);
	mcp_list_changed(w.server, MCP_TOOLS);
	assert_int_equal(w.out.n_sent, 1);
	world_expect(&w.out, "subscriptionId':8");
	assert_int_equal(w.server->n_calls, 1);
}

static void test_listen_bad(void **state)
{
	static const char *const FILTERS[] = {
		"7",
		"[]",
		"null",
		"{'toolsListChanged':1}",
		"{'resourceSubscriptions':'x'}",
		"{'resourceSubscriptions':[1]}",
		"{'resourceSubscriptions':['a\\u0000']}",
	};
	auto_buf many = BUF(1 << 20);

	begin();
	for (size_t i = 0; i < ARRAY_LEN(FILTERS); i++) {
		listen_to(&w.out, "1", FILTERS[i]);
		world_expect(&w.out, "'code':-32602");
	}
	assert_int_equal(w.server->n_calls, 0);
	/* The number of resources is limited for each peer. */
	buf_adds(&many, "{'resourceSubscriptions':['u'");
	for (size_t i = 1; i < MAX_MCP_WATCHED; i++) {
		buf_addf(&many, ",'u%zu'", i);
	}
	buf_adds(&many, "]}");
	listen_to(&w.out, "1", many.data);
	world_expect(&w.out, "acknowledged");
	listen_to(&w.out, "2", "{'resourceSubscriptions':['u']}");
	world_expect(&w.out, "'code':-32602");
	/* The number of subscriptions is limited, too. */
	for (size_t i = 1; i < MAX_MCP_LISTENS; i++) {
		char id[16];
		(void)snprintf(id, sizeof(id), "%zu", 10 + i);
		listen_to(&w.out, id, "{}");
		world_expect(&w.out, "'notifications':{}}}");
	}
	listen_to(&w.out, "3", "{}");
	world_expect(&w.out, "too many subscriptions");
	assert_int_equal(w.server->n_calls, MAX_MCP_LISTENS);
	/* A feature that the application does not have is not acknowledged. */
	mcp_out_gone(w.peer, &w.out.out);
	w.app.features &= ~(unsigned)MCP_SUBSCRIBE;
	listen_to(&w.out, "4", "{'resourceSubscriptions':['u'],'toolsListChanged':true}");
	world_expect(&w.out, "'notifications':{'toolsListChanged':true}}}");
	assert_false(mcp_resource_wanted(w.server, "u"));
}

/* While a notification is sent, its receiver may be freed, with all its subscriptions. */
static void test_gone_while_told(void **state)
{
	struct world_out a AUTO(world_out_done);
	struct world_out b AUTO(world_out_done);
	struct mcp_peer *second = NULL;

	begin();
	world_out_init(&a);
	world_out_init(&b);
	world_initialize("{}");
	assert_int_equal(mcp_peer_new(w.server, "second", NULL, &second), 0);
	subscribe("subscribe", "'u'");
	listen_to(&a, "1", "{'resourceSubscriptions':['u']}");
	struct mcp_peer *first = w.peer;
	w.peer = second;
	listen_to(&b, "1", "{'resourceSubscriptions':['u']}");
	w.out.free_in_send = first;
	mcp_resource_updated(w.server, "u");
	/* `a` got only the acknowledgement: its peer was freed before the notification */
	assert_int_equal(a.n_sent, 1);
	assert_int_equal(b.n_sent, 2);
	b.gone_in_send = second;
	mcp_resource_updated(w.server, "u");
	assert_int_equal(b.n_sent, 3);
	mcp_resource_updated(w.server, "u");
	assert_int_equal(b.n_sent, 3);
	/* A client disconnects while the server sends it the acknowledgement of its
	 * subscription. */
	b.gone_in_send = second;
	listen_to(&b, "2", "{'resourceSubscriptions':['u']}");
	assert_false(mcp_resource_wanted(w.server, "u"));
	b.free_in_send = second;
	listen_to(&b, "3", "{'resourceSubscriptions':['u']}");
	w.peer = NULL;
	assert_false(mcp_resource_wanted(w.server, "u"));
	assert_int_equal(w.server->n_calls, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(test_legacy),
		IN_WORLD(test_legacy_bad),
		IN_WORLD(test_lists),
		IN_WORLD(test_listen),
		IN_WORLD(test_listen_canceled_by_id),
		IN_WORLD(test_listen_bad),
		IN_WORLD(test_gone_while_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
