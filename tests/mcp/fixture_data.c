/* fixture_data.c - resources. */
#include <string.h>

#include "fixture.h"

struct resource {
	const char *uri;
	const char *name;
	const char *title;
	const char *type;
	const char *text;
	const char *blob;
};

static const struct resource RESOURCES[] = {
	{ "test://static-text", "static-text", "Static text", "text/plain",
	  "This is the content of the static text resource.", NULL },
	{ "test://static-binary", "static-binary", "Static binary", "image/png", NULL, PNG },
	{ "test://watched-resource", "watched-resource", "Watched resource", "text/plain",
	  "Watched resource content", NULL },
};
#define N_RESOURCES (sizeof(RESOURCES) / sizeof(RESOURCES[0]))

void fixture_resources(void *app, struct mcp_call *c)
{
	(void)app;
	struct json *j = mcp_result(c);
	json_key(j, "resources");
	json_open(j, '[');
	for (size_t i = 0; i < N_RESOURCES; i++) {
		json_open(j, '{');
		json_kstr(j, "uri", RESOURCES[i].uri);
		json_kstr(j, "name", RESOURCES[i].name);
		json_kstr(j, "title", RESOURCES[i].title);
		json_kstr(j, "description", "A resource for testing");
		json_kstr(j, "mimeType", RESOURCES[i].type);
		json_close(j, '}');
	}
	json_close(j, ']');
	mcp_done(c);
}

#define TEMPLATE_HEAD "test://template/"
#define TEMPLATE_TAIL "/data"

void fixture_templates(void *app, struct mcp_call *c)
{
	(void)app;
	struct json *j = mcp_result(c);
	json_key(j, "resourceTemplates");
	json_open(j, '[');
	json_open(j, '{');
	json_kstr(j, "uriTemplate", TEMPLATE_HEAD "{id}" TEMPLATE_TAIL);
	json_kstr(j, "name", "template");
	json_kstr(j, "title", "Resource template");
	json_kstr(j, "description", "A template with one parameter");
	json_kstr(j, "mimeType", "application/json");
	json_close(j, '}');
	json_close(j, ']');
	mcp_done(c);
}

static void answer(struct mcp_call *c, const struct resource *r)
{
	struct json *j = mcp_result(c);
	json_key(j, "contents");
	json_open(j, '[');
	json_open(j, '{');
	json_kstr(j, "uri", r->uri);
	json_kstr(j, "mimeType", r->type);
	json_kstr(j, r->text != NULL ? "text" : "blob", r->text != NULL ? r->text : r->blob);
	json_close(j, '}');
	json_close(j, ']');
	mcp_done(c);
}

/* Answers {"id":"123","templateTest":true,"data":"Data for ID: 123"}. Returns false for another
 * uri. */
static bool answer_template(struct mcp_call *c, const char *uri)
{
	size_t head = strlen(TEMPLATE_HEAD);
	size_t tail = strlen(TEMPLATE_TAIL);
	size_t len = strlen(uri);
	if (len <= head + tail || strncmp(uri, TEMPLATE_HEAD, head) != 0 ||
	    strcmp(uri + len - tail, TEMPLATE_TAIL) != 0) {
		return false;
	}
	auto_buf id, text;
	buf_init(&id, 1024);
	buf_init(&text, 4096);
	buf_adds(&id, "Data for ID: ");
	buf_add(&id, uri + head, len - head - tail);
	struct json j;
	json_init(&j, &text, false);
	json_open(&j, '{');
	json_key(&j, "id");
	json_strn(&j, uri + head, len - head - tail);
	json_kbool(&j, "templateTest", true);
	json_kstr(&j, "data", id.data);
	json_close(&j, '}');
	if (id.failed || text.failed) {
		return false;
	}
	answer(c, &(struct resource){ .uri = uri, .type = "application/json", .text = text.data });
	return true;
}

void fixture_read(void *app, struct mcp_call *c)
{
	(void)app;
	const char *uri = json_string(mcp_param(c, "uri"), "");
	for (size_t i = 0; i < N_RESOURCES; i++) {
		if (strcmp(RESOURCES[i].uri, uri) == 0) {
			answer(c, &RESOURCES[i]);
			return;
		}
	}
	if (answer_template(c, uri)) {
		return;
	}
	auto_buf data;
	buf_init(&data, 65536);
	struct json j;
	json_init(&j, &data, false);
	json_open(&j, '{');
	json_kstr(&j, "uri", uri);
	json_close(&j, '}');
	mcp_fail_data(c, MCP_E_RESOURCE, data.failed ? "{}" : data.data, "no such resource");
}
