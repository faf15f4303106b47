/* tool_skills.c - the tools that look at skills without running them: list, validate, inspect. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/diag.h"
#include "base/error.h"
#include "base/name.h"
#include "base/own.h"
#include "base/visible.h"
#include "os/file.h"
#include "policy/path.h"
#include "serve/approve.h"
#include "consent/risk.h"
#include "serve/run_say.h"
#include "serve/show.h"
#include "skill/script.h"
#include "skill/skill.h"

#define SAY_BYTES ((size_t)2 << 20)

/* An answer under construction. Its text and its JSON contain the same facts. */
struct skills_reply {
	struct buf text;
	struct buf structured;
	struct json j;
};

static void reply_begin(struct skills_reply *a)
{
	buf_init(&a->text, SAY_BYTES);
	buf_init(&a->structured, SAY_BYTES);
	json_init(&a->j, &a->structured, false);
	json_open(&a->j, '{');
}

static void reply_done(struct skills_reply *a)
{
	buf_done(&a->text);
	buf_done(&a->structured);
}

static void reply_send(struct skills_reply *a, struct mcp_call *c)
{
	json_close(&a->j, '}');
	if (a->text.failed || a->structured.failed) {
		mcp_tool_fail(c, "limit", "the answer is too large", "ask for less");
		return;
	}
	mcp_tool_done(c, a->text.len > 0 ? a->text.data : "", a->structured.data, false);
}

/* ---- list_skills -------------------------------------------------------------------- */

/* Lists the scripts of a skill without an entrypoint. The caller must name one of them. */
static void list_scripts(struct skills_reply *a, const struct skill *skill)
{
	AUTO(string_list_done) struct string_list all = { 0 };
	auto_fd dir = file_open_nosymlink(skill->dir, O_PATH | O_DIRECTORY);

	if (dir >= 0) {
		script_list(dir, &all);
	}
	json_kopen(&a->j, "scripts", '[');
	for (size_t i = 0; i < all.n && i < MAX_LISTED_SCRIPTS; i++) {
		show_str(&a->j, all.v[i]);
		visible_addf(&a->text, "%s%s", i == 0 ? "  scripts: " : ", ", all.v[i]);
	}
	json_close(&a->j, ']');
	if (all.n > MAX_LISTED_SCRIPTS) {
		buf_addf(&a->text, " and %zu more", all.n - MAX_LISTED_SCRIPTS);
	}
	buf_adds(&a->text, all.n > 0 ? "\n" : "");
}

static void list_one(struct skills_reply *a, const struct serve *s, const struct skill *skill)
{
	AUTO(skill_found_done) struct skill_found found = { 0 };
	struct ssb_error err = { 0 };
	bool valid = skill_find(skill->dir, s->owner.config_dir, NULL, &found, NULL, &err) == 0;
	const struct manifest *m = found.manifest;

	json_open(&a->j, '{');
	show_kstr(&a->j, "name", skill->name);
	show_kstr(&a->j, "path", skill->dir);
	json_kbool(&a->j, "valid", valid);
	if (valid) {
		json_kstr(&a->j, "format", skill_format_name(found.format));
		const char *version = skill_version(&found);
		show_kstr(&a->j, "version", version);
		show_kstr(&a->j, "description", m->description);
		visible_addf(&a->text, "%s%s%s%s%s\n", skill->name, version[0] != '\0' ? " " : "",
		             version, m->description[0] != '\0' ? ": " : "", m->description);
		if (found.no_entry) {
			list_scripts(a, skill);
		}
	} else {
		show_kstr(&a->j, "problem", err.text);
		visible_addf(&a->text, "%s: not valid: %s\n", skill->name, err.text);
	}
	json_close(&a->j, '}');
}

/* Resolves the path of a directory. Fails unless a served skill is in the directory. */
static int take_directory(const char *word, const struct skill *v, size_t n, char **ret,
                          struct ssb_error *err)
{
	auto_free char *real = word == NULL ? NULL : realpath(word, NULL);
	bool served =
	        real != NULL && ARRAY_HAS(skill, v, n, path_beneath(skill->dir, real) != NULL);

	if (word != NULL && !served) {
		return ssb_fail(
		        err, SSB_E_POLICY, 0, "directory",
		        "no served skill is in '%.200s'; without a directory all skills are "
		        "listed, and only the owner can serve more (skillsandbox serve "
		        "--skills DIR)",
		        word);
	}
	*ret = steal_ptr(&real);
	return 0;
}

