/* cmd_skills.c - lists skills: format, approval, grade, last run. Executes nothing.
 *
 * A skill that cannot be read is a row with the reason. */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "base/own.h"
#include "base/stamp.h"
#include "base/string_list.h"
#include "base/visible.h"
#include "cli/cli.h"
#include "cli/say.h"
#include "cli/screen.h"
#include "cli/setup_client.h"
#include "consent/consent.h"
#include "consent/lint.h"
#include "policy/owner.h"
#include "policy/path.h"
#include "serve/skills.h"
#include "skill/skill.h"
#include "trace/index.h"

#define NAME_WIDTH 26
#define WHY_WIDTH  50

/* The directories that are searched by default, in the current directory and in your home. The
 * directories of the agents that `setup` knows are searched, too. */
static const char *const PLACES[] = { ".claude/skills", ".agents/skills" };

struct skill_row {
	const struct skill *skill;
	struct ssb_error err; /* set if the skill cannot be read */
	const char *format;
	char name[256]; /* as in the records of its runs */
	const char *approved;
	char grade[2];
	const struct run_facts *last; /* NULL: no recorded run */
};

static int add_place(struct string_list *l, const char *base, const char *name)
{
	auto_free char *path = path_join(base, name);

	return path == NULL                     ? -1
	       : access(path, R_OK | X_OK) == 0 ? string_list_add(l, path, MAX_SERVED)
	                                        : 0;
}

static int find_places(const struct owner *o, struct string_list *ret, struct ssb_error *err)
{
	const struct setup_client *c;
	int failed = 0;

	for (size_t i = 0; i < ARRAY_LEN(PLACES); i++) {
		failed |= add_place(ret, ".", PLACES[i]) | add_place(ret, o->home, PLACES[i]);
	}
	for (size_t i = 0; (c = setup_client_at(i)) != NULL; i++) {
		failed |= add_place(ret, o->home, c->skills);
	}
	return failed != 0 ? ssb_fail(err, SSB_E_NOMEM, 0, "list", "out of memory") : 0;
}

static void find_approval(const struct owner *o, struct skill_row *row)
{
	static const char *const WORDS[] = { [CONSENT_NONE] = "no",
		                             [CONSENT_HOLDS] = "yes",
		                             [CONSENT_CHANGED] = "changed",
		                             [CONSENT_OVER] = "expired" };
	AUTO(consent_found_done) struct consent_found f = { 0 };
	struct ssb_error err = { 0 };

	row->approved =
	        consent_look(o, row->skill->dir, &f, &err) == 0 ? WORDS[f.state] : "unknown";
}

static void fill_row(const struct owner *o, const struct run_facts *runs, size_t n_runs,
                     struct skill_row *row)
{
	AUTO(skill_found_done) struct skill_found found = { 0 };
	AUTO(diags_freep) struct ssb_diags *diags = ssb_diags_new();
	struct lint lint = { 0 };
	struct ssb_error none = { 0 };

	find_approval(o, row);
	if (lint_skill(row->skill->dir, &lint, &none) == 0) {
		row->grade[0] = lint.grade;
		lint_done(&lint);
	}
	if (diags == NULL ||
	    skill_find(row->skill->dir, o->config_dir, NULL, &found, diags, &row->err) != 0) {
		row->err.code = row->err.code == SSB_OK ? SSB_E_NOMEM : row->err.code;
		return;
	}
	row->format = skill_format_name(found.format);
	snprintf(row->name, sizeof(row->name), "%s", found.manifest->name);
	for (size_t i = 0; i < n_runs && row->last == NULL; i++) {
		row->last = strcmp(runs[i].skill, row->name) == 0 ? &runs[i] : NULL;
	}
}

/* ---- text and JSON ------------------------------------------------------------------ */

/* Appends the visible text, cut to `width` columns and filled up to it. */
static void put_cell(struct buf *out, const char *text, size_t width)
{
	auto_buf cell = BUF(SAY_MAX);

	visible_text(&cell, text, false);
	buf_adds(&cell, "");
	screen_cell(out, &cell, width, false);
}

/* Appends how long ago the run began: "3 h ago". */
static void put_age(struct buf *out, const char *started)
{
	static const struct {
		int64_t seconds;
		const char *unit;
	} UNITS[] = { { 86400, "d" }, { 3600, "h" }, { 60, "min" }, { 1, "s" } };
	struct timespec now;
	int64_t us = 0;

	if (!stamp_parse(started, &us) || clock_gettime(CLOCK_REALTIME, &now) != 0) {
		return;
	}
	int64_t age = now.tv_sec - us / 1000000;
	for (size_t i = 0; i < ARRAY_LEN(UNITS); i++) {
		if (age >= UNITS[i].seconds || i + 1 == ARRAY_LEN(UNITS)) {
			buf_addf(out, "%lld %s ago",
			         (long long)(age > 0 ? age / UNITS[i].seconds : 0), UNITS[i].unit);
			return;
		}
	}
}

