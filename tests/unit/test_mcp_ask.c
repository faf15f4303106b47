/* test_mcp_ask.c - questions to the client in both eras: the same handlers must get the same
 * answers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "base/limits.h"
#include "base/own.h"
#include "mcp_world.h"

#define CAN "{'elicitation':{}}"

/* ---- legacy ---- */

static uint64_t asked_id(const struct world_out *o, size_t i)
{
	unsigned long long id = 0;

	assert_true(i < o->n_sent && o->kinds[i] == MCP_REQUEST);
	assert_int_equal(sscanf(o->sent[i], "{\"jsonrpc\":\"2.0\",\"id\":%llu,", &id), 1);
	return id;
}

static void answer(uint64_t id, const char *result)
{
	world_say("{'jsonrpc':'2.0','id':%llu,%s}", (unsigned long long)id, result);
}

static void legacy_one(void **state)
{
	world_begin(CAN);
	world_say("{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'n'}}");
	assert_int_equal(w.out.n_sent, 1);
	world_expect(&w.out, "'method':'elicitation/create','params':{'message':'?'");
	/* the id of this answer is not the id of a question */
	answer(asked_id(&w.out, 0) + 1, "'result':{'action':'accept'}");
	assert_int_equal(w.n_handled, 1);
	answer(asked_id(&w.out, 0), "'result':{'action':'accept','content':{'a':[1,{}]}}");
	assert_int_equal(w.n_handled, 2);
	world_expect(&w.out, "'id':1,'result':{'state':'one','first':'accept','second':'none',"
	                     "'a':1,'b':0,'name':'n'}");
	answer(asked_id(&w.out, 0), "'result':{'action':'accept'}"); /* a second answer */
	assert_int_equal(w.n_handled, 2);
	assert_int_equal(w.out.n_ended, 1);
}

static void legacy_rounds(void **state)
{
	world_begin(CAN);
	world_say("{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'twice':1}}");
	answer(asked_id(&w.out, 0), "'result':{'action':'decline'}");
	assert_int_equal(w.out.n_sent, 2);
	answer(asked_id(&w.out, 1), "'result':{'action':'cancel'}");
	world_expect(&w.out, "'state':'two','first':'decline','second':'cancel'");
	assert_int_equal(w.n_handled, 3);
}

/* The handler needs both answers. They may come in any order, and only the first answer to each
 * counts. */
static void legacy_both(void **state)
{
	world_begin(CAN);
	world_say("{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'both':1}}");
	assert_int_equal(w.out.n_sent, 2);
	answer(asked_id(&w.out, 1), "'result':{'action':'b'}");
	answer(asked_id(&w.out, 1), "'result':{'action':'c'}");
	assert_int_equal(w.n_handled, 1);
	answer(asked_id(&w.out, 0), "'result':{'action':'a'}");
	world_expect(&w.out, "'first':'a','second':'b'");
}

static void legacy_refused(void **state)
{
	static const char *const rows[] = { "'error':{'code':-1,'message':'no'}", "'result':7" };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		world_begin(CAN);
		world_say("{'jsonrpc':'2.0','id':1,'method':'tools/call'}");
		answer(asked_id(&w.out, 0), rows[i]);
		world_expect(&w.out, "'first':'none','second':'none','a':2");
	}
}

/* An answer that is too long counts as a refusal. */
static void legacy_answers_are_capped(void **state)
{
	for (size_t past = 0; past < 2; past++) {
		size_t fill = MAX_MCP_ANSWERS - strlen("{\"action\":\"\"}") + past;
		auto_free char *text = malloc(MAX_MCP_ANSWERS + 64);
		assert_non_null(text);
		char *at = stpcpy(text, "'result':{'action':'");
		memset(at, 'a', fill);
		(void)stpcpy(at + fill, "'}");
		world_begin(CAN);
		world_say("{'jsonrpc':'2.0','id':1,'method':'tools/call'}");
		answer(asked_id(&w.out, 0), text);
		world_expect(&w.out, past == 0 ? "'first':'aaaa" : "'first':'none'");
		world_expect(&w.out, past == 0 ? "'a':1" : "'a':2");
	}
}

