/* answer.c - ends a call with a result or an error. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "mcp/mcp_priv.h"

/* The HTTP statuses of modern errors. Every response that is not in the table has status 200. */
static const struct {
	enum mcp_code code;
	int status;
} STATUSES[] = {
	{ MCP_E_PARSE, 400 },  { MCP_E_REQUEST, 400 }, { MCP_E_METHOD, 404 },
	{ MCP_E_HEADER, 400 }, { MCP_E_VERSION, 400 }, { MCP_E_CAPABILITY, 400 },
};

void mcp_write_server_info(const struct mcp_app *app, struct json *j)
{
	json_open(j, '{');
	json_kstr(j, "name", app->name);
	if (app->title != NULL) {
		json_kstr(j, "title", app->title);
	}
	json_kstr(j, "version", app->version);
	json_close(j, '}');
}

void mcp_call_write_result_head(const struct mcp_call *c, struct json *j, const char *type,
                                bool cached)
{
	const struct mcp_app *app = c->server->app;

	if (c->era == MCP_ERA_LEGACY) {
		return;
	}
	json_kstr(j, "resultType", type);
	if (cached) {
		json_kuint(j, "ttlMs", app->ttl_ms);
		json_kstr(j, "cacheScope", "private");
	}
	json_kopen(j, "_meta", '{');
	json_key(j, META_SERVER);
	mcp_write_server_info(app, j);
	json_close(j, '}');
}

void mcp_call_begin_response(const struct mcp_call *c, struct json *j)
{
	json_open(j, '{');
	json_kstr(j, "jsonrpc", "2.0");
	json_key(j, "id");
	json_raw(j, c->m.id, strlen(c->m.id));
	json_key(j, "result");
}

struct json *mcp_call_begin_result(struct mcp_call *c, const char *type, bool cached)
{
	struct json *j = &c->json;

	buf_reset(&c->text);
	json_init(j, &c->text, false);
	mcp_call_begin_response(c, j);
	c->body_at = c->text.len;
	json_open(j, '{');
	mcp_call_write_result_head(c, j, type, cached);
	return j;
}

struct json *mcp_result(struct mcp_call *c)
{
	return mcp_call_begin_result(c, "complete", (c->row->flags & MCP_CACHED) != 0);
}

void mcp_done(struct mcp_call *c)
{
	if (c->body_at == 0) {
		(void)mcp_result(c);
	}
	assert(c->text.failed || c->json.depth == 2);
	if (!c->text.failed) {
		json_close(&c->json, '}');
		json_close(&c->json, '}');
	}
	if (c->text.failed) {
		mcp_fail(c, MCP_E_INTERNAL, "the result is longer than the server can send");
		return;
	}
	mcp_call_respond(c, 200);
}

static int http_status_of(const struct mcp_call *c, enum mcp_code code)
{
	if (c->era == MCP_ERA_LEGACY) {
		return 200;
	}
	for (size_t i = 0; i < ARRAY_LEN(STATUSES); i++) {
		if (STATUSES[i].code == code) {
			return STATUSES[i].status;
		}
	}
	return 200;
}

static void write_error(struct mcp_call *c, enum mcp_code code, const char *why, const char *data)
{
	buf_reset(&c->text);
	mcp_error_text(&c->text, c->m.id, code, why, data);
	c->failed = true;
	c->body_at = strlen("{\"jsonrpc\":\"2.0\",\"id\":,\"error\":") + strlen(c->m.id);
}

static void fail_call(struct mcp_call *c, enum mcp_code code, int status, const char *data,
                      const char *fmt, va_list ap)
{
	char message[1024];

	if (code == MCP_E_RESOURCE && c->era == MCP_ERA_MODERN) {
		code = MCP_E_PARAMS;
	}
	(void)vsnprintf(message, sizeof(message), fmt, ap);
	write_error(c, code, message, data);
	if (c->text.failed) {
		/* The data was too long: sends the error again, without the data. */
		write_error(c, code, message, NULL);
	}
	mcp_call_respond(c, status);
}

void mcp_fail(struct mcp_call *c, enum mcp_code code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fail_call(c, code, http_status_of(c, code), NULL, fmt, ap);
	va_end(ap);
}

void mcp_fail_data(struct mcp_call *c, enum mcp_code code, const char *data, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fail_call(c, code, http_status_of(c, code), data, fmt, ap);
	va_end(ap);
}

void mcp_call_refuse(struct mcp_call *c, enum mcp_code code, const char *why, const char *data)
{
	bool plain = c->era == MCP_ERA_LEGACY && c->peer->version != NULL;

	write_error(c, code, why, data);
	/* A legacy client that gets a 400 would think that the server only has the other era, and
	 * try that. So a legacy client that has initialized gets 200. */
	mcp_call_respond(c, plain ? 200 : code == MCP_E_INTERNAL ? 503 : 400);
}