void tool_list_skills(void *app, struct mcp_call *c)
{
	struct serve *s = app;
	AUTO(reply_done) struct skills_reply a = { 0 };
	auto_free char *within = NULL;
	const struct skill *v = NULL;
	struct ssb_error err = { 0 };
	size_t n = 0;

	if (skills_list(s->skills, &v, &n, &err) != 0 ||
	    take_directory(mcp_arg_string(c, "directory"), v, n, &within, &err) != 0) {
		run_say_error(c, &err);
		return;
	}
	reply_begin(&a);
	json_kopen(&a.j, "skills", '[');
	for (size_t i = 0; i < n; i++) {
		if (within == NULL || path_beneath(v[i].dir, within) != NULL) {
			list_one(&a, s, &v[i]);
		}
	}
	json_close(&a.j, ']');
	if (a.text.len == 0) {
		buf_adds(&a.text, "this server serves no skills: the owner names directories with "
		                  "skillsandbox serve --skills DIR\n");
	}
	reply_send(&a, c);
}

/* ---- validate_skill ------------------------------------------------------------------- */

static void say_finding(struct skills_reply *a, const struct ssb_diag *d)
{
	json_open(&a->j, '{');
	json_kstr(&a->j, "severity", name_of_finding(d->severity));
	show_kstr(&a->j, "where", d->where);
	show_kstr(&a->j, "text", d->text);
	show_kstr(&a->j, "fix", d->remedy);
	json_close(&a->j, '}');
	visible_addf(&a->text, "%s: %s: %s%s%s\n", name_of_finding(d->severity), d->where, d->text,
	             d->remedy[0] != '\0' ? "; " : "", d->remedy);
}

void tool_validate_skill(void *app, struct mcp_call *c)
{
	struct serve *s = app;
	AUTO(reply_done) struct skills_reply a = { 0 };
	AUTO(diags_freep) struct ssb_diags *diags = ssb_diags_new();
	const struct skill *skill = NULL;
	struct ssb_error err = { 0 };

	if (diags == NULL || skills_find(s->skills, mcp_arg_string(c, "path"), &skill, &err) != 0) {
		run_say_error(c, &err);
		return;
	}
	bool valid = ssb_validate(skill->dir, diags, &err) == 0;
	reply_begin(&a);
	show_kstr(&a.j, "name", skill->name);
	json_kbool(&a.j, "valid", valid);
	visible_text(&a.text, skill->name, false);
	buf_adds(&a.text, valid ? ": the manifest is valid\n" : ": the manifest is NOT valid\n");
	json_kopen(&a.j, "findings", '[');
	for (size_t i = 0; i < ssb_diags_count(diags); i++) {
		say_finding(&a, ssb_diags_get(diags, i));
	}
	json_close(&a.j, ']');
	reply_send(&a, c);
}

/* ---- inspect_skill ---------------------------------------------------------------------- */

static int inspect_skill(struct approve_case *k, struct skills_reply *a, struct ssb_error *err)
{
	const struct ssb_plan *plan = NULL;

	if (approve_preview(k, &plan, err) != 0) {
		return -1;
	}
	auto_free char *words = ssb_plan_text(plan);
	auto_free char *json = plan_json(plan, NULL, false);
	if (words == NULL || json == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "plan", "out of memory");
	}
	reply_begin(a);
	show_kstr(&a->j, "name", k->skill.name);
	json_kbool(&a->j, "runs", plan->n_refusals == 0);
	risk_json(&a->j, plan);
	run_json_refusals(&a->j, plan);
	json_key(&a->j, "plan");
	show_json(&a->j, json, strlen(json));
	visible_text(&a->text, words, true);
	buf_addc(&a->text, '\n');
	risk_text(&a->text, plan);
	return 0;
}

void tool_inspect_skill(void *app, struct mcp_call *c)
{
	AUTO(approve_done) struct approve_case k = { 0 };
	AUTO(reply_done) struct skills_reply a = { 0 };
	struct ssb_error err = { 0 };

	if (approve_begin(&k, app, c, mcp_arg_string(c, "skill_dir"), &err) != 0 ||
	    inspect_skill(&k, &a, &err) != 0) {
		run_say_error(c, &err);
	} else {
		reply_send(&a, c);
	}
}
