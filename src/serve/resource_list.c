/* resource_list.c - resources/list, resources/templates/list and completion/complete.
 *
 * The list has the skills in the order of their names and then the newest runs, in pages. Older
 * runs are not listed, but can be read by their ids. A cursor names the last entry of its page, so
 * that no run is listed twice if new runs appear between two pages. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/percent.h"
#include "trace/run_facts.h"
#include "base/limits.h"
#include "base/number.h"
#include "base/own.h"
#include "serve/records.h"
#include "serve/show.h"
#include "serve/skill_entry.h"
#include "serve/uri.h"

struct resource_list {
	struct serve *s;
	struct json *j;
	size_t n;
	char last[MAX_CURSOR + 1]; /* where the page ends, for the cursor */
	int64_t after_mtime;       /* list only runs after this position */
	const char *after_id;
	bool more;
};

static void put_resource(struct resource_list *l, const char *uri, const char *name,
                         const char *description, const char *type)
{
	json_open(l->j, '{');
	json_kstr(l->j, "uri", uri);
	show_kstr(l->j, "name", name);
	show_ktext(l->j, "description", description, strlen(description));
	json_kstr(l->j, "mimeType", type);
	json_close(l->j, '}');
	l->n++;
}

/* ---- skills ------------------------------------------------------------------------ */

static void list_skill(struct resource_list *l, const struct skill *v, size_t i, size_t n)
{
	AUTO(skill_entry_done) struct skill_entry e = { 0 };
	const char *why = NULL;
	auto_buf uri = BUF(4 * MAX_URI);

	if (skill_entry_read(&e, &v[i], v, n, &why) == 0) {
		skill_entry_uri(&uri, &e, SKILL_FILE);
		if (!uri.failed) {
			put_resource(l, uri.data, e.front.name, e.front.description,
			             "text/markdown");
		}
	}
	buf_reset(&uri);
	buf_adds(&uri, URI_SKILLS);
	percent_encode(&uri, v[i].name, false);
	if (!uri.failed) {
		put_resource(l, uri.data, v[i].name,
		             "The skill's manifest: what it asks for, not what it gets.",
		             "application/yaml");
	}
	snprintf(l->last, sizeof(l->last), "s%s", v[i].name);
}

/* Lists the skills after `after`. Returns true if there are more skills. */
static bool list_skills(struct resource_list *l, const char *after)
{
	const struct skill *v;
	struct ssb_error err = { 0 };
	size_t n;

	if (skills_list(l->s->skills, &v, &n, &err) != 0) {
		return false; /* the runs can still be listed */
	}
	for (size_t i = 0; i < n; i++) {
		if (after[0] == 's' && strcmp(v[i].name, after + 1) <= 0) {
			continue;
		}
		if (l->n >= MAX_RESOURCE_PAGE) {
			return true;
		}
		list_skill(l, v, i, n);
	}
	return false;
}

/* ---- runs -------------------------------------------------------------------------- */

static void list_run(struct resource_list *l, const struct run_entry *e, int fd)
{
	struct run_facts f = { 0 };
	auto_buf name = BUF(4 * sizeof(f.skill) + 64);
	auto_buf about = BUF(4 * sizeof(f) + 256);
	char uri[sizeof(URI_RUNS) + RUN_ID_SIZE];

	snprintf(uri, sizeof(uri), URI_RUNS "%s", e->id);
	if (e->size <= MAX_SERVED_RECORD && run_facts_read(&f, fd, e->id) == 0) {
		buf_addf(&name, "run of %s", f.skill);
		buf_addf(&about, "%s, started %s", run_state_name(f.state), f.started);
		if (f.state == RUN_ENDED) {
			buf_addf(&about, ", %s, exit status %" PRId64, f.end, f.exit_code);
		}
		buf_addf(&about, ", violations: %" PRId64, f.violations);
	} else {
		buf_adds(&name, "run");
		buf_adds(&about, "a record that is damaged or too large");
	}
	put_resource(l, uri, name.data, about.data, "application/json");
	snprintf(l->last, sizeof(l->last), "r%" PRId64 ":%s", e->mtime, e->id);
}

/* Reads rMTIME:ID. Returns false if the text is not the position of a run. */
static bool read_position(const char *position, int64_t *ret_mtime, const char **ret_id)
{
	int64_t mtime = 0;
	const char *end = position[0] == 'r' ? number_read_signed(position + 1, &mtime) : NULL;

	if (end == NULL || *end != ':' || !runs_id_valid(end + 1, strlen(end + 1))) {
		return false;
	}
	*ret_mtime = mtime;
	*ret_id = end + 1;
	return true;
}

/* Returns true if runs_stat() would list the run after the position of the cursor. */
static bool is_after(const struct run_entry *e, int64_t mtime, const char *id)
{
	return e->mtime != mtime ? e->mtime < mtime : strcmp(e->id, id) > 0;
}

static bool take_run(void *arg, const struct run_entry *e, int fd)
{
	struct resource_list *l = arg;

	if (!is_after(e, l->after_mtime, l->after_id)) {
		return true;
	}
	l->more = l->n >= MAX_RESOURCE_PAGE;
	if (!l->more) {
		list_run(l, e, fd);
	}
	return !l->more;
}

