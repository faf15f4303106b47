/* test_mcp_tasks.c - tasks: calls that are answered at once with a task id; the client asks for the
 * result later. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"
#include "base/limits.h"
#include "base/own.h"
#include "mcp/task.h"
#include "mcp/tools.h"
#include "mcp_world.h"

#define KNOWS MODERN_WITH("{'extensions':{'io.modelcontextprotocol/tasks':{}},'elicitation':{}}")

/* The calls of the test's tool: those that it has not answered (newest last), and how many were
 * canceled. */
static struct {
	struct mcp_call *held[MAX_MCP_TASKS + 8];
	size_t n;
	size_t canceled;
	bool answers; /* if set, the tool answers a call when it is canceled */
} tool;

static void tool_canceled(void *arg)
{
	tool.canceled++;
	if (tool.answers) {
		mcp_done(arg);
	}
}

static void do_slow(struct mcp_call *c)
{
	tool.held[tool.n++] = c;
	mcp_on_cancel(c, tool_canceled, c);
}

/* Becomes a task, then asks two questions, and returns both answers. */
static void do_asking(struct mcp_call *c)
{
	const struct json_node *a = NULL;
	const struct json_node *b = NULL;

	assert_true(mcp_become_task(c, "begins"));
	if (mcp_answer(c, "a", &a) == MCP_UNASKED || mcp_answer(c, "b", &b) == MCP_UNASKED) {
		mcp_ask(c, "a", "elicitation/create", "{\"message\":\"A?\"}");
		mcp_ask(c, "b", "elicitation/create", "{\"message\":\"B?\"}");
		mcp_wait(c, "s");
		return;
	}
	struct json *j = mcp_result(c);
	json_kstr(j, "a", json_string(json_member(mcp_doc(c), a, "action"), "none"));
	json_kstr(j, "b", json_string(json_member(mcp_doc(c), b, "action"), "none"));
	json_kstr(j, "state", mcp_state(c));
	mcp_done(c);
}

static void do_call(void *app, struct mcp_call *c)
{
	(void)app;
	if (strcmp(mcp_arg_string(c, "x") != NULL ? mcp_arg_string(c, "x") : "", "ask") == 0) {
		do_asking(c);
	} else {
		do_slow(c);
	}
}

static void do_other(void *app, struct mcp_call *c)
{
	(void)app;
	do_slow(c);
}

static const struct mcp_method METHODS[] = {
	{ "tools/call", do_call, MCP_ASKS },
	{ "test/other", do_other, 0 },
};

static void begin(void)
{
	world_init();
	w.app.methods = METHODS;
	w.app.n_methods = ARRAY_LEN(METHODS);
	memset(&tool, 0, sizeof(tool));
}

static void call_tool(const char *meta, const char *x)
{
	world_say("{'jsonrpc':'2.0','id':'call','method':'tools/call','params':{%s,'name':'t',"
	          "'arguments':{'x':'%s'}}}",
	          meta, x);
}

/* Returns the id of the task in the last message. */
static void task_id(char id[33])
{
	const char *at = strstr(world_last(&w.out), "\"taskId\":\"");

	assert_non_null(at);
	at += strlen("\"taskId\":\"");
	assert_int_equal(strspn(at, "0123456789abcdef"), 32);
	(void)snprintf(id, 33, "%.32s", at);
}

static void ask_task(const char *verb, const char *id, const char *more)
{
	world_say("{'jsonrpc':'2.0','id':'%s','method':'tasks/%s','params':{%s,'taskId':'%s'%s}}",
	          verb, verb, KNOWS, id, more);
}

/* Sends tasks/get for the task and checks the answer. */
static void expect_task(const char *id, const char *text)
{
	ask_task("get", id, "");
	world_expect(&w.out, text);
}

/* Calls the tool, and makes the call a task. */
static void begin_task(char id[33])
{
	call_tool(KNOWS, "");
	assert_true(mcp_become_task(tool.held[tool.n - 1], "runs"));
	task_id(id);
}

