/* fixture.c - `fixture [--http ADDRESS:PORT]`: serves HTTP and writes its URL as a line to stdout,
 * or serves stdin and stdout. Ends on SIGTERM, or at the end of stdin. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/own.h"
#include "fixture.h"
#include "mcp/transport.h"

static void list_tools(void *app, struct mcp_call *c)
{
	(void)app;
	mcp_tools_list(&FIXTURE_TOOLS, c);
}

static void call_tool(void *app, struct mcp_call *c)
{
	mcp_tools_call(&FIXTURE_TOOLS, app, c);
}

static const struct mcp_method METHODS[] = {
	{ "tools/list", list_tools, MCP_CACHED },
	{ "tools/call", call_tool, MCP_ASKS },
	{ "resources/list", fixture_resources, MCP_CACHED },
	{ "resources/templates/list", fixture_templates, MCP_CACHED },
	{ "resources/read", fixture_read, MCP_CACHED },
	{ "prompts/list", fixture_prompts, MCP_CACHED },
	{ "prompts/get", fixture_prompt, MCP_ASKS },
	{ "completion/complete", fixture_complete, 0 },
};

static void stop(void *arg)
{
	loop_stop(arg);
}

static void on_signal(void *arg, uint32_t events)
{
	(void)events;
	loop_stop(arg);
}

static int fail(const struct ssb_error *err)
{
	(void)fprintf(stderr, "fixture: %s: %s\n", err->where, err->text);
	return 1;
}

static int serve(struct fixture *f, const char *http)
{
	struct ssb_error err = { 0 };
	struct mcp_http *h = NULL;
	struct mcp_lines *l = NULL;
	/* The conformance suite sends no token. */
	struct mcp_http_options o = { .address = http };
	int rc = http != NULL ? mcp_http_new(f->mcp, f->loop, &o, &h, &err)
	                      : mcp_lines_new(f->mcp, f->loop, STDIN_FILENO, STDOUT_FILENO, stop,
	                                      f->loop, &l, &err);
	if (rc != 0) {
		return fail(&err);
	}
	if (h != NULL) {
		(void)printf("%s\n", mcp_http_url(h));
		(void)fflush(stdout);
	}
	rc = loop_run(f->loop);
	mcp_http_free(h);
	mcp_lines_free(l);
	return rc == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
	bool http = argc == 3 && strcmp(argv[1], "--http") == 0;
	if (argc != 1 && !http) {
		(void)fprintf(stderr, "usage: fixture [--http ADDRESS:PORT]\n");
		return 2;
	}
	struct fixture f = { 0 };
	const struct mcp_app app = {
		.name = "fixture",
		.title = "A server for the conformance suite",
		.version = "1.0.0",
		.instructions = "For tests.",
		.features = MCP_TOOLS | MCP_RESOURCES | MCP_PROMPTS | MCP_COMPLETIONS |
		            MCP_LOGGING | MCP_SUBSCRIBE | MCP_TOOLS_CHANGE | MCP_RESOURCES_CHANGE |
		            MCP_PROMPTS_CHANGE | MCP_TASKS,
		.methods = METHODS,
		.n_methods = ARRAY_LEN(METHODS),
		.ttl_ms = 1000,
		.arg = &f,
	};
	struct ssb_error err = { 0 };
	sigset_t set;
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	auto_fd told = signalfd(-1, &set, SFD_CLOEXEC);
	struct loop_watch *w = NULL;
	if (loop_new(&f.loop, &err) != 0 || mcp_server_new(f.loop, &app, &f.mcp, &err) != 0) {
		return fail(&err);
	}
	if (told < 0 || loop_watch(f.loop, told, EPOLLIN, on_signal, f.loop, &w) != 0) {
		perror("fixture: signals");
		return 1;
	}
	int rc = serve(&f, http ? argv[2] : NULL);
	mcp_server_free(f.mcp);
	loop_unwatch(&w);
	loop_free(f.loop);
	return rc;
}
