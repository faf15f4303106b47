/* runs.c - which of the recorded runs are of a skill: by the directory that their plan
 * names, for a name is anybody's to take. */
#include <string.h>

#include "trace/reader.h"
#include "trace/runs.h"
#include "trace/run_facts.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/string_list.h"
#include "learn/needs.h"
#include "policy/path.h"

/* The directory that was shown as the skill's own; NULL: none was. */
static const char *skill_of(const struct line *l)
{
	const struct json_node *plan = line_get(l, "plan");
	const char *dir = json_string(json_member(&l->doc, plan, "skill_dir"), NULL);
	const struct json_node *files =
	        json_member(&l->doc, json_member(&l->doc, plan, "granted"), "files");

	for (const struct json_node *n = json_first(&l->doc, files); dir == NULL && n != NULL;
	     n = json_next(&l->doc, n)) {
		if (strcmp(json_string(json_member(&l->doc, n, "origin"), ""), "skill") == 0) {
			dir = json_string(json_member(&l->doc, n, "path"), NULL);
		}
	}
	return dir;
}

/* A plan too large for the line is not in it: then the manifest's path tells. */
static bool is_of(const struct line *l, const char *dir)
{
	const char *skill = skill_of(l);
	const char *manifest = line_text(l, "manifest");

	if (skill != NULL) {
		return strcmp(skill, dir) == 0;
	}
	const char *rest = manifest != NULL ? path_beneath(manifest, dir) : NULL;
	return rest != NULL && strcmp(rest, MANIFEST_FILE) == 0;
}

/* The first line of a record; false: there is none. */
static bool first_line(int fd, struct line *l)
{
	AUTO(reader_done) struct reader in;
	const char *text = NULL;
	const char *why = NULL;
	size_t len = 0;

	reader_init(&in, fd, 0);
	return reader_next(&in, &text, &len) == READER_LINE &&
	       line_parse(l, text, len, &why) == 0 && strcmp(l->kind, "run") == 0;
}

/* Nothing is known of what a run did that was not watched, or has not ended. */
static bool is_whole(int fd, const struct line *l, const char *id)
{
	struct run_facts facts = { 0 };
	const char *audit = line_text(l, "audit");

	return audit != NULL && strcmp(audit, "full") == 0 && run_facts_read(&facts, fd, id) == 0 &&
	       facts.state == RUN_ENDED;
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
		if (fd < 0 || !first_line(fd, &l) || !is_of(&l, dir)) {
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
