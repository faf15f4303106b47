/* test_mcp_tools.c - the table of tools: their descriptions, the checks of their arguments, their
 * results. */
#include <stdio.h>
#include <string.h>

#include "unit.h"
#include "base/limits.h"
#include "base/own.h"
#include "mcp/tools.h"
#include "mcp_world.h"

static const char *const MODES[] = { "fast", "careful", NULL };

static const struct mcp_field FIELDS[] = {
	{ .name = "skill",
	  .type = MCP_STRING,
	  .required = true,
	  .description = "Which",
	  .min = 1,
	  .max = 8 },
	{ .name = "seconds",
	  .type = MCP_INTEGER,
	  .description = "How long",
	  .min = 1,
	  .max = 60,
	  .otherwise = "30" },
	{ .name = "offset", .type = MCP_INTEGER, .description = "From", .min = -5 },
	{ .name = "mode",
	  .type = MCP_STRING,
	  .description = "How",
	  .choices = MODES,
	  .otherwise = "\"fast\"" },
	{ .name = "quiet", .type = MCP_BOOLEAN, .description = "Or not", .otherwise = "true" },
	{ .name = "args", .type = MCP_STRINGS, .description = "More", .max = 3, .otherwise = "[]" },
	{ .name = "modes", .type = MCP_STRINGS, .description = "Some", .choices = MODES },
};

static size_t handled;

/* A tool that returns the arguments that it got. */
static void do_echo(void *app, struct mcp_call *c)
{
	char text[256];
	const struct json_node *args = mcp_arg(c, "args");
	const struct json_node *first = json_first(mcp_doc(c), args);

	(void)app;
	handled++;
	(void)snprintf(text, sizeof(text), "{\"got\":\"%s %lld %lld %s %d %d %zu %s\",\"none\":%d}",
	               mcp_arg_string(c, "skill"), (long long)mcp_arg_integer(c, "seconds", -1),
	               (long long)mcp_arg_integer(c, "offset", 77), mcp_arg_string(c, "mode"),
	               mcp_arg_boolean(c, "quiet", false), mcp_arg_boolean(c, "other", true),
	               args->n, json_string(first, "-"), mcp_arg_string(c, "other") == NULL);
	mcp_tool_done(c, NULL, text, false);
}

static void do_fail_tool(void *app, struct mcp_call *c)
{
	(void)app;
	mcp_tool_fail(c, "not_found", "there is \"none\"\n", "make one");
}

static void do_bare(void *app, struct mcp_call *c)
{
	(void)app;
	mcp_tool_done(c, mcp_arg(c, "anything") != NULL ? "with" : "without", NULL, false);
}

static const struct mcp_tool TOOLS[] = {
	{ .name = "echo",
	  .title = "Say it",
	  .description = "Says what it got",
	  .fields = FIELDS,
	  .n_fields = ARRAY_LEN(FIELDS),
	  .output_schema = "{\"type\":\"object\",\"properties\":{\"got\":{\"type\":\"string\"}},"
	                   "\"required\":[\"got\"]}",
	  .hints = MCP_READ_ONLY | MCP_IDEMPOTENT,
	  .handle = do_echo },
	{ .name = "fail",
	  .description = "Fails",
	  .hints = MCP_DESTRUCTIVE,
	  .handle = do_fail_tool },
	{ .name = "bare",
	  .description = "Unchecked",
	  .input_schema = "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\","
	                  "\"type\":\"object\"}",
	  .hints = MCP_OPEN_WORLD,
	  .handle = do_bare },
};
static const struct mcp_tools ALL = { TOOLS, ARRAY_LEN(TOOLS) };

static void do_list(void *app, struct mcp_call *c)
{
	(void)app;
	mcp_tools_list(&ALL, c);
}

static void do_call(void *app, struct mcp_call *c)
{
	mcp_tools_call(&ALL, app, c);
}

static const struct mcp_method METHODS[] = {
	{ "tools/list", do_list, MCP_CACHED },
	{ "tools/call", do_call, 0 },
};

static void begin(void)
{
	world_init();
	w.app.methods = METHODS;
	w.app.n_methods = ARRAY_LEN(METHODS);
	world_initialize("{}");
	handled = 0;
}

static void call(const char *tool, const char *arguments)
{
	world_say("{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'%s',"
	          "'arguments':%s}}",
	          tool, arguments);
}

