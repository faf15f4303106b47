/* test_mcp_bounds.c - bounds on what a client can make the protocol store or ask: at the cap, and
 * one above it. */
#include <stdio.h>
#include <string.h>

#include "unit.h"
#include "base/limits.h"
#include "base/own.h"
#include "mcp_world.h"

#define CAN "{'elicitation':{}}"

/* ---- questions ---- */

static void answer(size_t i)
{
	unsigned long long id = 0;

	assert_true(i < w.out.n_sent && w.out.kinds[i] == MCP_REQUEST);
	assert_int_equal(sscanf(w.out.sent[i], "{\"jsonrpc\":\"2.0\",\"id\":%llu,", &id), 1);
	world_say("{'jsonrpc':'2.0','id':%llu,'result':{'action':'accept'}}", id);
}

static void ask(size_t n, size_t each)
{
	world_begin(CAN);
	world_say("{'jsonrpc':'2.0','id':1,'method':'test/many','params':{'n':%zu,'each':%zu}}", n,
	          each);
}

static void expect_answers(size_t n)
{
	char want[32];

	(void)snprintf(want, sizeof(want), "'answers':%zu}", n);
	world_expect(&w.out, want);
	assert_int_equal(w.server->n_calls, 0);
}

/* If a handler asks one question more than a round may have, the last one is asked in the next
 * round. */
static void questions(void **state)
{
	for (size_t past = 0; past < 2; past++) {
		ask(MAX_MCP_ASKS + past, 100);
		assert_int_equal(w.out.n_sent, MAX_MCP_ASKS);
		for (size_t i = 0; i < MAX_MCP_ASKS; i++) {
			assert_int_equal(w.n_handled, 1);
			answer(i);
		}
		assert_int_equal(w.n_handled, 2);
		assert_int_equal(w.out.n_sent, MAX_MCP_ASKS + 1);
		if (past > 0) {
			answer(MAX_MCP_ASKS);
		}
		expect_answers(MAX_MCP_ASKS + past);
	}
}

static void rounds(void **state)
{
	for (size_t past = 0; past < 2; past++) {
		ask(MAX_MCP_ROUNDS + past, 1);
		for (size_t i = 0; i < MAX_MCP_ROUNDS; i++) {
			assert_int_equal(w.out.n_sent, i + 1);
			answer(i);
		}
		if (past == 0) {
			expect_answers(MAX_MCP_ROUNDS);
		} else {
			world_expect(&w.out, "'id':1,'error':{'code':-32603");
			assert_int_equal(w.server->n_calls, 0);
		}
	}
}

static void retry(const char *sealed, const char *responses)
{
	world_say("{'jsonrpc':'2.0','id':2,'method':'test/many','params':{'requestState':'%s',"
	          "'inputResponses':{%s},'n':%d,'each':100," MODERN_WITH(CAN) "}}",
	          sealed, responses, MAX_MCP_ASKS + 1);
}

static void modern_questions(void **state)
{
	char last[16];
	char answers[64];
	auto_buf all = BUF(4096);

	world_init();
	world_say("{'jsonrpc':'2.0','id':1,'method':'test/"
	          "many','params':{'n':%d,'each':100," MODERN_WITH(CAN) "}}",
	          MAX_MCP_ASKS + 1);
	(void)snprintf(last, sizeof(last), "\"k%d\":", MAX_MCP_ASKS - 1);
	assert_non_null(strstr(world_last(&w.out), last));
	(void)snprintf(last, sizeof(last), "\"k%d\":", MAX_MCP_ASKS);
	assert_null(strstr(world_last(&w.out), last));
	auto_free char *one = world_state(&w.out);
	/* one answer more than questions: the last question was not asked, so its answer does not
	 * count */
	for (int i = 0; i <= MAX_MCP_ASKS; i++) {
		buf_addf(&all, "%s'k%d':{'action':'accept'}", i > 0 ? "," : "", i);
	}
	retry(one, all.data);
	assert_non_null(strstr(world_last(&w.out), last));
	assert_null(strstr(world_last(&w.out), "\"k0\":"));
	auto_free char *two = world_state(&w.out);
	(void)snprintf(answers, sizeof(answers), "'k%d':{'action':'accept'}", MAX_MCP_ASKS);
	retry(two, answers);
	expect_answers(MAX_MCP_ASKS + 1);
}

/* ---- stored data of a client ---- */

static void initialize(const char *name, const char *extensions)
{
	world_init();
	world_say("{'jsonrpc':'2.0','id':0,'method':'initialize','params':{"
	          "'protocolVersion':'2025-11-25','capabilities':{'extensions':{%s}},"
	          "'clientInfo':{'name':'%s','version':'1'}}}",
	          extensions, name);
	world_say("{'jsonrpc':'2.0','method':'notifications/initialized'}");
	world_say("{'jsonrpc':'2.0','id':1,'method':'test/who'}");
}

static void fill(char *to, size_t n, const char *tail)
{
	memset(to, 'n', n);
	(void)stpcpy(to + n, tail);
}

/* A name that is too long is cut between two characters. */
static void names(void **state)
{
	static const struct {
		size_t fill;
		const char *tail;
		size_t kept;
	} rows[] = {
		{ MAX_MCP_CLIENT, "", MAX_MCP_CLIENT },
		{ MAX_MCP_CLIENT + 1, "", MAX_MCP_CLIENT },
		{ MAX_MCP_CLIENT - 2, "\u00e9", MAX_MCP_CLIENT },
		{ MAX_MCP_CLIENT - 1, "\u00e9", MAX_MCP_CLIENT - 1 },
		{ MAX_MCP_CLIENT - 3, "\U0001f600", MAX_MCP_CLIENT - 3 },
		{ 10000, "", MAX_MCP_CLIENT },
	};
	static char name[10016];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		fill(name, rows[i].fill, rows[i].tail);
		initialize(name, "");
		const char *at = strstr(world_last(&w.out), "\"client\":\"");
		assert_non_null(at);
		at += strlen("\"client\":\"");
		assert_int_equal(strcspn(at, "\""), rows[i].kept);
		assert_memory_equal(at, name, rows[i].kept);
	}
}

/* Extensions are stored up to a total size. The rest counts as not declared. */
static void extensions(void **state)
{
	static const char last[] = "com.example/x";
	static char text[3 * MAX_MCP_EXTENSIONS];
	static char name[2 * MAX_MCP_EXTENSIONS];

	for (size_t past = 0; past < 2; past++) {
		fill(name, MAX_MCP_EXTENSIONS - sizeof(last) - 1 + past, "");
		(void)snprintf(text, sizeof(text), "'%s':{},'%s':{}", name, last);
		initialize("c", text);
		world_expect(&w.out, past == 0 ? "'ext':true" : "'ext':false");
		world_done();

		/* If an extension is too large to be stored, a smaller one after it is still
		 * stored. */
		fill(name, MAX_MCP_EXTENSIONS - 1 + past, "");
		(void)snprintf(text, sizeof(text), "'%s':{},'%s':{}", name, last);
		initialize("c", text);
		world_expect(&w.out, past == 0 ? "'ext':false" : "'ext':true");
		world_done();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(questions), IN_WORLD(rounds),     IN_WORLD(modern_questions),
		IN_WORLD(names),     IN_WORLD(extensions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
