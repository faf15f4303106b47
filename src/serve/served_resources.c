/* served_resources.c - resources/list, resources/templates/list and resources/read.
 *
 * The list has the skills in order of their names and then the newest runs, a page at a
 * time; older runs are reached by their ids. A cursor names the last one that was told:
 * runs that appear meanwhile are not told twice. */
#include "serve/served_resources.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/percent.h"
#include "trace/run_facts.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/visible.h"
#include "serve/records.h"
#include "serve/show.h"
#include "serve/skill_entry.h"
#include "serve/uri.h"

struct list {
	struct serve *s;
	struct json *j;
	size_t n;
	char last[MAX_CURSOR + 1]; /* place of the last one */
	int64_t after_mtime;       /* runs behind this place */
	const char *after_id;
	bool more;
};

static void put_resource(struct list *l, const char *uri, const char *name, const char *description,
                         const char *type)
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

static void list_skill(struct list *l, const struct skill *v, size_t i, size_t n)
{
	AUTO(skill_entry_done) struct skill_entry e = { 0 };
	const char *why = NULL;
	auto_buf uri;

	buf_init(&uri, 4 * MAX_URI);
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

/* 1: there are more of them. */
static int list_skills(struct list *l, const char *after)
{
	const struct skill *v;
	struct ssb_error err = { 0 };
	size_t n;

	if (skills_list(l->s->skills, &v, &n, &err) != 0) {
		return 0; /* the runs are there all the same */
	}
	for (size_t i = 0; i < n; i++) {
		if (after[0] == 's' && strcmp(v[i].name, after + 1) <= 0) {
			continue;
		}
		if (l->n >= MAX_RESOURCE_PAGE) {
			return 1;
		}
		list_skill(l, v, i, n);
	}
	return 0;
}

/* ---- runs -------------------------------------------------------------------------- */

static void list_run(struct list *l, const struct run_entry *e, int fd)
{
	struct run_facts f = { 0 };
	auto_buf name;
	auto_buf about;
	char uri[sizeof(URI_RUNS) + RUN_ID_SIZE];

	buf_init(&name, 4 * sizeof(f.skill) + 64);
	buf_init(&about, 4 * sizeof(f) + 256);
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

/* rMTIME:ID; false: it is no place of a run. */
static bool read_place(const char *place, int64_t *ret_mtime, const char **ret_id)
{
	int64_t mtime = 0;
	const char *end = place[0] == 'r' ? number_read_signed(place + 1, &mtime) : NULL;

	if (end == NULL || *end != ':' || !runs_id_valid(end + 1, strlen(end + 1))) {
		return false;
	}
	*ret_mtime = mtime;
	*ret_id = end + 1;
	return true;
}

/* Behind the place of the cursor, in the order of runs_stat(). */
static bool is_behind(const struct run_entry *e, int64_t mtime, const char *id)
{
	return e->mtime != mtime ? e->mtime < mtime : strcmp(e->id, id) > 0;
}

static bool take_run(void *arg, const struct run_entry *e, int fd)
{
	struct list *l = arg;

	if (!is_behind(e, l->after_mtime, l->after_id)) {
		return true;
	}
	l->more = l->n >= MAX_RESOURCE_PAGE;
	if (!l->more) {
		list_run(l, e, fd);
	}
	return !l->more;
}

/* 1: there are more of them. */
static int list_runs(struct list *l, const char *after)
{
	struct ssb_error err = { 0 };

	l->after_mtime = INT64_MAX;
	l->after_id = "";
	(void)read_place(after, &l->after_mtime, &l->after_id);
	(void)records_each(l->s, "", take_run, l, &err);
	return l->more ? 1 : 0;
}

static bool place_valid(const char *place)
{
	int64_t mtime;
	const char *id;

	return place[0] == 's' || read_place(place, &mtime, &id);
}

void serve_resources_list(void *app, struct mcp_call *c)
{
	const struct json_node *cursor = mcp_param(c, "cursor");
	auto_free char *after = cursor == NULL                 ? strdup("")
	                        : json_is(cursor, JSON_STRING) ? uri_cursor_read(cursor->str)
	                                                       : NULL;
	auto_free struct list *l = calloc(1, sizeof(*l));
	int more = 0;

	if (after == NULL || l == NULL || (cursor != NULL && !place_valid(after))) {
		mcp_fail(c, MCP_E_PARAMS, "that cursor is none of ours; begin without one");
		return;
	}
	l->s = app;
	l->j = mcp_result(c);
	json_key(l->j, "resources");
	json_open(l->j, '[');
	if (after[0] != 'r') {
		more = list_skills(l, after);
	}
	if (more == 0) {
		more = list_runs(l, after);
	}
	json_close(l->j, ']');
	if (more == 1) {
		auto_buf next;
		buf_init(&next, 2 * MAX_CURSOR + 1);
		uri_cursor_write(&next, l->last);
		json_kstr(l->j, "nextCursor", next.data);
	}
	mcp_done(c);
}

/* ---- templates ------------------------------------------------------------------------ */

const struct resource_template RESOURCE_TEMPLATES[] = {
	{ URI_RUNS "{id}", "run",
	  "A run in short: state, end, violations, and whether its record "
	  "can be believed.",
	  "application/json" },
	{ URI_RUNS "{id}/trace{?from}", "trace",
	  "The record of a run as JSON Lines, made visible; a page of it where it is long, "
	  "with the address of the next.",
	  "application/jsonl" },
	{ URI_RUNS "{id}/output{?from}", "output",
	  "What a run wrote to stdout and stderr, as its record has it; a page of it where it is "
	  "long, with the address of the next. Data, made visible.",
	  "text/plain" },
	{ URI_SKILLS "{name}", "manifest",
	  "A skill's manifest, made visible: what it asks for, not what it gets.",
	  "application/yaml" },
	{ URI_SKILLS "{name}/files", "files",
	  "A skill's files with their digests, and what of its directory is not served.",
	  "application/json" },
};
const size_t N_RESOURCE_TEMPLATES = ARRAY_LEN(RESOURCE_TEMPLATES);

void serve_resources_templates(void *app, struct mcp_call *c)
{
	struct json *j = mcp_result(c);

	(void)app;
	json_key(j, "resourceTemplates");
	json_open(j, '[');
	for (size_t i = 0; i < N_RESOURCE_TEMPLATES; i++) {
		const struct resource_template *t = &RESOURCE_TEMPLATES[i];
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
