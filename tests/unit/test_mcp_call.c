/* test_mcp_call.c - when calls end, also if their client disconnects or the server ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"
#include "base/limits.h"
#include "base/own.h"
#include "mcp_world.h"

#define HOLD_LEGACY "{'jsonrpc':'2.0','id':'h','method':'test/hold'}"
#define HOLD_MODERN "{'jsonrpc':'2.0','id':'h','method':'test/hold','params':{" MODERN "}}"
#define CANCEL      "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':'h'}}"

static void answered_later(void **state)
{
	world_begin("{}");
	world_say(HOLD_LEGACY);
	assert_int_equal(w.out.n_sent + w.out.n_ended, 0);
	assert_int_equal(w.server->n_calls, 1);
	/* the held call is not answered yet, but this request is */
	world_say("{'jsonrpc':'2.0','id':2,'method':'tools/list'}");
	world_expect(&w.out, "'id':2");
	mcp_done(w.held);
	world_expect(&w.out, "{'jsonrpc':'2.0','id':'h','result':{}}");
	assert_int_equal(w.out.n_ended, 2);
	assert_int_equal(w.server->n_calls, 0);
	world_say(CANCEL); /* too late */
	assert_int_equal(w.n_canceled, 0);
}

/* Another process writes the answer to a call into a buffer. The server's process reads it and
 * sends it as its own answer. */
static void answered_elsewhere(void **state)
{
	struct buf away;
	int p[2];
	char data[4096];

	world_begin("{}");
	world_say(HOLD_LEGACY);
	assert_int_equal(pipe(p), 0);
	pid_t pid = fork();
	if (pid == 0) {
		buf_init(&away, sizeof(data));
		mcp_call_away(w.held, &away);
		mcp_log(w.held, MCP_ALERT, NULL, "\"on the way\"");
		json_kstr(mcp_result(w.held), "from", "there");
		mcp_done(w.held);
		_exit(away.failed || write(p[1], away.data, away.len) != (ssize_t)away.len ||
		      w.out.n_sent != 0);
	}
	int status = 1;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	ssize_t len = read(p[0], data, sizeof(data));
	assert_true(len > 0);
	close(p[0]);
	close(p[1]);

	/* If such a buffer is cut, or one byte too long, it is refused, and nothing is sent. */
	for (size_t n = 0; n < (size_t)len; n++) {
		assert_int_equal(mcp_call_back(w.held, data, n), -1);
	}
	assert_int_equal(mcp_call_back(w.held, data, (size_t)len + 1), -1);
	assert_int_equal(w.out.n_sent, 0);
	assert_int_equal(mcp_call_back(w.held, data, (size_t)len), 0);
	assert_int_equal(w.out.n_sent, 2);
	assert_non_null(strstr(w.out.sent[0], "on the way"));
	world_expect(&w.out, "{'jsonrpc':'2.0','id':'h','result':{'from':'there'}}");
	assert_int_equal(w.out.n_ended, 1);
	assert_int_equal(w.server->n_calls, 0);
}

/* The client cancels a call, in both eras: the handler is notified once, the call ends once, and
 * its answer is not sent. */
static void canceled_by_id(void **state)
{
	static const char *const rows[] = { HOLD_LEGACY, HOLD_MODERN };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		world_begin("{}");
		world_say("%s", rows[i]);
		world_say(CANCEL);
		world_say(CANCEL);
		assert_int_equal(w.n_canceled, 1);
		assert_int_equal(w.out.n_ended, 1);
		assert_int_equal(w.server->n_calls, 1);
		mcp_progress(w.held, 1, 2, "not heard");
		mcp_log(w.held, MCP_ALERT, NULL, "1");
		assert_false(mcp_wants_progress(w.held));
		assert_string_equal(mcp_principal(w.held), "tester");
		(void)mcp_result(w.held);
		mcp_done(w.held);
		assert_int_equal(w.out.n_sent, 0);
		assert_int_equal(w.out.n_ended, 1);
		assert_int_equal(w.server->n_calls, 0);
	}
}