static void test_created_and_completed(void **state)
{
	char id[33];
	char other[33];

	begin();
	call_tool(KNOWS, "");
	assert_int_equal(w.out.n_sent, 0);
	assert_true(mcp_become_task(tool.held[0], "still runs"));
	assert_int_equal(w.out.n_sent, 1);
	assert_int_equal(w.out.n_ended, 1);
	assert_int_equal(w.out.kinds[0], MCP_RESPONSE);
	world_expect(&w.out, "'id':'call','result':{'resultType':'task',");
	world_expect(&w.out, "'status':'working','statusMessage':'still runs','createdAt':'20");
	world_expect(&w.out, "'ttlMs':null,'pollIntervalMs':1000");
	task_id(id);
	assert_true(mcp_become_task(tool.held[0], "twice")); /* no second task is made */
	assert_int_equal(w.out.n_sent, 1);

	expect_task(id, "'resultType':'complete',");
	world_expect(&w.out, "'status':'working','statusMessage':'twice'");
	assert_null(strstr(world_last(&w.out), "\"result\":{}"));
	assert_true(mcp_wants_progress(tool.held[0]));
	mcp_progress(tool.held[0], 1, 2, "half");
	expect_task(id, "'statusMessage':'half'");

	/* The request is answered (with the task), so its id may be used again. */
	begin_task(other);
	assert_string_not_equal(id, other);

	mcp_tool_done(tool.held[0], "done", "{\"n\":1}", true);
	expect_task(id, "'status':'completed','createdAt'");
	world_expect(&w.out, "'structuredContent':{'n':1},'isError':true}}}");
	assert_null(strstr(world_last(&w.out), "\"ttlMs\":null"));
	expect_task(other, "'status':'working'");
	mcp_fail(tool.held[1], MCP_E_INTERNAL, "broke");
	expect_task(other, "'status':'failed','statusMessage':'broke'");
	world_expect(&w.out, "'error':{'code':-32603,'message':'broke'}}}");
	assert_int_equal(w.server->n_calls, 0);
}

static void test_only_where_it_may_be(void **state)
{
	begin();
	call_tool(MODERN, ""); /* this client does not declare tasks */
	assert_false(mcp_become_task(tool.held[0], NULL));
	world_say("{'jsonrpc':'2.0','id':2,'method':'test/other','params':{" KNOWS "}}");
	assert_false(mcp_become_task(tool.held[1], NULL));
	world_initialize("{'extensions':{'io.modelcontextprotocol/tasks':{}}}");
	world_say("{'jsonrpc':'2.0','id':3,'method':'tools/call','params':{'name':'t'}}");
	assert_false(mcp_become_task(tool.held[2], NULL)); /* the legacy era has no tasks */
	assert_int_equal(w.out.n_sent, 0);
	for (size_t i = 0; i < 3; i++) {
		mcp_done(tool.held[i]);
		assert_int_equal(w.out.n_sent, i + 1);
	}
	w.app.features &= ~(unsigned)MCP_TASKS;
	call_tool(KNOWS, "");
	assert_false(mcp_become_task(tool.held[3], NULL));
	mcp_done(tool.held[3]);
	ask_task("get", "x", "");
	world_expect(&w.out, "'code':-32601");
}

static void test_whose_it_is(void **state)
{
	static const char *const VERBS[] = { "get", "update", "cancel" };
	struct world_out o AUTO(world_out_done);
	struct mcp_peer *other = NULL;
	struct mcp_peer *same = NULL;
	char id[33];

	begin();
	world_out_init(&o);
	begin_task(id);
	assert_int_equal(mcp_peer_new(w.server, "other", NULL, &other), 0);
	assert_int_equal(mcp_peer_new(w.server, "tester", NULL, &same), 0);
	for (size_t i = 0; i < ARRAY_LEN(VERBS); i++) {
		auto_free char *text = NULL;
		assert_true(asprintf(&text,
		                     "{'jsonrpc':'2.0','id':1,'method':'tasks/%s','params':{" KNOWS
		                     ",'taskId':'%s','inputResponses':{}}}",
		                     VERBS[i], id) > 0);
		world_say_to(other, &o.out, text);
		world_expect(&o, "'code':-32602");
		ask_task(VERBS[i], "0123456789abcdef0123456789abcdef", "");
		world_expect(&w.out, "'code':-32602");
		world_say("{'jsonrpc':'2.0','id':1,'method':'tasks/%s','params':{%s,'taskId':7}}",
		          VERBS[i], KNOWS);
		world_expect(&w.out, "'code':-32602");
		world_say(
		        "{'jsonrpc':'2.0','id':1,'method':'tasks/%s','params':{%s,'taskId':'%s'}}",
		        VERBS[i], MODERN, id);
		world_expect(&w.out, "'code':-32021");
		world_expect(&w.out, "'data':{'requiredCapabilities':{'extensions':{"
		                     "'io.modelcontextprotocol/tasks':{}}}}");
	}
	assert_int_equal(tool.canceled, 0);
	/* The control: the client that owns the task gets its state, on another connection, too. */
	auto_free char *text = NULL;
	assert_true(asprintf(&text,
	                     "{'jsonrpc':'2.0','id':1,'method':'tasks/get','params':{" KNOWS
	                     ",'taskId':'%s'}}",
	                     id) > 0);
	world_say_to(same, &o.out, text);
	world_expect(&o, "'status':'working'");
	mcp_done(tool.held[0]);
	mcp_peer_free(other);
	mcp_peer_free(same);
}