/* A client without the capability gets no question: the handler is told that the client refused. */
static void legacy_unable(void **state)
{
	world_begin("{}");
	world_say("{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'twice':1}}");
	assert_int_equal(w.out.n_sent, 1);
	world_expect(&w.out, "'state':'two','first':'none','second':'none','a':2,'b':2");
}

/* A question that is too long counts as refused, because it would never be answered. */
static void legacy_too_long_to_ask(void **state)
{
	world_begin(CAN);
	world_say("{'jsonrpc':'2.0','id':1,'method':'test/much'}");
	assert_int_equal(w.out.n_sent, 1);
	world_expect(&w.out, "'result':{'much':2}"); /* MCP_REFUSED */
	assert_int_equal(w.server->n_calls, 0);
}

/* A handler that asks again and again is stopped after MAX_MCP_ROUNDS rounds. */
static void rounds_are_capped(void **state)
{
	world_begin("{}");
	world_say("{'jsonrpc':'2.0','id':1,'method':'test/nag'}");
	world_expect(&w.out, "'code':-32603");
	assert_int_equal(w.n_handled, MAX_MCP_ROUNDS + 1);
	assert_int_equal(w.server->n_calls, 0);
}

static void legacy_canceled_while_it_waits(void **state)
{
	world_begin(CAN);
	world_say("{'jsonrpc':'2.0','id':1,'method':'tools/call'}");
	uint64_t id = asked_id(&w.out, 0);
	world_say("{'jsonrpc':'2.0','method':'notifications/cancelled','params':{"
	          "'requestId':1}}");
	assert_int_equal(w.out.n_sent, 2); /* the second message cancels the server's question */
	world_expect(&w.out, "'method':'notifications/cancelled','params':{'requestId':");
	assert_int_equal(w.out.n_ended, 1);
	assert_int_equal(w.server->n_calls, 0);
	answer(id, "'result':{'action':'accept'}");
	assert_int_equal(w.n_handled, 1);

	world_say("{'jsonrpc':'2.0','id':1,'method':'tools/call'}");
	mcp_out_gone(w.peer, &w.out.out);
	assert_int_equal(w.server->n_calls, 0);
	assert_int_equal(w.out.n_sent, 3);

	world_say("{'jsonrpc':'2.0','id':1,'method':'tools/call'}");
	mcp_peer_free(steal_ptr(&w.peer));
	assert_int_equal(w.server->n_calls, 0);
	assert_int_equal(w.out.n_sent, 4);
}

/* An answer from another client does not count. */
static void legacy_answers_of_another(void **state)
{
	struct mcp_peer *other = NULL;
	char text[128];

	world_begin(CAN);
	world_say("{'jsonrpc':'2.0','id':1,'method':'tools/call'}");
	uint64_t id = asked_id(&w.out, 0);
	assert_int_equal(mcp_peer_new(w.server, "other", NULL, &other), 0);
	(void)snprintf(text, sizeof(text), "{'jsonrpc':'2.0','id':%llu,'result':{'action':'x'}}",
	               (unsigned long long)id);
	world_say_to(other, NULL, text);
	(void)snprintf(text, sizeof(text), "{'jsonrpc':'2.0','id':'%llu','result':{'action':'x'}}",
	               (unsigned long long)id);
	world_say("%s", text);
	assert_int_equal(w.n_handled, 1);
	mcp_peer_free(other);
	answer(id, "'result':{'action':'accept'}");
	assert_int_equal(w.n_handled, 2);
}

/* ---- modern ---- */

static void call(const char *method, const char *params)
{
	world_say("{'jsonrpc':'2.0','id':1,'method':'%s','params':{" MODERN_WITH(CAN) "%s}}",
	          method, params);
}

static void retry(const char *params, const char *responses, const char *sealed)
{
	world_say("{'jsonrpc':'2.0','id':2,'method':'tools/call','params':{"
	          "'requestState':'%s','inputResponses':%s," MODERN_WITH(CAN) "%s}}",
	          sealed, responses, params);
}

/* A refused question is stored without an answer. So the sealed state does not contain it, and in
 * the next round it counts as not asked. */