static void test_list(void **state)
{
	begin();
	world_say("{'jsonrpc':'2.0','id':1,'method':'tools/list'}");
	world_expect(
	        &w.out,
	        "{'tools':[{'name':'echo','title':'Say it','description':'Says what it got',"
	        "'inputSchema':{'type':'object','properties':{"
	        "'skill':{'type':'string','description':'Which','minLength':1,'maxLength':8},"
	        "'seconds':{'type':'integer','description':'How long','minimum':1,'maximum':60,"
	        "'default':30},"
	        "'offset':{'type':'integer','description':'From','minimum':-5},"
	        "'mode':{'type':'string','description':'How','enum':['fast','careful'],"
	        "'default':'fast'},"
	        "'quiet':{'type':'boolean','description':'Or not','default':true},"
	        "'args':{'type':'array','description':'More','items':{'type':'string'},"
	        "'maxItems':3,'default':[]},"
	        "'modes':{'type':'array','description':'Some','items':{'type':'string','enum':"
	        "['fast','careful']}}},"
	        "'required':['skill'],'additionalProperties':false},"
	        "'outputSchema':{'type':'object','anyOf':[{'type':'object','properties':{'got':"
	        "{'type':'string'}},'required':['got']},{'type':'object','properties':{'error':");
	world_expect(&w.out, "'annotations':{'readOnlyHint':true,'destructiveHint':false,"
	                     "'idempotentHint':true,'openWorldHint':false}},"
	                     "{'name':'fail','description':'Fails','inputSchema':{'type':'object',"
	                     "'properties':{},'additionalProperties':false},'annotations':{"
	                     "'readOnlyHint':false,'destructiveHint':true,");
	world_expect(&w.out, "'inputSchema':{'$schema':'https://json-schema.org/draft/2020-12/"
	                     "schema','type':'object'},");
	auto_free char *first = strdup(world_last(&w.out));
	world_say("{'jsonrpc':'2.0','id':1,'method':'tools/list','params':{}}");
	assert_string_equal(world_last(&w.out), first);
	world_say("{'jsonrpc':'2.0','id':1,'method':'tools/list','params':{'cursor':'x'}}");
	world_expect(&w.out, "'code':-32602");
}

static void test_good_arguments(void **state)
{
	static const char *const ROWS[][2] = {
		{ "{'skill':'a'}", "a 30 77 fast 1 1 0 -" },
		{ "{'skill':'12345678','seconds':60,'offset':-5}", "12345678 60 -5 fast 1 1 0 -" },
		{ "{'skill':'a','seconds':1.0,'quiet':false}", "a 1 77 fast 0 1 0 -" },
		{ "{'skill':'a','mode':'careful','args':['x','y','z']}",
		  "a 30 77 careful 1 1 3 x" },
		{ "{'skill':'\\u00e9\\u00e9\\u00e9\\u00e9'}",
		  "\u00e9\u00e9\u00e9\u00e9 30 77 fast 1 1 0 -" },
	};

	begin();
	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		char want[256];
		call("echo", ROWS[i][0]);
		(void)snprintf(want, sizeof(want),
		               "'structuredContent':{'got':'%s','none':1},'isError':false",
		               ROWS[i][1]);
		world_expect(&w.out, want);
		world_expect(&w.out, "'content':[{'type':'text','text':'{\\'got\\':");
	}
	assert_int_equal(handled, ARRAY_LEN(ROWS));
}

static void test_bad_arguments(void **state)
{
	static const char *const ROWS[][3] = {
		{ "{}", "'skill' is missing", "write skill as a string of 1 to 8 bytes" },
		{ "{'skill':''}", "'skill' has 0 bytes", "write skill as a string of 1 to 8" },
		{ "{'skill':'123456789'}", "'skill' has 9 bytes", "of 1 to 8 bytes" },
		{ "{'skill':'\\u00e9\\u00e9\\u00e9\\u00e9x'}", "'skill' has 9 bytes", "8 bytes" },
		{ "{'skill':'a\\u0000b'}", "'skill' is not valid text", "without NUL" },
		{ "{'skill':'a\\udc80b'}", "'skill' is not valid text", "lone surrogates" },
		{ "{'skill':5}", "'skill' is a number", "write skill as a string" },
		{ "{'skill':null}", "'skill' is null", "write skill as a string" },
		{ "{'skill':'a','seconds':'5'}", "'seconds' is a string",
		  "write seconds as an integer of 1 to 60, without quotes around it" },
		{ "{'skill':'a','seconds':null}", "'seconds' is null", "or leave it out" },
		{ "{'skill':'a','seconds':0}", "'seconds' is 0", "an integer of 1 to 60" },
		{ "{'skill':'a','seconds':61}", "'seconds' is 61", "an integer of 1 to 60" },
		{ "{'skill':'a','seconds':1.5}", "'seconds' is not an integer", "an integer of" },
		{ "{'skill':'a','seconds':1e1}", "'seconds' is not an integer", "an integer of" },
		{ "{'skill':'a','offset':-6}", "'offset' is -6", "an integer of at least -5" },
		{ "{'skill':'a','offset':9007199254740992}", "too large", "at least -5" },
		{ "{'skill':'a','offset':99999999999999999999}", "too large", "at least -5" },
		{ "{'skill':'a','quiet':1}", "'quiet' is a number", "quiet as true or false" },
		{ "{'skill':'a','mode':'carefull'}", "'mode' is not one of the choices",
		  "write mode as one of \\\"fast\\\", \\\"careful\\\"; did you mean "
		  "\\\"careful\\\"?" },
		{ "{'skill':'a','args':'x'}", "'args' is a string", "an array of strings" },
		{ "{'skill':'a','args':['a','b','c','d']}", "'args' has 4 items", "0 to 3 items" },
		{ "{'skill':'a','args':['a',{}]}", "'args' has item 1, which is an object",
		  "write args as an array of strings" },
		{ "{'skill':'a','args':['a\\u0000']}", "item 0, which is not valid text", "array" },
		{ "{'skill':'a','modes':['fast','carefull','x']}",
		  "'modes' has item 1, which is not one of the choices",
		  "write modes as an array of strings, each one of \\\"fast\\\", \\\"careful\\\"; "
		  "did you mean \\\"careful\\\"?" },
		{ "{'skil':'a'}", "'skil' is not an argument of this tool", "did you mean skill?" },
		{ "{'skill':'a','wholly_other':1}", "'wholly_other' is not an argument",
		  "leave it out: echo takes skill, seconds, offset, mode, quiet, args, modes" },
		{ "{'skill':'a','\\u001b[31m\\u202e':1}", "'?[31m?\?\?' is not an argument",
		  "leave" },
	};

	begin();
	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		call("echo", ROWS[i][0]);
		world_expect(&w.out, "'structuredContent':{'error':{'code':'invalid_arguments',");
		world_expect(&w.out, "'isError':true");
		for (size_t k = 1; k < 3; k++) {
			if (strstr(world_last(&w.out), ROWS[i][k]) == NULL) {
				fail_msg("%s: no %s in %s", ROWS[i][0], ROWS[i][k],
				         world_last(&w.out));
			}
		}
	}
	assert_int_equal(handled, 0);
}

