/* mcp_echo.c - a small server on the protocol library, for tests/e2e/test_mcp_lines.py and
 * test_mcp_http.py.
 *
 *   mcp_echo --lines | --socket PATH | --http ADDRESS [TOKEN [HURRY]]
 *
 * The server ends when its standard input is closed, so that a sanitizer can report leaks.
 *
 *   echo  {"text"}                       returns the text
 *   sleep {"ms"[, "every"][, "bytes"]}   answers after `ms` with `bytes` bytes; sends a
 *                                        notification every `every` ms
 *   flood {"n", "bytes"}                 sends `n` notifications of `bytes` bytes, then the answer
 *   big   {"bytes"}                      returns `bytes` bytes
 *   leave {"ms"}                         ends the stream of a client that can resume it, and
 *                                        answers after `ms`
 *   news                                 reports that the list of tools has changed
 *   count                                returns the numbers of canceled and of sleeping calls */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/own.h"
#include "mcp/mcp.h"
#include "mcp/transport.h"
#include "../mcp/hang_up.h"

static struct {
	struct loop *loop;
	struct mcp_server *server;
	unsigned hurry;
	size_t canceled;
	size_t asleep;
} echo = { .hurry = 1 };

int __real_loop_after(struct loop *l, uint64_t ms, void (*fn)(void *arg), void *arg,
                      struct loop_timer **ret);
int __wrap_loop_after(struct loop *l, uint64_t ms, void (*fn)(void *arg), void *arg,
                      struct loop_timer **ret);

/* Divides each time limit of the library by HURRY. */
int __wrap_loop_after(struct loop *l, uint64_t ms, void (*fn)(void *arg), void *arg,
                      struct loop_timer **ret)
{
	return __real_loop_after(l, ms / echo.hurry, fn, arg, ret);
}

struct sleeper {
	struct mcp_call *call;
	struct loop_timer *timer;
	uint64_t left, every;
	uint64_t told;
	size_t bytes;
};

static int64_t number(const struct mcp_call *c, const char *name, int64_t otherwise)
{
	const struct json_node *args = mcp_param(c, "arguments");

	return json_integer(json_member(mcp_doc(c), args, name), otherwise);
}

static void say(struct mcp_call *c, const char *text)
{
	struct json *j = mcp_result(c);

	json_key(j, "content");
	json_open(j, '[');
	json_open(j, '{');
	json_kstr(j, "type", "text");
	json_kstr(j, "text", text);
	json_close(j, '}');
	json_close(j, ']');
	mcp_done(c);
}

static void say_bytes(struct mcp_call *c, size_t bytes)
{
	auto_free char *text = malloc(bytes + 1);

	if (text == NULL) {
		abort();
	}
	memset(text, 'x', bytes);
	text[bytes] = '\0';
	say(c, text);
}

static void on_echo(struct mcp_call *c)
{
	const struct json_node *args = mcp_param(c, "arguments");

	say(c, json_string(json_member(mcp_doc(c), args, "text"), ""));
}

static void wake(void *arg)
{
	struct sleeper *s = arg;
	uint64_t step = s->every != 0 && s->every < s->left ? s->every : s->left;

	if (s->left == 0) {
		echo.asleep--;
		say_bytes(s->call, s->bytes);
		free(s);
		return;
	}
	if (s->every != 0) {
		mcp_progress(s->call, ++s->told, 0, "still asleep");
	}
	s->left -= step;
	if (__real_loop_after(echo.loop, step, wake, s, &s->timer) < 0) {
		abort();
	}
}

static void canceled(void *arg)
{
	struct sleeper *s = arg;

	loop_untimer(&s->timer);
	echo.canceled++;
	echo.asleep--;
	say(s->call, "canceled");
	free(s);
}

static void on_sleep(struct mcp_call *c)
{
	struct sleeper *s = calloc(1, sizeof *s);

	if (s == NULL) {
		abort();
	}
	*s = (struct sleeper){ .call = c,
		               .left = (uint64_t)number(c, "ms", 0),
		               .every = (uint64_t)number(c, "every", 0),
		               .bytes = (size_t)number(c, "bytes", 5) };
	echo.asleep++;
	mcp_on_cancel(c, canceled, s);
	wake(s);
}

static void on_leave(struct mcp_call *c)
{
	hang_up(c);
	on_sleep(c);
}

static void on_flood(struct mcp_call *c)
{
	size_t bytes = (size_t)number(c, "bytes", 100);
	auto_free char *text = malloc(bytes + 1);

	if (text == NULL) {
		abort();
	}
	memset(text, 'x', bytes);
	text[bytes] = '\0';
	for (int64_t i = 0, n = number(c, "n", 0); i < n; i++) {
		mcp_progress(c, (uint64_t)i + 1, 0, text);
	}
	say(c, "flooded");
}

