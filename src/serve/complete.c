/* complete.c - completion/complete: names of skills, and ids of runs, the newest first. */
#include <string.h>

#include "base/limits.h"
#include "base/own.h"
#include "serve/records.h"
#include "serve/served_resources.h"
#include "serve/show.h"
#include "serve/skills.h"

struct completion {
	struct serve *s;
	struct json *j;
	const char *value; /* what is there already */
	size_t n;          /* told */
	size_t total;
};

static void offer(struct completion *k, const char *word)
{
	if (strncmp(word, k->value, strlen(k->value)) != 0) {
		return;
	}
	k->total++;
	if (k->n < MAX_COMPLETIONS && show_plain(word, strlen(word), false)) {
		json_str(k->j, word);
		k->n++;
	}
}

static void offer_skills(struct completion *k)
{
	const struct skill *v;
	struct ssb_error err = { 0 };
	size_t n;

	if (skills_list(k->s->skills, &v, &n, &err) == 0) {
		for (size_t i = 0; i < n; i++) {
			offer(k, v[i].name);
		}
	}
}

static bool offer_run(void *arg, const struct run_entry *e, int fd)
{
	(void)fd;
	offer(arg, e->id);
	return true;
}

static void offer_runs(struct completion *k)
{
	struct ssb_error err = { 0 };

	(void)records_each(k->s, k->value, offer_run, k, &err);
}

/* What is asked for: NULL where nothing is offered for it. */
static void (*find_source(const struct mcp_call *c, const char *argument))(struct completion *)
{
	const struct json_doc *doc = mcp_doc(c);
	const struct json_node *ref = mcp_param(c, "ref");
	const char *type = json_string(json_member(doc, ref, "type"), "");
	const char *uri = json_string(json_member(doc, ref, "uri"), "");

	if (strcmp(type, "ref/prompt") == 0) {
		const char *name = json_string(json_member(doc, ref, "name"), "");
		return strcmp(name, "review_skill") == 0 && strcmp(argument, "skill") == 0
		               ? offer_skills
		               : NULL;
	}
	for (size_t i = 0; strcmp(type, "ref/resource") == 0 && i < N_RESOURCE_TEMPLATES; i++) {
		const char *template = RESOURCE_TEMPLATES[i].uri;
		if (strcmp(uri, template) != 0) {
			continue;
		}
		if (strcmp(argument, "id") == 0 && strstr(template, "{id}") != NULL) {
			return offer_runs;
		}
		if (strcmp(argument, "name") == 0 && strstr(template, "{name}") != NULL) {
			return offer_skills;
		}
	}
	return NULL;
}

void serve_complete(void *app, struct mcp_call *c)
{
	const struct json_node *argument = mcp_param(c, "argument");
	const char *name = json_string(json_member(mcp_doc(c), argument, "name"), NULL);
	const char *value = json_string(json_member(mcp_doc(c), argument, "value"), NULL);
	void (*source)(struct completion *) = name != NULL ? find_source(c, name) : NULL;

	if (source == NULL || value == NULL) {
		mcp_fail(c, MCP_E_PARAMS,
		         "nothing is completed there: ref is the prompt "
		         "review_skill with the argument skill, or a template of "
		         "resources/templates/list");
		return;
	}
	struct completion k = { .s = app, .j = mcp_result(c), .value = value };
	json_key(k.j, "completion");
	json_open(k.j, '{');
	json_key(k.j, "values");
	json_open(k.j, '[');
	source(&k);
	json_close(k.j, ']');
	json_kuint(k.j, "total", k.total);
	json_kbool(k.j, "hasMore", k.total > k.n);
	json_close(k.j, '}');
	mcp_done(c);
}