static void modern_refused_is_not_sealed(void **state)
{
	world_init();
	call("test/later", ",'name':'n'");
	struct mcp_call *c = w.held;
	assert_int_equal(mcp_call_keep_answer(c, "second", NULL, NULL), 0);
	mcp_ask(c, "first", "elicitation/create", "{}");
	mcp_wait(c, "one");
	auto_free char *sealed = world_state(&w.out);
	world_say("{'jsonrpc':'2.0','id':2,'method':'test/later','params':{'name':'n',"
	          "'requestState':'%s','inputResponses':{'first':{'action':'accept'}}," MODERN_WITH(
	                  CAN) "}}",
	          sealed);
	const struct json_node *answer = NULL;
	assert_int_equal(mcp_answer(w.held, "first", &answer), MCP_ANSWERED);
	assert_int_equal(mcp_answer(w.held, "second", &answer), MCP_UNASKED);
	mcp_done(w.held);
}

static void modern_one(void **state)
{
	world_init();
	call("tools/call", ",'name':'n'");
	world_expect(&w.out, "'id':1,'result':{'resultType':'input_required','_meta':");
	world_expect(&w.out, "'inputRequests':{'first':{'method':'elicitation/create','params':{");
	assert_int_equal(w.out.n_ended, 1);
	assert_int_equal(w.server->n_calls, 0);
	auto_free char *sealed = world_state(&w.out);
	retry(",'name':'n'", "{'first':{'action':'accept'},'other':{'action':'x'}}", sealed);
	world_expect(&w.out, "'resultType':'complete'");
	world_expect(&w.out,
	             "'state':'one','first':'accept','second':'none','a':1,'b':0,'name':'n'");

	/* a state is valid only once */
	retry(",'name':'n'", "{'first':{'action':'accept'}}", sealed);
	world_expect(&w.out, "'code':-32602,'message':'requestState ");
	assert_int_equal(world_last_status(&w.out), 200);
	assert_int_equal(w.n_handled, 2);
}

static void modern_rounds(void **state)
{
	world_init();
	call("tools/call", ",'twice':1");
	auto_free char *one = world_state(&w.out);
	/* The answer to a question that was not asked yet does not count. */
	retry(",'twice':1", "{'first':{'action':'a'},'second':{'action':'early'}}", one);
	world_expect(&w.out, "'inputRequests':{'second':");
	auto_free char *two = world_state(&w.out);
	retry(",'twice':1", "{'first':{'action':'changed'},'second':{'action':'b'}}", two);
	world_expect(&w.out, "'state':'two','first':'a','second':'b','a':1,'b':1");
}

/* If an answer is missing or is not an object, the question is asked again. */
static void modern_missing(void **state)
{
	static const char *const rows[] = { "{}", "{'other':{}}", "{'first':7}", "{'first':null}" };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		world_init();
		call("tools/call", "");
		auto_free char *one = world_state(&w.out);
		retry("", rows[i], one);
		world_expect(&w.out, "'resultType':'input_required'");
		world_expect(&w.out, "'inputRequests':{'first':");
	}
}

static void modern_bound(void **state)
{
	struct mcp_peer *other = NULL;
	char text[4096];

	world_init();
	call("tools/call", ",'name':'n'");
	auto_free char *sealed = world_state(&w.out);
	retry(",'name':'m'", "{'first':{'action':'accept'}}", sealed);
	world_expect(&w.out, "'code':-32602,'message':'requestState ");
	retry(",'name':'n','more':1", "{}", sealed);
	world_expect(&w.out, "'code':-32602,'message':'requestState ");
	(void)snprintf(text, sizeof(text), ",'name':'n','requestState':'%s'", sealed);
	call("prompts/get", text);
	world_expect(&w.out, "'code':-32602,'message':'requestState ");
	(void)snprintf(text, sizeof(text), "%s00", sealed);
	retry(",'name':'n'", "{}", text);
	world_expect(&w.out, "'code':-32602,'message':'requestState ");
	retry(",'name':'n'", "{}", "");
	world_expect(&w.out, "'code':-32602,'message':'requestState ");
	call("tools/call", ",'name':'n','requestState':7");
	world_expect(&w.out, "'code':-32602,'message':'requestState ");

	assert_int_equal(mcp_peer_new(w.server, "other", NULL, &other), 0);
	(void)snprintf(text, sizeof(text),
	               "{'jsonrpc':'2.0','id':2,'method':'tools/call','params':{"
	               "'requestState':'%s','inputResponses':{'first':{'action':'accept'}},"
	               "'name':'n'," MODERN_WITH(CAN) "}}",
	               sealed);
	world_say_to(other, &w.out.out, text);
	world_expect(&w.out, "'code':-32602,'message':'requestState ");
	mcp_peer_free(other);
	assert_int_equal(w.n_handled, 1);
	/* the state was not used up */
	retry(",'name':'n'", "{'first':{'action':'accept'}}", sealed);
	world_expect(&w.out, "'first':'accept'");
}