static void test_cancel(void **state)
{
	char id[33];

	begin();
	begin_task(id);
	/* The request that became the task is answered, so the task cannot be canceled by the id of
	 * this request. */
	world_say("{'jsonrpc':'2.0','method':'notifications/cancelled','params':{"
	          "'requestId':'call'}}");
	mcp_out_gone(w.peer, &w.out.out);
	assert_int_equal(tool.canceled, 0);
	ask_task("cancel", id, "");
	world_expect(&w.out, "'id':'cancel','result':{'resultType':'complete'");
	assert_int_equal(tool.canceled, 1);
	expect_task(id, "'status':'cancelled','createdAt'");
	assert_int_equal(w.server->n_calls, 1);
	mcp_tool_done(tool.held[0], "too late", NULL, false);
	assert_int_equal(w.server->n_calls, 0);
	ask_task("cancel", id, ""); /* a second cancellation */
	world_expect(&w.out, "'id':'cancel','result':{'resultType':'complete'");
	expect_task(id, "'status':'cancelled'");
	assert_null(strstr(world_last(&w.out), "too late"));
	/* From here on, the tool answers when it is canceled. */
	tool.answers = true;
	begin_task(id);
	ask_task("cancel", id, "");
	world_expect(&w.out, "'id':'cancel','result':{'resultType':'complete'");
	assert_int_equal(w.server->n_calls, 0);
}

/* If a connection ends and another one of the same principal is open, the tasks continue. The other
 * calls of the connection are canceled. */
static void test_leave(void **state)
{
	struct world_out o AUTO(world_out_done);
	struct mcp_peer *heir = NULL;
	struct mcp_peer *old;
	char id[33];

	begin();
	world_out_init(&o);
	begin_task(id);
	call_tool(KNOWS, "slow"); /* this call is not a task */
	assert_int_equal(tool.n, 2);
	tool.answers = true;
	assert_int_equal(mcp_peer_new(w.server, "tester", NULL, &heir), 0);
	old = w.peer;
	w.peer = heir;
	mcp_out_gone(old, &w.out.out);
	mcp_peer_leave(old, heir);
	assert_int_equal(tool.canceled, 1);
	assert_int_equal(heir->n_calls, 1);
	expect_task(id, "'status':'working'");
	mcp_tool_done(tool.held[0], "late", NULL, false);
	expect_task(id, "'status':'completed'");
	begin_task(id); /* when the principal's last connection ends, the tasks end */
	mcp_peer_free(steal_ptr(&w.peer));
	assert_int_equal(tool.canceled, 2);
	assert_int_equal(w.server->n_calls, 0);
}

static void test_input(void **state)
{
	char id[33];

	begin();
	call_tool(KNOWS, "ask");
	world_expect(&w.out, "'resultType':'task'");
	task_id(id);
	expect_task(id, "'status':'input_required'");
	world_expect(&w.out, "'inputRequests':{'a':{'method':'elicitation/create','params':{"
	                     "'message':'A?'}},'b':{'method':'elicitation/create',");
	ask_task("update", id, "");
	world_expect(&w.out, "'code':-32602");
	ask_task("update", id, ",'inputResponses':{'c':{},'b':{'action':'accept'}}");
	world_expect(&w.out, "'id':'update','result':{'resultType':'complete'");
	expect_task(id, "'status':'input_required'");
	world_expect(&w.out, "'inputRequests':{'a':{'method'");
	assert_null(strstr(world_last(&w.out), "\"b\":{"));
	/* "b" was already answered, so this answer does not count. With the answer to "a", the call
	 * has both. */
	ask_task("update", id,
	         ",'inputResponses':{'b':{'action':'cancel'},'a':{'action':'decline'}}");
	world_expect(&w.out, "'id':'update','result':{'resultType':'complete'");
	expect_task(id, "'status':'completed'");
	world_expect(&w.out, "'a':'decline','b':'accept','state':'s'}");
	/* no question is open, so the answer is ignored */
	ask_task("update", id, ",'inputResponses':{'a':{}}");
	world_expect(&w.out, "'id':'update','result':{'resultType':'complete'");
	assert_int_equal(w.server->n_calls, 0);
	/* The task is canceled while it waits for an answer. */
	call_tool(KNOWS, "ask");
	task_id(id);
	ask_task("cancel", id, "");
	expect_task(id, "'status':'cancelled'");
	assert_int_equal(w.server->n_calls, 0);
	/* The client disconnects while its task waits for an answer: the call ends. */
	call_tool(KNOWS, "ask");
	mcp_peer_free(steal_ptr(&w.peer));
	assert_int_equal(w.server->n_calls, 0);
}