static void test_every_problem_is_told(void **state)
{
	auto_buf many;

	begin();
	call("echo", "{'seconds':0,'mode':'x','quit':1}");
	world_expect(&w.out, "'problems':[{'argument':'skill','problem':'is missing','fix':");
	assert_non_null(strstr(world_last(&w.out),
	                       "\"message\":\"echo: 'skill' is missing; 'seconds' is 0; 'mode' is "
	                       "not one of the choices; 'quit' is not an argument of this tool\""));
	world_expect(&w.out, "{'argument':'quit','problem':'is not an argument of this tool','fix':"
	                     "'did you mean quiet?'}]}}");
	/* At most MAX_MCP_PROBLEMS problems are listed; the rest is only counted. */
	for (size_t n = MAX_MCP_PROBLEMS; n <= MAX_MCP_PROBLEMS + 1; n++) {
		buf_init(&many, 65536);
		for (size_t i = 0; i < n; i++) {
			buf_addf(&many, "%c'unknown_%zu':1", i == 0 ? '{' : ',', i);
		}
		buf_adds(&many, ",'skill':'a'}");
		call("echo", many.data);
		assert_true((strstr(world_last(&w.out), "; and 1 more") != NULL) ==
		            (n > MAX_MCP_PROBLEMS));
		assert_true(strstr(world_last(&w.out), "'unknown_15' is no") != NULL);
		assert_true(strstr(world_last(&w.out), "'unknown_16' is no") == NULL);
		buf_done(&many);
	}
	call("fail", "{'x':1}");
	world_expect(&w.out, "leave it out: fail takes no arguments");
}

static void test_calls_that_are_none(void **state)
{
	static const char *const ROWS[][2] = {
		{ "{'name':'ecko'}",
		  "'code':-32602,'message':'Unknown tool: ecko (did you mean echo?)'" },
		{ "{'name':'zzz'}", "'code':-32602,'message':'Unknown tool: zzz'" },
		{ "{'name':'echo\\u0000'}", "'code':-32602" },
		{ "{'name':7}", "'code':-32602" },
		{ "{}", "'code':-32602" },
		{ "{'name':'echo','arguments':[]}", "'code':-32602" },
		{ "{'name':'echo','arguments':null}", "'code':-32602" },
	};

	begin();
	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		world_say("{'jsonrpc':'2.0','id':1,'method':'tools/call','params':%s}", ROWS[i][0]);
		world_expect(&w.out, ROWS[i][1]);
	}
	assert_int_equal(handled, 0);
	assert_int_equal(w.server->n_calls, 0);
}

static void test_results(void **state)
{
	begin();
	call("fail", "{}");
	world_expect(&w.out, "'content':[{'type':'text','text':'{\\'error\\':{\\'code\\':"
	                     "\\'not_found\\',");
	world_expect(&w.out, "'structuredContent':{'error':{'code':'not_found','message':'there is "
	                     "\\'none\\'\\n','fix':'make one'}},'isError':true}}");
	call("bare", "{'anything':[1]}");
	world_expect(&w.out, "'content':[{'type':'text','text':'with'}],'isError':false}}");
	world_say("{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'bare'}}");
	world_expect(&w.out, "'text':'without'");
	world_say("{'jsonrpc':'2.0','id':2,'method':'tools/call','params':{" MODERN
	          ",'name':'fail'}}");
	world_expect(&w.out, "'resultType':'complete'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(test_list),
		IN_WORLD(test_good_arguments),
		IN_WORLD(test_bad_arguments),
		IN_WORLD(test_every_problem_is_told),
		IN_WORLD(test_calls_that_are_none),
		IN_WORLD(test_results),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
