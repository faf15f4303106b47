/* record.c - makes needs from the lines of a record.
 *
 * The record is read twice. The first pass collects lines that explain other lines: how often
 * a line was repeated, and which name an address in the sandbox stands for. The second pass
 * takes the needs, line by line. All lines may be forged, so the needs are judged like any
 * request. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/string_list.h"
#include "learn/needs.h"
#include "learn/record_priv.h"
#include "policy/path.h"
#include "policy/plan.h"
#include "trace/reader.h"
#include "trace/run_facts.h"
#include "trace/runs.h"

static void record_reading_done(struct record_reading *r)
{
	for (size_t i = 0; i < r->n_names; i++) {
		free(r->names[i].address);
		free(r->names[i].name);
	}
	for (size_t i = 0; i < r->n_places; i++) {
		free(r->places[i].target);
	}
	string_list_done(&r->preset);
	for (size_t i = 0; i < r->asked.n; i++) {
		free(r->asked.v[i]);
	}
	free(r->asked.v);
	free(r->names);
	free(r->places);
	free(r->repeats);
	free(r->home);
}

const char *record_value(const struct json_node *n)
{
	return json_is(n, JSON_STRING) && n->len > 0 && n->len < MAX_PATH_BYTES &&
	                       strlen(n->str) == n->len
	               ? n->str
	               : NULL;
}

const char *record_text(const struct line *l, const char *name)
{
	const char *text = record_value(line_get(l, name));

	return text != NULL ? text : "";
}

/* ---- the first pass ------------------------------------------------------------ */

/* Makes room in the array *v for one more item of `size` bytes. Returns the array, or NULL if it
 * has `max` items already or there is no memory. */
static void *grow_array(struct record_reading *r, void *v, size_t n, size_t max, size_t size)
{
	if (n >= max) {
		r->out->cut = true;
		return NULL;
	}
	if ((n & (n - 1)) != 0) { /* the room doubles, so it is full only at a power of two */
		return *(void **)v;
	}
	void *more = realloc(*(void **)v, (n == 0 ? 1 : 2 * n) * size);
	if (more == NULL) {
		r->nomem = true;
		return NULL;
	}
	*(void **)v = more;
	return more;
}

static void take_repeat(struct record_reading *r, int64_t of, int64_t count)
{
	if (count > 0 && grow_array(r, &r->repeats, r->n_repeats, MAX_NEED_REPEATS,
	                            sizeof(r->repeats[0])) != NULL) {
		r->repeats[r->n_repeats++] = (struct repeat){ of, (uint64_t)count };
	}
}

const char *record_name(const struct record_reading *r, const char *address)
{
	const struct shown_name *known =
	        ARRAY_FIND(name, r->names, r->n_names, strcmp(name->address, address) == 0);

	return known != NULL ? known->name : NULL;
}

static void take_name(struct record_reading *r, const struct line *l)
{
	const char *address = record_text(l, "address_asked");
	const char *name = record_text(l, "name");

	if (address[0] == '\0' || name[0] == '\0' || record_name(r, address) != NULL ||
	    grow_array(r, &r->names, r->n_names, MAX_NEED_NAMES, sizeof(r->names[0])) == NULL) {
		return;
	}
	struct shown_name n = { strdup(address), strdup(name) };
	r->nomem |= n.address == NULL || n.name == NULL;
	r->names[r->n_names++] = n;
}

static void look_ahead(struct record_reading *r, const struct line *l)
{
	int64_t of = json_integer(line_get(l, "repeat_of"), -1);

	if (of >= 0) {
		take_repeat(r, of, json_integer(line_get(l, "count"), 0));
	} else if (l->kind == EV_END) {
		const struct json_node *counters = line_get(l, "counters");
		r->out->cut |= json_integer(json_member(&l->doc, counters, "dropped"), 0) > 0;
	} else {
		take_name(r, l);
	}
}

static int by_first(const void *a, const void *b)
{
	int64_t x = ((const struct repeat *)a)->of;
	int64_t y = ((const struct repeat *)b)->of;

	return x < y ? -1 : x > y;
}

/* Merges the entries of r->repeats that are about the same line. */
static void sort_repeats(struct record_reading *r)
{
	size_t n = 0;

	if (r->n_repeats == 0) {
		return;
	}
	qsort(r->repeats, r->n_repeats, sizeof(r->repeats[0]), by_first);
	for (size_t i = 1; i < r->n_repeats; i++) {
		if (r->repeats[i].of == r->repeats[n].of) {
			r->repeats[n].count += r->repeats[i].count;
		} else {
			r->repeats[++n] = r->repeats[i];
		}
	}
	r->n_repeats = n + 1;
}