static void modern_unable(void **state)
{
	world_init();
	world_say("{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{" MODERN "}}");
	world_expect(&w.out, "'code':-32021,");
	world_expect(&w.out, "'data':{'requiredCapabilities':{'elicitation':{}}}");
	assert_int_equal(world_last_status(&w.out), 400);
}

static void modern_without_state(void **state)
{
	world_init();
	call("tools/call", ",'inputResponses':{'first':{'action':'accept'}}");
	world_expect(&w.out, "'resultType':'input_required'");
	call("tools/call", ",'inputResponses':null");
	world_expect(&w.out, "'code':-32602");
	call("prompts/get", ",'inputResponses':{'first':{'action':'accept'},'x':{},'y':7}");
	world_expect(&w.out, "'resultType':'input_required'");
}

/* If the answers are too large for the state, the request fails. */
static void modern_too_much(void **state)
{
	auto_free char *text = malloc(MAX_MCP_STATE * 2 + 64);

	assert_non_null(text);
	world_init();
	call("tools/call", ",'twice':1");
	auto_free char *one = world_state(&w.out);
	char *at = stpcpy(text, "{'first':{'action':'");
	memset(at, 'a', (size_t)MAX_MCP_STATE * 2);
	(void)stpcpy(at + (size_t)MAX_MCP_STATE * 2, "'}}");
	retry(",'twice':1", text, one);
	world_expect(&w.out, "'code':-32603");
}

/* A call that was canceled asks a question: the question is not sent. */
static void asks_when_canceled(void **state)
{
	world_begin(CAN);
	world_say("{'jsonrpc':'2.0','id':1,'method':'test/later'}");
	world_say("{'jsonrpc':'2.0','method':'notifications/cancelled','params':{"
	          "'requestId':1}}");
	mcp_ask(w.held, "k", "elicitation/create", "{}");
	mcp_wait(w.held, NULL);
	assert_int_equal(w.out.n_sent, 0);
	assert_int_equal(w.server->n_calls, 0);

	/* A handler may ask later, after it has returned. */
	world_say("{'jsonrpc':'2.0','id':1,'method':'test/later'}");
	mcp_ask(w.held, "k", "elicitation/create", "{}");
	mcp_wait(w.held, NULL);
	answer(asked_id(&w.out, 0), "'result':{}");
	assert_int_equal(w.n_handled, 3);
	mcp_done(w.held);
	world_expect(&w.out, "{'jsonrpc':'2.0','id':1,'result':{}}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(legacy_one),
		IN_WORLD(legacy_rounds),
		IN_WORLD(legacy_both),
		IN_WORLD(legacy_refused),
		IN_WORLD(legacy_answers_are_capped),
		IN_WORLD(legacy_unable),
		IN_WORLD(legacy_too_long_to_ask),
		IN_WORLD(modern_refused_is_not_sealed),
		IN_WORLD(rounds_are_capped),
		IN_WORLD(legacy_canceled_while_it_waits),
		IN_WORLD(legacy_answers_of_another),
		IN_WORLD(modern_one),
		IN_WORLD(modern_rounds),
		IN_WORLD(modern_missing),
		IN_WORLD(modern_bound),
		IN_WORLD(modern_unable),
		IN_WORLD(modern_without_state),
		IN_WORLD(modern_too_much),
		IN_WORLD(asks_when_canceled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
