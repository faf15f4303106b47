/* protocol.c - the protocol's revisions and capabilities, and the methods that the library itself
 * answers. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/limits.h"
#include "base/name.h"
#include "base/own.h"
#include "mcp/mcp_priv.h"
#include "mcp/subs.h"
#include "mcp/task.h"

/* ---- revisions ---- */

/* The newest comes first: a client without a preference uses the first revision that it
 * supports. */
static const struct {
	const char *name;
	bool modern;
	bool resumes; /* clients of this version resume a stream that has not ended */
} VERSIONS[] = {
	{ MCP_LATEST, true, true },     { MCP_LATEST_LEGACY, false, true },
	{ "2025-06-18", false, false }, { "2025-03-26", false, false },
	{ "2024-11-05", false, false },
};

static int version_index(const char *version)
{
	size_t i = name_index(version, &VERSIONS[0].name, ARRAY_LEN(VERSIONS), sizeof(VERSIONS[0]));

	return i < ARRAY_LEN(VERSIONS) ? (int)i : -1;
}

bool mcp_version_known(const char *version)
{
	return version_index(version) >= 0;
}

bool mcp_version_modern(const char *version)
{
	int i = version_index(version);

	return i >= 0 && VERSIONS[i].modern;
}

bool mcp_version_resumes(const char *version)
{
	int i = version_index(version);

	return i >= 0 && VERSIONS[i].resumes;
}

const char *mcp_version_static(const char *version)
{
	int i = version_index(version);

	return i >= 0 ? VERSIONS[i].name : NULL;
}

const char *mcp_version_negotiate(const char *wish)
{
	int i = version_index(wish);

	return i >= 0 && !VERSIONS[i].modern ? VERSIONS[i].name : MCP_LATEST_LEGACY;
}

void mcp_write_versions(struct json *j)
{
	json_open(j, '[');
	for (size_t i = 0; i < ARRAY_LEN(VERSIONS); i++) {
		json_str(j, VERSIONS[i].name);
	}
	json_close(j, ']');
}

/* ---- capabilities of the application ---- */

/* A capability, and the members of its object. A member is true if the application has its
 * feature. */
static const struct capability {
	const char *name;
	unsigned feature;
	struct {
		const char *name;
		unsigned feature;
	} member[2];
} CAPABILITIES[] = {
	{ "tools", MCP_TOOLS, { { "listChanged", MCP_TOOLS_CHANGE } } },
	{ "resources",
	  MCP_RESOURCES,
	  { { "subscribe", MCP_SUBSCRIBE }, { "listChanged", MCP_RESOURCES_CHANGE } } },
	{ "prompts", MCP_PROMPTS, { { "listChanged", MCP_PROMPTS_CHANGE } } },
	{ "completions", MCP_COMPLETIONS, { { NULL, 0 } } },
	{ "logging", MCP_LOGGING, { { NULL, 0 } } },
};

static void write_extensions(const struct mcp_app *app, enum mcp_era era, struct json *j)
{
	bool tasks = era == MCP_ERA_MODERN && (app->features & MCP_TASKS) != 0;

	if (!tasks && app->extensions == NULL) {
		return;
	}
	json_kopen(j, "extensions", '{');
	if (tasks) {
		json_key(j, EXTENSION_TASKS);
		json_raw(j, "{}", 2);
	}
	if (app->extensions != NULL) {
		json_raw(j, app->extensions, strlen(app->extensions));
	}
	json_close(j, '}');
}

/* Writes the capabilities that the application has in this era, for server/discover and initialize.
 */
static void server_capabilities(const struct mcp_app *app, enum mcp_era era, struct json *j)
{
	json_open(j, '{');
	for (size_t i = 0; i < ARRAY_LEN(CAPABILITIES); i++) {
		const struct capability *k = &CAPABILITIES[i];
		if ((app->features & k->feature) == 0) {
			continue;
		}
		json_kopen(j, k->name, '{');
		for (size_t m = 0; m < ARRAY_LEN(k->member); m++) {
			if ((app->features & k->member[m].feature) != 0) {
				json_kbool(j, k->member[m].name, true);
			}
		}
		json_close(j, '}');
	}
	write_extensions(app, era, j);
	json_close(j, '}');
}

/* ---- the legacy session ---- */

/* Returns "a\nb\n", the names of all extensions whose value is an object. A name with a newline is
 * left out. */
static char *extension_names(const struct json_doc *doc, const struct json_node *all)
{
	auto_buf names = BUF(MAX_MCP_EXTENSIONS);

	for (const struct json_node *e = json_is(all, JSON_OBJECT) ? json_first(doc, all) : NULL;
	     e != NULL; e = json_next(doc, e)) {
		size_t more = strlen(e->key) + 1;
		if (e->type == JSON_OBJECT && strchr(e->key, '\n') == NULL &&
		    names.len + more <= names.cap) {
			buf_adds(&names, e->key);
			buf_addc(&names, '\n');
		}
	}
	return buf_steal(&names);
}