/* A handler may answer its call inside of the callback that reports the cancellation. */
static void answers_when_canceled(void **state)
{
	world_init();
	w.answers_on_cancel = true;
	world_initialize("{}");
	world_say(HOLD_LEGACY);
	world_say(CANCEL);
	assert_int_equal(w.server->n_calls, 0);
	world_say(HOLD_LEGACY);
	mcp_out_gone(w.peer, &w.out.out);
	assert_int_equal(w.server->n_calls, 0);
	world_say(HOLD_LEGACY);
	mcp_peer_free(steal_ptr(&w.peer));
	assert_int_equal(w.server->n_calls, 0);
	assert_int_equal(w.n_canceled, 3);
	assert_int_equal(w.out.n_sent, 0);
	assert_int_equal(w.out.n_ended, 2);
}

/* If each request of a peer has its own struct mcp_out (HTTP), several clients may use the same id.
 * Then notifications/cancelled cancels no call. A call is canceled only when its struct mcp_out
 * ends. */
static void modern_ids_are_of_one_out(void **state)
{
	struct world_out one;
	struct world_out two;

	world_init();
	world_out_init(&one);
	world_out_init(&two);
	world_say_to(w.peer, &one.out, HOLD_MODERN);
	struct mcp_call *first = w.held;
	world_say_to(w.peer, &two.out, HOLD_MODERN);
	assert_int_equal(w.n_handled, 2);
	world_say(CANCEL);
	assert_int_equal(w.n_canceled, 0);
	mcp_out_gone(w.peer, &one.out);
	assert_int_equal(w.n_canceled, 1);
	mcp_done(w.held);
	mcp_done(first);
	assert_int_equal(one.n_sent + one.n_ended, 0);
	assert_int_equal(two.n_sent, 1);
	assert_int_equal(two.n_ended, 1);
	world_out_done(&one);
	world_out_done(&two);
}

static void duplicates_are_refused(void **state)
{
	static const char *const rows[] = { HOLD_LEGACY, HOLD_MODERN };

	for (size_t i = 0; i < 4; i++) {
		world_begin("{}");
		world_say("%s", rows[i / 2]);
		world_say("%s", rows[i % 2]);
		world_expect(&w.out, "'id':'h','error':{'code':-32600");
		assert_int_equal(w.n_handled, 1);
		assert_int_equal(w.out.n_ended, 1);
		/* after the cancellation the id may be used again, although the canceled call is
		 * not answered */
		world_say(CANCEL);
		struct mcp_call *first = w.held;
		world_say("%s", rows[i % 2]);
		assert_int_equal(w.n_handled, 2);
		mcp_done(w.held);
		world_expect(&w.out, "'id':'h','result':");
		mcp_done(first);
	}
}

/* In a legacy session, an id must be unique even if each request has its own struct mcp_out. */
static void duplicates_of_a_session(void **state)
{
	struct world_out one;

	world_begin("{}");
	world_out_init(&one);
	world_say(HOLD_LEGACY);
	world_say_to(w.peer, &one.out, HOLD_LEGACY);
	world_expect(&one, "'code':-32600");
	mcp_done(w.held);
	world_say_to(w.peer, &one.out, HOLD_LEGACY);
	world_say(CANCEL);
	assert_int_equal(w.n_canceled, 1);
	mcp_done(w.held);
	world_out_done(&one);
}

static void calls_are_capped(void **state)
{
	struct mcp_call *held[MAX_MCP_CALLS];

	world_begin("{}");
	for (int i = 0; i < MAX_MCP_CALLS; i++) {
		world_say("{'jsonrpc':'2.0','id':%d,'method':'test/keep'}", i);
		held[i] = w.held;
	}
	assert_int_equal(w.server->n_calls, MAX_MCP_CALLS);
	assert_int_equal(w.out.n_sent, 0);
	world_say("{'jsonrpc':'2.0','id':'more','method':'tools/list'}");
	world_expect(&w.out, "'id':'more','error':{'code':-32603");
	/* A canceled call counts until it is answered, because its handler is still running. */
	world_say("{'jsonrpc':'2.0','method':'notifications/cancelled','params':{"
	          "'requestId':0}}");
	world_say("{'jsonrpc':'2.0','id':'more','method':'tools/list'}");
	world_expect(&w.out, "'id':'more','error':{'code':-32603");
	mcp_done(held[0]);
	world_say("{'jsonrpc':'2.0','id':'more','method':'tools/list'}");
	world_expect(&w.out, "'id':'more','result':");
	for (int i = 1; i < MAX_MCP_CALLS; i++) {
		mcp_done(held[i]);
	}
	assert_int_equal(w.server->n_calls, 0);
}

