/* lint_findings.c - the list of findings: adds to it, and writes it for people and programs. */
#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/limits.h"
#include "base/number.h"
#include "base/own.h"
#include "base/visible.h"
#include "consent/lint_priv.h"

#define MAX_TEXT ((size_t)8 * MAX_SCALAR_BYTES) /* most bytes of a finding, made visible */

const struct lint_rule LINT_RULES[LINT_IDS] = {
#define RULE(id, number, name, level, grade, text, remedy)                                         \
	[LINT_##id] = { number, name, LINT_##level, grade, text, remedy },
#include "consent/lint_rules.def"
#undef RULE
};

const char *lint_level_name(enum lint_level l)
{
	static const char *const names[] = { "note", "warning", "error" };

	return names[l];
}

static size_t count_of(const struct lint *l, enum lint_id id, const char *file)
{
	size_t n = 0;

	/* The findings of one file are added one after the other, so the loop ends at another
	 * file. */
	for (size_t i = l->n; i > 0 && strcmp(l->v[i - 1].file, file) == 0; i--) {
		n += l->v[i - 1].id == id;
	}
	return n;
}

static void keep_finding(struct lint *l, struct lint_finding f, size_t most)
{
	struct lint_finding *v = l->n < most ? reallocarray(l->v, l->n + 1, sizeof(*v)) : NULL;

	l->grade = f.grade > l->grade ? f.grade : l->grade;
	l->v = v != NULL ? v : l->v;
	if (v == NULL || f.file == NULL || f.text == NULL) {
		free(f.file);
		free(f.text);
		l->cut = true;
		return;
	}
	v[l->n++] = f;
}

static void add_finding(struct lint *l, struct lint_finding f, const char *file, const char *text,
                        size_t most)
{
	auto_buf seen = BUF(MAX_TEXT);

	if (count_of(l, f.id, file) >= MAX_LINT_SAME) {
		return;
	}
	visible_text(&seen, text, false);
	f.file = strdup(file);
	f.text = buf_steal(&seen);
	keep_finding(l, f, most);
}

void lint_add(struct lint *l, enum lint_id id, const char *file, unsigned line, const char *fmt,
              ...)
{
	assert(id < LINT_IDS && file != NULL && fmt != NULL);

	const struct lint_rule *r = &LINT_RULES[id];
	struct lint_finding f = { .id = id, .level = r->level, .grade = r->grade, .line = line };
	auto_free char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0) {
		text = NULL;
	}
	va_end(ap);
	add_finding(l, f, file, text != NULL ? text : r->text, MAX_LINT_FINDINGS);
}

unsigned lint_line_of(const char *where)
{
	const char *last = strrchr(where, ':');
	const char *s = last;

	while (s != NULL && s > where && s[-1] != ':') {
		s--;
	}
	uint64_t line = 0;

	if (s != NULL && s > where) {
		(void)number_read(s, UINT_MAX, &line);
	}
	return (unsigned)line;
}

void lint_add_cut(struct lint *l)
{
	const struct lint_rule *r = &LINT_RULES[LINT_INCOMPLETE];
	struct lint_finding f = { .id = LINT_INCOMPLETE, .level = r->level, .grade = 'D' };

	add_finding(l, f, ".", "there are more findings than the list can contain",
	            MAX_LINT_FINDINGS + 1);
}

static char softer_grade(char grade)
{
	return grade == 'F' ? 'D' : grade == 'D' ? 'C' : grade;
}

void lint_add_prose(struct lint *l, enum lint_id id, const char *file, unsigned line,
                    const char *text)
{
	assert(id < LINT_IDS && file != NULL && text != NULL);

	const struct lint_rule *r = &LINT_RULES[id];
	struct lint_finding f = { .id = id,
		                  .level = r->level > LINT_WARNING ? LINT_WARNING : r->level,
		                  .grade = softer_grade(r->grade),
		                  .line = line };

	add_finding(l, f, file, text, MAX_LINT_FINDINGS);
}

void lint_done(struct lint *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].file);
		free(l->v[i].text);
	}
	free(l->v);
	free(l->dir);
	free(l->name);
	*l = (struct lint){ 0 };
}

enum lint_level lint_worst(const struct lint *l, bool *ret_any)
{
	enum lint_level worst = LINT_NOTE;

	*ret_any = l->n > 0;
	for (size_t i = 0; i < l->n; i++) {
		worst = l->v[i].level > worst ? l->v[i].level : worst;
	}
	return worst;
}

/* ---- output ----------------------------------------------------------------------- */

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

/* Returns true if the same rule was already given as a reason: each rule is given only once. */
static bool is_repeated(const struct lint *l, size_t i)
{
	return ARRAY_HAS(e, l->v, i, e->id == l->v[i].id && e->grade == l->v[i].grade);
}

static bool is_reason(const struct lint *l, size_t i)
{
	return l->grade > 'A' && l->v[i].grade == l->grade && !is_repeated(l, i);
}

static void put_finding_text(struct buf *out, const struct lint *l, const struct lint_finding *f)
{
	const struct lint_rule *r = &LINT_RULES[f->id];
	auto_buf path = BUF(out->cap);

	lint_path(&path, l, f);
	visible_text(out, path.data != NULL ? path.data : "", false);
	if (f->line > 0) {
		buf_addf(out, ":%u", f->line);
	}
	buf_addf(out, ": %s: %s [%s %s]\n  help: %s\n", lint_level_name(f->level), f->text, r->id,
	         r->name, r->remedy);
}

void lint_text(struct buf *out, const struct lint *l, bool color)
{
	for (size_t i = 0; i < l->n; i++) {
		put_finding_text(out, l, &l->v[i]);
	}
	visible_text(out, l->dir, false);
	const char *look = l->grade <= 'B' ? "\033[32m" : l->grade <= 'D' ? "\033[33m" : "\033[31m";
	buf_addf(out, ": %sgrade %c%s\n", color ? look : "", l->grade, color ? "\033[0m" : "");
	for (size_t i = 0; i < l->n; i++) {
		if (is_reason(l, i)) {
			const struct lint_rule *r = &LINT_RULES[l->v[i].id];
			buf_addf(out, "  %s: %s\n", r->id, r->text);
		}
	}
}

static void put_finding_json(struct json *j, const struct lint_finding *f)
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
	json_kopen(j, "reasons", '[');
	for (size_t i = 0; i < l->n; i++) {
		if (is_reason(l, i)) {
			json_str(j, LINT_RULES[l->v[i].id].text);
		}
	}
	json_close(j, ']');
	json_kopen(j, "findings", '[');
	for (size_t i = 0; i < l->n; i++) {
		put_finding_json(j, &l->v[i]);
	}
	json_close(j, ']');
	json_close(j, '}');
}