static int remember_client(struct mcp_call *c, const char *version)
{
	const struct json_node *capabilities = mcp_param(c, "capabilities");
	const struct json_node *name = json_member(&c->m.doc, mcp_param(c, "clientInfo"), "name");
	struct mcp_peer *p = c->peer;

	free(p->client_name);
	free(p->extensions);
	p->client_name = mcp_text_cut(json_string(name, ""), MAX_MCP_CLIENT);
	p->extensions =
	        extension_names(&c->m.doc, json_member(&c->m.doc, capabilities, "extensions"));
	if (p->client_name == NULL || p->extensions == NULL) {
		return -1;
	}
	p->abilities = mcp_client_abilities(&c->m.doc, capabilities);
	p->version = version;
	return 0;
}

static bool object_or_none(const struct json_node *node)
{
	return node == NULL || node->type == JSON_OBJECT;
}

static void do_initialize(void *arg, struct mcp_call *c)
{
	const struct mcp_app *app = c->server->app;
	const char *wish = json_string(mcp_param(c, "protocolVersion"), NULL);

	(void)arg;
	if (c->peer->version != NULL) {
		mcp_fail(c, MCP_E_REQUEST, "this session is already initialized");
		return;
	}
	if (wish == NULL || !object_or_none(mcp_param(c, "capabilities")) ||
	    !object_or_none(mcp_param(c, "clientInfo"))) {
		mcp_fail(c, MCP_E_PARAMS,
		         "initialize needs protocolVersion (a string), capabilities and clientInfo "
		         "(objects)");
		return;
	}
	if (remember_client(c, mcp_version_negotiate(wish)) < 0) {
		mcp_fail(c, MCP_E_INTERNAL, "out of memory");
		return;
	}
	struct json *j = mcp_result(c);
	json_kstr(j, "protocolVersion", c->peer->version);
	json_key(j, "capabilities");
	server_capabilities(app, MCP_ERA_LEGACY, j);
	json_key(j, "serverInfo");
	mcp_write_server_info(app, j);
	if (app->instructions != NULL) {
		json_kstr(j, "instructions", app->instructions);
	}
	mcp_done(c);
}

static void do_ping(void *arg, struct mcp_call *c)
{
	(void)arg;
	mcp_done(c);
}

static void do_set_level(void *arg, struct mcp_call *c)
{
	const char *word = json_string(mcp_param(c, "level"), "");

	(void)arg;
	if (mcp_level_parse(word, &c->peer->level) < 0) {
		mcp_fail(c, MCP_E_PARAMS,
		         "level must be one of debug, info, notice, warning, error, "
		         "critical, alert or emergency");
		return;
	}
	mcp_done(c);
}

/* ---- server/discover ---- */

static void do_discover(void *arg, struct mcp_call *c)
{
	const struct mcp_app *app = c->server->app;
	struct json *j = mcp_result(c);

	(void)arg;
	json_key(j, "supportedVersions");
	mcp_write_versions(j);
	json_key(j, "capabilities");
	server_capabilities(app, MCP_ERA_MODERN, j);
	if (app->instructions != NULL) {
		json_kstr(j, "instructions", app->instructions);
	}
	mcp_done(c);
}

/* ---- the table ---- */

static const struct protocol_method METHODS[] = {
	{ { "initialize", do_initialize, MCP_LEGACY }, 0 },
	{ { "ping", do_ping, MCP_LEGACY }, 0 },
	{ { "server/discover", do_discover, MCP_MODERN | MCP_CACHED }, 0 },
	{ { "logging/setLevel", do_set_level, MCP_LEGACY }, MCP_LOGGING },
	{ { "resources/subscribe", subs_subscribe, MCP_LEGACY }, MCP_SUBSCRIBE },
	{ { "resources/unsubscribe", subs_unsubscribe, MCP_LEGACY }, MCP_SUBSCRIBE },
	{ { "subscriptions/listen", subs_listen, MCP_MODERN },
	  MCP_SUBSCRIBE | MCP_TOOLS_CHANGE | MCP_RESOURCES_CHANGE | MCP_PROMPTS_CHANGE |
	          MCP_TASKS },
	{ { "tasks/get", task_get, MCP_MODERN }, MCP_TASKS },
	{ { "tasks/update", task_update, MCP_MODERN }, MCP_TASKS },
	{ { "tasks/cancel", task_cancel, MCP_MODERN }, MCP_TASKS },
};

static const struct mcp_method *find_method(const struct mcp_server *s, const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(METHODS); i++) {
		const struct protocol_method *row = &METHODS[i];
		if (strcmp(row->m.name, name) == 0) {
			bool has = row->needs == 0 || (s->app->features & row->needs) != 0;
			return has ? &row->m : NULL;
		}
	}
	return ARRAY_FIND(method, s->app->methods, s->app->n_methods,
	                  strcmp(method->name, name) == 0);
}

const struct mcp_method *mcp_method_find(const struct mcp_server *s, enum mcp_era era,
                                         const char *name)
{
	unsigned not_here = era == MCP_ERA_MODERN ? MCP_LEGACY : MCP_MODERN;
	const struct mcp_method *row = find_method(s, name);

	return row != NULL && (row->flags & not_here) == 0 ? row : NULL;
}