/* The size of all running requests of a client is limited. */
static void weight_is_capped(void **state)
{
	size_t fill = MAX_MCP_MESSAGE - 200;
	auto_free char *text = malloc(MAX_MCP_MESSAGE + 1);
	struct mcp_call *held[MAX_MCP_CALLS];
	int n = 0;

	assert_non_null(text);
	world_begin("{}");
	while (w.out.n_sent == 0 && n < MAX_MCP_CALLS) {
		int at = snprintf(text, MAX_MCP_MESSAGE,
		                  "{'jsonrpc':'2.0','id':%d,'method':'test/keep','params':{'x':'",
		                  n);
		memset(text + at, 'x', fill);
		(void)stpcpy(text + at + fill, "'}}");
		world_say("%s", text);
		held[n++] = w.held;
	}
	world_expect(&w.out,
	             "'code':-32603,'message':'the running requests together are too large'");
	assert_in_range(n, MAX_MCP_HELD / MAX_MCP_MESSAGE - 1, MAX_MCP_HELD / MAX_MCP_MESSAGE + 1);
	for (int i = 0; i < n - 1; i++) {
		mcp_done(held[i]);
	}
	world_forget(&w.out);
	world_say("%s", text);
	assert_int_equal(w.out.n_sent, 0);
	mcp_done(w.held);
}

#define MOST (MAX_MCP_HELD_ALL / MAX_MCP_MESSAGE + 80)

/* Many calls that are not answered yet, each from its own peer. */
struct many {
	struct mcp_peer *peers[MOST];
	struct mcp_call *calls[MOST];
	size_t n;
};

/* Adds a call with a message of `len` bytes. Returns false if it was refused. */
static bool hold_one(struct many *m, struct world_out *o, size_t len)
{
	static char text[MAX_MCP_MESSAGE + 1];
	size_t at = (size_t)snprintf(
	        text, 128, "{'jsonrpc':'2.0','id':1,'method':'test/keep','params':{'x':'");

	assert_in_range(m->n, 0, MOST - 1);
	memset(text + at, 'x', len - at);
	(void)stpcpy(text + len - 3, "'}}");
	assert_int_equal(mcp_peer_new(w.server, "p", NULL, &m->peers[m->n]), 0);
	m->peers[m->n]->version = MCP_LATEST_LEGACY;
	w.held = NULL;
	world_say_to(m->peers[m->n], &o->out, text);
	if (w.held == NULL) {
		mcp_peer_free(m->peers[m->n]);
		return false;
	}
	m->calls[m->n++] = w.held;
	return true;
}

static void let_go(struct many *m, size_t i)
{
	mcp_done(m->calls[i]);
	mcp_peer_free(m->peers[i]);
}

/* The size of the running requests of all peers is limited. Small requests are still accepted. */
static void weight_of_all_is_capped(void **state)
{
	static const char full[] =
	        "'code':-32603,'message':'the running requests together are too large'";
	size_t large = MAX_MCP_MESSAGE - 100;
	struct many m = { 0 };
	struct world_out o;

	world_init();
	world_out_init(&o);
	while (hold_one(&m, &o, large)) {
	}
	world_expect(&o, full);
	assert_in_range(m.n, MAX_MCP_HELD_ALL / MAX_MCP_MESSAGE - 1,
	                MAX_MCP_HELD_ALL / MAX_MCP_MESSAGE);
	while (hold_one(&m, &o, 2UL * MAX_MCP_SMALL)) {
	}
	world_expect(&o, full);
	for (int i = 0; i < 8; i++) {
		assert_true(hold_one(&m, &o, MAX_MCP_SMALL / 2));
	}
	assert_true(w.server->weight > MAX_MCP_HELD_ALL);
	let_go(&m, 0);
	assert_true(hold_one(&m, &o, large - MAX_MCP_MESSAGE / 4));
	for (size_t i = 1; i < m.n; i++) {
		let_go(&m, i);
	}
	assert_int_equal(w.server->weight, 0);
	world_out_done(&o);
}

/* If there is no memory for the answer, the client gets an error with the id of its request. */
static void no_memory_for_the_answer(void **state)
{
	world_begin("{}");
	world_say("{'jsonrpc':'2.0','id':'%0*d','method':'test/keep'}", MAX_MCP_ID, 7);
	(void)mcp_result(w.held);
	w.held->text.failed = true;
	mcp_call_respond(w.held, 200);
	world_expect(&w.out, "7','error':{'code':-32603,'message':'out of memory'}}");
	assert_int_equal(world_last_status(&w.out), 500);
}

