/* notification.c - notifications: progress, log messages, and others. */
#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/own.h"
#include "mcp/mcp_priv.h"
#include "mcp/task.h"

static const char *const LEVELS[MCP_EMERGENCY + 1] = { "debug", "info",     "notice", "warning",
	                                               "error", "critical", "alert",  "emergency" };

int mcp_level_parse(const char *word, enum mcp_level *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(LEVELS); i++) {
		if (strcmp(LEVELS[i], word) == 0) {
			*ret = (enum mcp_level)i;
			return 0;
		}
	}
	return -1;
}

static void out_notify(struct mcp_out *out, const char *method, const char *params)
{
	auto_buf text = BUF(MAX_MCP_RESULT);
	struct json j = JSON_TO(&text, false);

	json_open(&j, '{');
	json_kstr(&j, "jsonrpc", "2.0");
	json_kstr(&j, "method", method);
	if (params != NULL) {
		json_key(&j, "params");
		json_raw(&j, params, strlen(params));
	}
	json_close(&j, '}');
	if (!text.failed) {
		out->send(out, MCP_NOTIFICATION, 200, text.data, text.len);
	}
}

void mcp_call_notify(struct mcp_call *c, const char *method, const char *params)
{
	if (c->out != NULL && !c->answered) {
		out_notify(c->out, method, params);
	}
}

void mcp_peer_notify(struct mcp_peer *p, const char *method, const char *params)
{
	if (p->news != NULL && !p->gone) {
		out_notify(p->news, method, params);
	}
}

bool mcp_wants_progress(const struct mcp_call *c)
{
	return c->task != NULL || (c->out != NULL && mcp_meta(c, "progressToken") != NULL);
}

void mcp_progress(struct mcp_call *c, uint64_t progress, uint64_t total, const char *message)
{
	const struct json_node *token = mcp_meta(c, "progressToken");
	auto_buf text = BUF(MAX_MCP_RESULT);
	struct json j = JSON_TO(&text, false);

	if (c->task != NULL) {
		task_progress(c, message);
		return;
	}
	/* The protocol requires that each progress value is larger than the one before. */
	if (token == NULL || c->out == NULL || (c->progressed && progress <= c->progress)) {
		return;
	}
	c->progressed = true;
	c->progress = progress;
	json_open(&j, '{');
	json_key(&j, "progressToken");
	json_copy(&j, &c->m.doc, token);
	json_kuint(&j, "progress", progress);
	if (total > 0) {
		json_kuint(&j, "total", total);
	}
	if (message != NULL) {
		json_kstr(&j, "message", message);
	}
	json_close(&j, '}');
	if (!text.failed) {
		mcp_call_notify(c, "notifications/progress", text.data);
	}
}

static bool wants_log(const struct mcp_call *c, enum mcp_level level)
{
	enum mcp_level least = MCP_DEBUG;

	if ((c->server->app->features & MCP_LOGGING) == 0 || c->out == NULL) {
		return false;
	}
	if (c->era == MCP_ERA_LEGACY) {
		return level >= c->peer->level;
	}
	const char *word = json_string(mcp_meta(c, META_LOG_LEVEL), NULL);
	return word != NULL && mcp_level_parse(word, &least) == 0 && level >= least;
}

void mcp_log(struct mcp_call *c, enum mcp_level level, const char *logger, const char *data)
{
	auto_buf text = BUF(MAX_MCP_RESULT);
	struct json j = JSON_TO(&text, false);

	if (!wants_log(c, level)) {
		return;
	}
	json_open(&j, '{');
	json_kstr(&j, "level", LEVELS[level]);
	if (logger != NULL) {
		json_kstr(&j, "logger", logger);
	}
	json_key(&j, "data");
	json_raw(&j, data, strlen(data));
	json_close(&j, '}');
	if (!text.failed) {
		mcp_call_notify(c, "notifications/message", text.data);
	}
}