static void on_big(struct mcp_call *c)
{
	say_bytes(c, (size_t)number(c, "bytes", 0));
}

static void on_news(struct mcp_call *c)
{
	mcp_list_changed(echo.server, MCP_TOOLS);
	say(c, "told");
}

static void on_count(struct mcp_call *c)
{
	char text[64];

	(void)snprintf(text, sizeof text, "canceled %zu, asleep %zu", echo.canceled, echo.asleep);
	say(c, text);
}

static void on_list(void *app, struct mcp_call *c)
{
	struct json *j = mcp_result(c);

	(void)app;
	json_key(j, "tools");
	json_open(j, '[');
	json_close(j, ']');
	mcp_done(c);
}

static void on_call(void *app, struct mcp_call *c)
{
	static const struct {
		const char *name;
		void (*handle)(struct mcp_call *c);
	} tools[] = {
		{ "echo", on_echo },   { "sleep", on_sleep }, { "flood", on_flood },
		{ "big", on_big },     { "news", on_news },   { "count", on_count },
		{ "leave", on_leave },
	};
	const char *name = json_string(mcp_param(c, "name"), "");

	(void)app;
	for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
		if (strcmp(tools[i].name, name) == 0) {
			tools[i].handle(c);
			return;
		}
	}
	mcp_fail(c, MCP_E_PARAMS, "there is no tool '%s'", name);
}

static const struct mcp_method METHODS[] = {
	{ "tools/list", on_list, MCP_CACHED },
	{ "tools/call", on_call, 0 },
};

static const struct mcp_app APP = {
	.name = "echo",
	.title = "Echo",
	.version = "1",
	.instructions = "",
	.features = MCP_TOOLS | MCP_TOOLS_CHANGE | MCP_LOGGING,
	.methods = METHODS,
	.n_methods = ARRAY_LEN(METHODS),
};

static void stop(void *arg)
{
	(void)arg;
	loop_stop(echo.loop);
}

static void input_ended(void *arg, uint32_t events)
{
	char c;

	(void)arg;
	(void)events;
	if (read(STDIN_FILENO, &c, 1) <= 0) {
		loop_stop(echo.loop);
	}
}

struct ways {
	struct mcp_lines *lines;
	struct mcp_socket *socket;
	struct mcp_http *http;
	struct loop_watch *input;
};

static int open_way(struct ways *w, int argc, char **argv, struct ssb_error *err)
{
	if (argc == 2 && strcmp(argv[1], "--lines") == 0) {
		return mcp_lines_new(echo.server, echo.loop, STDIN_FILENO, STDOUT_FILENO, stop,
		                     NULL, &w->lines, err);
	}
	if (loop_watch(echo.loop, STDIN_FILENO, EPOLLIN, input_ended, NULL, &w->input) < 0) {
		return -1;
	}
	if (argc == 3 && strcmp(argv[1], "--socket") == 0) {
		return mcp_socket_new(echo.server, echo.loop, argv[2], &w->socket, err);
	}
	struct mcp_http_options o = { .address = argc > 2 ? argv[2] : "",
		                      .token = argc > 3 ? argv[3] : NULL };

	echo.hurry = argc > 4 && atoi(argv[4]) > 0 ? (unsigned)atoi(argv[4]) : 1;
	return mcp_http_new(echo.server, echo.loop, &o, &w->http, err);
}

int main(int argc, char **argv)
{
	struct ssb_error err = { 0 };
	struct ways w = { 0 };

	(void)signal(SIGPIPE, SIG_IGN);
	if (loop_new(&echo.loop, &err) < 0 ||
	    mcp_server_new(echo.loop, &APP, &echo.server, &err) < 0 ||
	    open_way(&w, argc, argv, &err) < 0) {
		fprintf(stderr, "mcp_echo: %s\n", err.text);
		mcp_server_free(echo.server);
		loop_unwatch(&w.input);
		loop_free(echo.loop);
		return 1;
	}
	if (w.lines == NULL) {
		printf("%s\n", w.http != NULL ? mcp_http_url(w.http) : "ready");
		(void)fflush(stdout);
	}
	int r = loop_run(echo.loop);

	if (w.lines != NULL) {
		fprintf(stderr, "dropped %llu\n", (unsigned long long)mcp_lines_dropped(w.lines));
	}
	mcp_lines_free(w.lines);
	mcp_socket_free(w.socket);
	mcp_http_free(w.http);
	mcp_server_free(echo.server);
	loop_unwatch(&w.input);
	loop_free(echo.loop);
	return r < 0 ? 1 : 0;
}