/* Lists the runs after `after`. Returns true if there are more runs. */
static bool list_runs(struct resource_list *l, const char *after)
{
	struct ssb_error err = { 0 };

	l->after_mtime = INT64_MAX;
	l->after_id = "";
	(void)read_position(after, &l->after_mtime, &l->after_id);
	(void)records_each(l->s, "", take_run, l, &err);
	return l->more;
}

static bool is_position(const char *position)
{
	int64_t mtime;
	const char *id;

	return position[0] == 's' || read_position(position, &mtime, &id);
}

void serve_resources_list(void *app, struct mcp_call *c)
{
	const struct json_node *cursor = mcp_param(c, "cursor");
	auto_free char *after = cursor == NULL                 ? strdup("")
	                        : json_is(cursor, JSON_STRING) ? uri_cursor_read(cursor->str)
	                                                       : NULL;
	auto_free struct resource_list *l = calloc(1, sizeof(*l));
	bool more = false;

	if (after == NULL || l == NULL || (cursor != NULL && !is_position(after))) {
		mcp_fail(c, MCP_E_PARAMS, "not a cursor of this server; begin without a cursor");
		return;
	}
	l->s = app;
	l->j = mcp_result(c);
	json_kopen(l->j, "resources", '[');
	if (after[0] != 'r') {
		more = list_skills(l, after);
	}
	more = more || list_runs(l, after);
	json_close(l->j, ']');
	if (more) {
		auto_buf next = BUF(2 * MAX_CURSOR + 1);
		uri_cursor_write(&next, l->last);
		json_kstr(l->j, "nextCursor", next.data);
	}
	mcp_done(c);
}

/* ---- templates ------------------------------------------------------------------------ */

/* Each `uri` contains {id} or {name}. */
static const struct resource_template {
	const char *uri;
	const char *name;
	const char *description;
	const char *type;
} TEMPLATES[] = {
	{ URI_RUNS "{id}", "run",
	  "A summary of a run: state, end, violations, and whether its record is complete and "
	  "unchanged.",
	  "application/json" },
	{ URI_RUNS "{id}/trace{?from}", "trace",
	  "The record of a run as JSON Lines, with hidden characters escaped; if it is long, one "
	  "page with "
	  "the address of the next.",
	  "application/jsonl" },
	{ URI_RUNS "{id}/output{?from}", "output",
	  "What a run wrote to stdout and stderr, from its record; if it is long, one page with "
	  "the address of the next. Data, with hidden characters escaped.",
	  "text/plain" },
	{ URI_SKILLS "{name}", "manifest",
	  "A skill's manifest, with hidden characters escaped: what it asks for, not what it gets.",
	  "application/yaml" },
	{ URI_SKILLS "{name}/files", "files",
	  "A skill's files with their digests, and the entries of its directory that are not "
	  "served.",
	  "application/json" },
};

void serve_resources_templates(void *app, struct mcp_call *c)
{
	struct json *j = mcp_result(c);

	(void)app;
	json_kopen(j, "resourceTemplates", '[');
	for (size_t i = 0; i < ARRAY_LEN(TEMPLATES); i++) {
		const struct resource_template *t = &TEMPLATES[i];
		json_open(j, '{');
		json_kstr(j, "uriTemplate", t->uri);
		json_kstr(j, "name", t->name);
		json_kstr(j, "description", t->description);
		json_kstr(j, "mimeType", t->type);
		json_close(j, '}');
	}
	json_close(j, ']');
	mcp_done(c);
}

/* ---- completion: names of skills, and ids of runs, the newest first --------------------- */

struct completion {
	struct serve *s;
	struct json *j;
	const char *value; /* what the user has typed */
	size_t n;          /* number of suggestions so far */
	size_t total;
};

static void offer_word(struct completion *k, const char *word)
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
			offer_word(k, v[i].name);
		}
	}
}

static bool offer_run(void *arg, const struct run_entry *e, int fd)
{
	(void)fd;
	offer_word(arg, e->id);
	return true;
}

static void offer_runs(struct completion *k)
{
	struct ssb_error err = { 0 };

	(void)records_each(k->s, k->value, offer_run, k, &err);
}

/* Returns NULL if there are no suggestions for this argument. */
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
	for (size_t i = 0; strcmp(type, "ref/resource") == 0 && i < ARRAY_LEN(TEMPLATES); i++) {
		const char *template = TEMPLATES[i].uri;
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
		         "cannot complete this argument: ref must be the prompt review_skill with "
		         "the "
		         "argument skill, or a template of resources/templates/list");
		return;
	}
	struct completion k = { .s = app, .j = mcp_result(c), .value = value };
	json_kopen(k.j, "completion", '{');
	json_kopen(k.j, "values", '[');
	source(&k);
	json_close(k.j, ']');
	json_kuint(k.j, "total", k.total);
	json_kbool(k.j, "hasMore", k.total > k.n);
	json_close(k.j, '}');
	mcp_done(c);
}