static void put_row(struct buf *out, const struct skill_row *row)
{
	auto_buf last = BUF(SAY_MAX);

	put_cell(out, row->skill->name, NAME_WIDTH);
	if (row->err.code != SSB_OK) {
		buf_adds(out, "  ");
		say_colour(out, STDOUT_FILENO, SAY_RED, "bad:");
		buf_addc(out, ' ');
		put_cell(out, row->err.text, WHY_WIDTH - 5);
		buf_addc(out, '\n');
		return;
	}
	buf_addf(out, "  %-17s  %-8s  %-5s  ", row->format, row->approved, row->grade);
	if (row->last != NULL) {
		put_age(&last, row->last->started);
		put_cell(out, last.data != NULL ? last.data : "", 11);
		buf_addf(out, " %s",
		         row->last->state != RUN_ENDED ? run_state_name(row->last->state)
		         : row->last->exit_code == 0   ? "ok"
		                                       : "failed");
	} else {
		buf_adds(out, "never");
	}
	buf_addc(out, '\n');
}

static void put_json(struct json *j, const struct skill_row *row)
{
	json_open(j, '{');
	json_kstr(j, "skill", row->skill->name);
	json_kstr(j, "dir", row->skill->dir);
	json_kstr(j, "format", row->format);
	json_kstr(j, "approved", row->approved);
	json_kstr(j, "grade", row->grade[0] != '\0' ? row->grade : NULL);
	json_kstr(j, "error", row->err.code != SSB_OK ? row->err.text : NULL);
	json_key(j, "last_run");
	if (row->last != NULL) {
		run_facts_json(j, row->last);
	} else {
		json_raw(j, "null", 4);
	}
	json_close(j, '}');
}

static int print_skills(const struct owner *o, const struct skill *v, size_t n, bool as_json)
{
	const struct index_ask all = { 0 };
	auto_free struct run_facts *runs = NULL;
	auto_buf out = BUF(SAY_MAX);
	struct json j = JSON_TO(&out, true);
	struct ssb_error none = { 0 };
	size_t n_runs = 0;

	/* If the index cannot be read, no last run is shown, and the rest is still right. */
	(void)index_list(o->state_dir, &all, &runs, &n_runs, &none);
	if (as_json) {
		json_open(&j, '[');
	} else if (n > 0) {
		buf_addf(&out, "%-*s  %-17s  %-8s  %-5s  %s\n", NAME_WIDTH, "skill", "format",
		         "approved", "grade", "last run");
	}
	for (size_t i = 0; i < n; i++) {
		struct skill_row row = { .skill = &v[i] };
		fill_row(o, runs, n_runs, &row);
		if (as_json) {
			put_json(&j, &row);
		} else {
			put_row(&out, &row);
		}
	}
	if (as_json) {
		json_close(&j, ']');
		buf_addc(&out, '\n');
	}
	return (as_json ? say_out : screen_rows)(STDOUT_FILENO, &out);
}

OWN_FREEP(skills_freep, struct skills, skills_free)

int cmd_skills(struct request *r)
{
	AUTO(owner_done) struct owner owner = { 0 };
	AUTO(string_list_done) struct string_list places = { 0 };
	AUTO(skills_freep) struct skills *skills = NULL;
	const struct skill *v = NULL;
	struct ssb_error err = { 0 };
	size_t n = 0, n_dirs = (size_t)r->operands.n;

	if (n_dirs > MAX_SERVED) {
		return say_fail(EXIT_USAGE, "list takes %d directories at most", MAX_SERVED);
	}
	if (owner_load(&owner, &err) != 0 ||
	    (n_dirs == 0 && find_places(&owner, &places, &err) != 0) ||
	    skills_new(n_dirs > 0 ? r->operands.v : places.v, n_dirs > 0 ? n_dirs : places.n,
	               &skills, &err) != 0 ||
	    skills_list(skills, &v, &n, &err) != 0) {
		snprintf(err.where, sizeof(err.where), "list");
		return exit_status_told(&err);
	}
	if (n == 0 && !request_has(r, FLAG_JSON)) {
		say_notef("no skill was found; name a directory of skills, or a skill: "
		          "skillsandbox list .");
		return EXIT_FINE;
	}
	return print_skills(&owner, v, n, request_has(r, FLAG_JSON));
}