static void test_answers_that_are_none(void **state)
{
	static const char *const ANSWERS[] = { "null", "7", "'accept'", "[]" };
	char more[128];
	char id[33];

	begin();
	call_tool(KNOWS, "ask");
	task_id(id);
	for (size_t i = 0; i < ARRAY_LEN(ANSWERS); i++) {
		(void)snprintf(more, sizeof(more), ",'inputResponses':{'a':%s,'b':%s}", ANSWERS[i],
		               ANSWERS[i]);
		ask_task("update", id, more);
		expect_task(id, "'status':'input_required'");
		world_expect(&w.out, "'inputRequests':{'a':{");
	}
}

static void test_listened_to(void **state)
{
	struct world_out o AUTO(world_out_done);
	auto_free char *text = NULL;
	char id[33];

	begin();
	world_out_init(&o);
	begin_task(id);
	world_say("{'jsonrpc':'2.0','id':5,'method':'subscriptions/listen','params':{" MODERN
	          ",'notifications':{'taskIds':['%s']}}}",
	          id);
	world_expect(&w.out, "'code':-32021");
	/* The client is notified only of tasks that exist and that are its own. */
	assert_true(asprintf(&text,
	                     "{'jsonrpc':'2.0','id':5,'method':'subscriptions/listen','params':{%s,"
	                     "'notifications':{'taskIds':['%s','nobody']}}}",
	                     KNOWS, id) > 0);
	world_say_to(w.peer, &o.out, text);
	assert_non_null(strstr(world_last(&o), "/acknowledged\""));
	assert_non_null(strstr(world_last(&o), id));
	assert_null(strstr(world_last(&o), "nobody"));
	mcp_progress(tool.held[0], 1, 0, "first");
	assert_int_equal(o.n_sent, 2);
	/* not notified so soon after the first one; tasks/get would show it */
	mcp_progress(tool.held[0], 2, 0, "second");
	assert_int_equal(o.n_sent, 2);
	world_expect(&o, "'method':'notifications/tasks','params':{'_meta':{"
	                 "'io.modelcontextprotocol/subscriptionId':5},'taskId':'");
	world_expect(&o, "'status':'working','statusMessage':'first'");
	mcp_tool_done(tool.held[0], "done", NULL, false);
	assert_int_equal(o.n_sent, 3);
	world_expect(&o, "'status':'completed'");
	world_expect(&o, "'text':'done'");
	/* The subscription does not include another task. */
	begin_task(id);
	mcp_done(tool.held[1]);
	assert_int_equal(o.n_sent, 3);
}

static void test_gone_while_it_is_told(void **state)
{
	begin();
	tool.answers = true;
	call_tool(KNOWS, "");
	w.out.free_in_send = steal_ptr(&w.peer);
	assert_true(mcp_become_task(tool.held[0], NULL));
	assert_int_equal(tool.canceled, 1);
	assert_int_equal(w.server->n_calls, 0);
}

static void test_number_is_bounded(void **state)
{
	char oldest[33];
	char second[33];
	char id[33];

	begin();
	begin_task(oldest);
	mcp_done(tool.held[0]);
	begin_task(second);
	mcp_done(tool.held[1]);
	for (size_t i = 2; i < MAX_MCP_TASKS; i++) {
		begin_task(id);
	}
	expect_task(oldest, "'status':'completed'");
	/* When a client has the maximum of tasks, a new one replaces the oldest completed one. If
	 * none is completed, the call does not become a task. */
	begin_task(id);
	expect_task(oldest, "'code':-32602");
	expect_task(second, "'status':'completed'");
	begin_task(id);
	call_tool(KNOWS, "");
	world_forget(&w.out);
	assert_false(mcp_become_task(tool.held[tool.n - 1], NULL));
	assert_int_equal(w.out.n_sent, 0);
	mcp_done(tool.held[tool.n - 1]); /* so it is answered like an ordinary call */
	assert_int_equal(w.out.n_sent, 1);
	tool.answers = true;
	mcp_peer_free(steal_ptr(&w.peer));
	assert_int_equal(w.server->n_calls, 0);
	assert_int_equal(tool.canceled, MAX_MCP_TASKS);
}