uint64_t record_times(const struct record_reading *r, const struct line *l)
{
	const struct repeat key = { .of = l->seq };
	const struct repeat *found = NULL;

	if (r->n_repeats > 0) {
		found = bsearch(&key, r->repeats, r->n_repeats, sizeof(key), by_first);
	}
	return line_times(l) + (found != NULL ? found->count : 0);
}

/* ---- the first line ------------------------------------------------------------- */

static void take_place(struct record_reading *r, const struct line *l, const struct json_node *n)
{
	const char *target = record_value(json_member(&l->doc, n, "target"));
	enum grant_origin origin =
	        grant_origin_from(json_string(json_member(&l->doc, n, "origin"), ""));

	if (target != NULL && grow_array(r, &r->places, r->n_places, 4UL * MAX_GRANTS,
	                                 sizeof(r->places[0])) != NULL) {
		char *copy = strdup(target);
		r->nomem |= copy == NULL;
		r->places[r->n_places] =
		        (struct shown_place){ copy,
			                      origin == ORIGIN_SKILL || origin == ORIGIN_CACHE ||
			                              origin == ORIGIN_TOOLCHAIN,
			                      origin == ORIGIN_CALLER };
		r->n_places += copy != NULL;
	}
}

static void take_asked(struct record_reading *r, const char *item)
{
	const char *name;

	if (plan_requested_kind(item, &name) == REQUESTED_ENV &&
	    grow_array(r, &r->asked.v, r->asked.n, MAX_LIST_ITEMS, sizeof(r->asked.v[0])) != NULL) {
		r->asked.v[r->asked.n] = strdup(name);
		r->nomem |= r->asked.v[r->asked.n] == NULL;
		r->asked.n += r->asked.v[r->asked.n] != NULL;
	}
}

static void take_run(struct record_reading *r, const struct line *l)
{
	const struct json_node *plan = line_get(l, "plan");
	const struct json_node *files =
	        json_member(&l->doc, json_member(&l->doc, plan, "granted"), "files");
	const char *home = record_value(json_member(&l->doc, plan, "home"));

	JSON_EACH (n, &l->doc, files) {
		take_place(r, l, n);
	}
	for (const struct json_node *n =
	             json_first(&l->doc, json_member(&l->doc, plan, "requested"));
	     n != NULL; n = json_next(&l->doc, n)) {
		const char *item = record_value(n);
		if (item != NULL) {
			take_asked(r, item);
		}
	}
	JSON_EACH (n, &l->doc, json_member(&l->doc, plan, "env_preset")) {
		const char *name = record_value(n);
		r->nomem |= name != NULL && r->preset.n < 4UL * MAX_GRANTS &&
		            string_list_add_once(&r->preset, name, 4UL * MAX_GRANTS) != 0;
	}
	if (r->home == NULL) {
		r->home = strdup(home != NULL && home[0] == '/' ? home : r->owner->home);
		r->nomem |= r->home == NULL;
	}
	r->begun = true;
}

/* ---- the whole ------------------------------------------------------------------- */

static void take_line(struct record_reading *r, const struct line *l)
{
	if (l->kind == EV_RUN) {
		take_run(r, l);
	} else if (line_get(l, "repeat_of") == NULL) {
		record_event(r, l);
	}
}

static int each_line(struct record_reading *r, int fd,
                     void (*take)(struct record_reading *, const struct line *),
                     struct ssb_error *err)
{
	AUTO(reader_done) struct reader in;
	AUTO(line_done) struct line l = { 0 };
	const char *text = NULL;
	const char *why = NULL;
	size_t len = 0;
	enum reader_line got;

	reader_init(&in, fd, 0);
	for (uint64_t at = 1; (got = reader_next(&in, &text, &len)) == READER_LINE; at++) {
		if (at == 1 && reader_is_header(text, len)) {
			continue;
		}
		if (line_parse(&l, text, len, &why) != 0) {
			return ssb_fail(err, SSB_E_MANIFEST, 0, "record",
			                "%s: line %llu is not a record (%s); see 'skillsandbox "
			                "audit verify'",
			                r->why, (unsigned long long)at, why);
		}
		take(r, &l);
		if (r->nomem) {
			return ssb_fail(err, SSB_E_NOMEM, 0, "record", "out of memory");
		}
	}
	if (got == READER_FAIL) {
		return ssb_fail(err, SSB_E_SYS, errno, "record", "cannot read the record");
	}
	return got != READER_LONG
	               ? 0
	               : ssb_fail(err, SSB_E_LIMIT, 0, "record", "%s: a line is too long", r->why);
}