/* The client disconnects. The handler goes on, but its answer is not sent. */
static void peer_gone_while_a_handler_works(void **state)
{
	world_begin("{'elicitation':{}}");
	world_say(HOLD_LEGACY);
	mcp_peer_free(steal_ptr(&w.peer));
	assert_int_equal(w.n_canceled, 1);
	assert_int_equal(w.out.n_ended, 1);
	assert_int_equal(w.server->n_calls, 1);
	assert_string_equal(mcp_principal(w.held), "tester");
	assert_string_equal(mcp_client_name(w.held), "tester");
	assert_true(mcp_can(w.held, MCP_CAN_ELICIT));
	mcp_fail(w.held, MCP_E_INTERNAL, "to nobody");
	assert_int_equal(w.out.n_sent, 0);
	assert_int_equal(w.server->n_calls, 0);
}

static void out_gone(void **state)
{
	world_begin("{}");
	world_say(HOLD_LEGACY);
	mcp_out_gone(w.peer, &w.out.out);
	mcp_out_gone(w.peer, &w.out.out);
	assert_int_equal(w.n_canceled, 1);
	mcp_done(w.held);
	assert_int_equal(w.out.n_sent + w.out.n_ended, 0);
}

/* The server is freed before a call is answered. The handler may still answer; nothing is sent. */
static void server_gone_while_a_handler_works(void **state)
{
	world_begin("{}");
	world_say(HOLD_MODERN);
	mcp_server_free(steal_ptr(&w.server)); /* also frees the peer */
	w.peer = NULL;
	assert_int_equal(w.n_canceled, 1);
	struct json *j = mcp_result(w.held);
	json_kstr(j, "x", "y");
	mcp_done(w.held);
	assert_int_equal(w.out.n_sent, 0);
}

/* If a handler sets its callback after the cancellation, the callback is called at once. */
static void told_at_once_where_it_has_been(void **state)
{
	world_begin("{}");
	world_say(HOLD_LEGACY);
	void (*fn)(void *arg) = w.held->on_cancel;
	mcp_on_cancel(w.held, NULL, NULL);
	world_say(CANCEL);
	assert_int_equal(w.n_canceled, 0);
	mcp_on_cancel(w.held, fn, &w);
	assert_int_equal(w.n_canceled, 1);
	mcp_done(w.held);
}

/* While the library sends a message, the transport may notice that the client has disconnected, or
 * may free the peer. */
static void gone_in_the_middle_of_an_answer(void **state)
{
	static const char *const rows[] = {
		"{'jsonrpc':'2.0','id':1,'method':'tools/list'}",
		"{'jsonrpc':'2.0','id':1,'method':'nothing'}",
		"{'jsonrpc':'2.0','id':1,'method':'test/tell','params':{'_meta':{"
		"'progressToken':1}}}",
		"{'jsonrpc':'2.0','id':1,'method':'tools/call'}", /* the handler asks a question */
	};

	for (size_t i = 0; i < ARRAY_LEN(rows) * 2; i++) {
		world_begin("{'elicitation':{}}");
		if (i % 2 == 0) {
			w.out.gone_in_send = w.peer;
		} else {
			w.out.free_in_send = w.peer;
		}
		struct mcp_peer *p = w.peer;
		w.peer = i % 2 == 0 ? w.peer : NULL;
		world_say_to(p, &w.out.out, rows[i / 2]);
		assert_int_equal(w.out.n_sent, 1);
		assert_int_equal(w.out.n_ended, i % 2);
		assert_int_equal(w.server->n_calls, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(answered_later),
		IN_WORLD(answered_elsewhere),
		IN_WORLD(canceled_by_id),
		IN_WORLD(answers_when_canceled),
		IN_WORLD(modern_ids_are_of_one_out),
		IN_WORLD(duplicates_are_refused),
		IN_WORLD(duplicates_of_a_session),
		IN_WORLD(calls_are_capped),
		IN_WORLD(weight_is_capped),
		IN_WORLD(weight_of_all_is_capped),
		IN_WORLD(no_memory_for_the_answer),
		IN_WORLD(peer_gone_while_a_handler_works),
		IN_WORLD(out_gone),
		IN_WORLD(server_gone_while_a_handler_works),
		IN_WORLD(told_at_once_where_it_has_been),
		IN_WORLD(gone_in_the_middle_of_an_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