static void test_bytes_are_bounded(void **state)
{
	size_t big = MAX_MCP_RESULT / 4;
	auto_free char *text = calloc(1, big + 1);
	char first[33];
	char id[33];

	begin();
	memset(text, 'x', big);
	begin_task(first);
	mcp_tool_done(tool.held[0], text, NULL, false);
	for (size_t bytes = 2 * (big + 256); bytes <= MAX_MCP_TASK_BYTES; bytes += big + 256) {
		begin_task(id);
		mcp_tool_done(tool.held[tool.n - 1], text, NULL, false);
	}
	expect_task(first, "'status':'completed'");
	begin_task(id);
	mcp_tool_done(tool.held[tool.n - 1], text, NULL, false);
	expect_task(first, "'code':-32602");
	expect_task(id, "'status':'completed'");
}

/* However many or large the results of one client are, the results of another client stay. */
static void each_keeps_its_own(size_t answers, size_t size)
{
	auto_free char *text = calloc(1, size + 1);
	struct mcp_peer *other = NULL;
	char others[33], first[33], id[33];

	begin();
	memset(text, 'x', size);
	assert_int_equal(mcp_peer_new(w.server, "other", NULL, &other), 0);
	struct mcp_peer *own = w.peer;
	w.peer = other;
	begin_task(others);
	mcp_done(tool.held[0]);
	w.peer = own;
	begin_task(first);
	mcp_tool_done(tool.held[tool.n - 1], text, NULL, false);
	for (size_t i = 0; i < answers; i++) {
		begin_task(id);
		mcp_tool_done(tool.held[--tool.n], text, NULL, false);
	}
	expect_task(first, "'code':-32602");
	w.peer = other;
	expect_task(others, "'status':'completed'");
	w.peer = own;
	mcp_peer_free(other);
}

static void test_each_client_has_a_share(void **state)
{
	each_keeps_its_own(MAX_MCP_TASKS, 16);
	each_keeps_its_own(12, MAX_MCP_RESULT / 4);
}

static void test_expires(void **state)
{
	char under_way[33];
	char id[33];

	begin();
	task_store_free(w.server->tasks);
	w.server->tasks = task_store_new(2500);
	begin_task(under_way);
	begin_task(id);
	mcp_done(tool.held[1]);
	expect_task(id, "'status':'completed'");
	(void)usleep(2600000);
	expect_task(id, "'code':-32602");
	expect_task(under_way, "'status':'working'");
	mcp_done(tool.held[0]);
}

static void test_message_is_bounded(void **state)
{
	char text[MAX_MCP_TASK_TEXT + 8];
	char id[33];

	begin();
	begin_task(id);
	/* Each character has two bytes, so the text must be cut one byte before the limit. */
	text[0] = 'x';
	for (size_t i = 1; i + 2 < sizeof(text); i += 2) {
		memcpy(text + i, "\xc3\xa9", 3);
	}
	mcp_progress(tool.held[0], 1, 0, text);
	ask_task("get", id, "");
	const char *at = strstr(world_last(&w.out), "\"statusMessage\":\"x");
	assert_non_null(at);
	at += strlen("\"statusMessage\":\"");
	assert_int_equal(strchr(at, '"') - at, MAX_MCP_TASK_TEXT - 1);
	assert_null(strstr(world_last(&w.out), "udc"));
	mcp_done(tool.held[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(test_created_and_completed),
		IN_WORLD(test_only_where_it_may_be),
		IN_WORLD(test_whose_it_is),
		IN_WORLD(test_cancel),
		IN_WORLD(test_leave),
		IN_WORLD(test_input),
		IN_WORLD(test_answers_that_are_none),
		IN_WORLD(test_listened_to),
		IN_WORLD(test_gone_while_it_is_told),
		IN_WORLD(test_number_is_bounded),
		IN_WORLD(test_bytes_are_bounded),
		IN_WORLD(test_each_client_has_a_share),
		IN_WORLD(test_expires),
		IN_WORLD(test_message_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