int needs_from_record(const struct owner *o, int fd, const char *why, struct needs *inout,
                      struct ssb_error *err)
{
	assert(fd >= 0 && why != NULL);

	AUTO(record_reading_done)
	struct record_reading r = { .owner = o, .out = inout, .why = why };

	if (each_line(&r, fd, look_ahead, err) != 0) {
		return -1;
	}
	sort_repeats(&r);
	if (each_line(&r, fd, take_line, err) != 0) {
		return -1;
	}
	if (!r.begun) {
		return ssb_fail(err, SSB_E_MANIFEST, 0, "record",
		                "%s: this is not the record of a run", why);
	}
	needs_drop_aimed(inout);
	return needs_judge(o, NULL, inout, err);
}

int needs_from_run(const struct owner *o, const char *word, struct needs *inout,
                   struct ssb_error *err)
{
	AUTO(run_file_done) struct run_file file = RUN_FILE_NONE;
	auto_free char *why = NULL;

	if (run_file_open(&file, o->state_dir, word, err) != 0) {
		return -1;
	}
	int n = file.id[0] != '\0' ? asprintf(&why, "run %.8s", file.id)
	                           : asprintf(&why, "%s", file.path);
	if (n < 0) {
		why = NULL;
		return ssb_fail(err, SSB_E_NOMEM, 0, "record", "out of memory");
	}
	return needs_from_record(o, file.fd, why, inout, err);
}

/* ---- the runs of a skill ----------------------------------------------------
 *
 * A run belongs to the skill whose directory its plan names. The name of a skill does not
 * count: any skill can use it. */

/* Returns the skill's own directory, or NULL if there was none. */
static const char *skill_of(const struct line *l)
{
	const struct json_node *plan = line_get(l, "plan");
	const char *dir = json_string(json_member(&l->doc, plan, "skill_dir"), NULL);
	const struct json_node *files =
	        json_member(&l->doc, json_member(&l->doc, plan, "granted"), "files");

	for (const struct json_node *n = json_first(&l->doc, files); dir == NULL && n != NULL;
	     n = json_next(&l->doc, n)) {
		const char *origin = json_string(json_member(&l->doc, n, "origin"), "");
		if (grant_origin_from(origin) == ORIGIN_SKILL) {
			dir = json_string(json_member(&l->doc, n, "path"), NULL);
		}
	}
	return dir;
}

/* Returns true if the run is of the skill in `dir`. If the plan was too large for its line, the
 * path of the manifest shows the directory. */
static bool is_run_of(const struct line *l, const char *dir)
{
	const char *skill = skill_of(l);
	const char *manifest = line_text(l, "manifest");

	if (skill != NULL) {
		return strcmp(skill, dir) == 0;
	}
	const char *rest = manifest != NULL ? path_beneath(manifest, dir) : NULL;
	return rest != NULL && strcmp(rest, MANIFEST_FILE) == 0;
}

/* Returns true if the record contains everything that the run did. A record is incomplete if the
 * run was not observed, or has not ended. */
static bool is_whole(int fd, const struct line *l, const char *id)
{
	struct run_facts facts = { 0 };
	const char *audit = line_text(l, "audit");

	return audit != NULL && audit_level_from_name(audit) == AUDIT_FULL &&
	       run_facts_read(&facts, fd, id) == 0 && facts.state == RUN_ENDED;
}

int needs_runs_of(const struct owner *o, const char *dir, bool whole, struct string_list *ret,
                  size_t *ret_part, struct ssb_error *err)
{
	AUTO(runs_done) struct runs runs = RUNS_NONE;
	AUTO(string_list_done) struct string_list found = { 0 };
	AUTO(line_done) struct line l = { 0 };
	size_t part = 0;

	if (runs_open(&runs, o->state_dir, err) != 0) {
		return -1;
	}
	runs_stat(&runs);
	for (size_t i = 0; i < runs.n; i++) {
		auto_fd fd = runs_record(&runs, &runs.v[i]);
		if (fd < 0 || !line_read_run(&l, fd) || !is_run_of(&l, dir)) {
			continue;
		}
		if (whole && !is_whole(fd, &l, runs.v[i].id)) {
			part++;
		} else if (string_list_add(&found, runs.v[i].id, MAX_RUNS) != 0) {
			return ssb_fail(err, SSB_E_NOMEM, 0, "", "out of memory");
		}
	}
	*ret = found;
	found = (struct string_list){ 0 };
	if (ret_part != NULL) {
		*ret_part = part;
	}
	return 0;
}
