/* lint_say.c - findings for people, and for programs. */
#include <string.h>

#include "base/own.h"
#include "base/visible.h"
#include "consent/lint.h"

void lint_path(struct buf *out, const struct lint *l, const struct lint_finding *f)
{
	size_t n = strlen(l->dir);

	while (n > 1 && l->dir[n - 1] == '/') {
		n--;
	}
	if (n != 1 || l->dir[0] != '.') {
		buf_add(out, l->dir, n);
		buf_adds(out, n == 1 && l->dir[0] == '/' ? "" : "/");
	}
	buf_adds(out, f->file);
}

/* A reason is said once, however often it was found. */
static bool said_before(const struct lint *l, size_t i)
{
	for (size_t k = 0; k < i; k++) {
		if (l->v[k].id == l->v[i].id && l->v[k].grade == l->v[i].grade) {
			return true;
		}
	}
	return false;
}

static bool is_reason(const struct lint *l, size_t i)
{
	return l->grade > 'A' && l->v[i].grade == l->grade && !said_before(l, i);
}

static void finding_text(struct buf *out, const struct lint *l, const struct lint_finding *f)
{
	const struct lint_rule *r = &LINT_RULES[f->id];
	auto_buf path;

	buf_init(&path, out->cap);
	lint_path(&path, l, f);
	visible_text(out, path.data != NULL ? path.data : "", false);
	if (f->line > 0) {
		buf_addf(out, ":%u", f->line);
	}
	buf_addf(out, ": %s: %s [%s %s]\n  help: %s\n", lint_level_name(f->level), f->text, r->id,
	         r->name, r->remedy);
}

void lint_text(struct buf *out, const struct lint *l)
{
	for (size_t i = 0; i < l->n; i++) {
		finding_text(out, l, &l->v[i]);
	}
	visible_text(out, l->dir, false);
	buf_addf(out, ": grade %c\n", l->grade);
	for (size_t i = 0; i < l->n; i++) {
		if (is_reason(l, i)) {
			const struct lint_rule *r = &LINT_RULES[l->v[i].id];
			buf_addf(out, "  %s: %s\n", r->id, r->text);
		}
	}
}

static void finding_json(struct json *j, const struct lint_finding *f)
{
	const struct lint_rule *r = &LINT_RULES[f->id];

	json_open(j, '{');
	json_kstr(j, "rule", r->id);
	json_kstr(j, "name", r->name);
	json_kstr(j, "level", lint_level_name(f->level));
	json_kstr(j, "file", f->file);
	json_kuint(j, "line", f->line);
	json_kstr(j, "text", f->text);
	json_kstr(j, "remedy", r->remedy);
	json_close(j, '}');
}

void lint_json(struct json *j, const struct lint *l)
{
	char grade[] = { l->grade, '\0' };

	json_open(j, '{');
	json_kstr(j, "dir", l->dir);
	json_kstr(j, "name", l->name);
	json_kstr(j, "grade", grade);
	json_key(j, "reasons");
	json_open(j, '[');
	for (size_t i = 0; i < l->n; i++) {
		if (is_reason(l, i)) {
			json_str(j, LINT_RULES[l->v[i].id].text);
		}
	}
	json_close(j, ']');
	json_key(j, "findings");
	json_open(j, '[');
	for (size_t i = 0; i < l->n; i++) {
		finding_json(j, &l->v[i]);
	}
	json_close(j, ']');
	json_close(j, '}');
}
