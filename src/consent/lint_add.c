/* lint_add.c - the list of findings. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/number.h"
#include "base/own.h"
#include "base/visible.h"
#include "consent/lint_priv.h"

#define MAX_TEXT ((size_t)8 * MAX_SCALAR_BYTES) /* of one finding, made visible */

static size_t count_of(const struct lint *l, enum lint_id id, const char *file)
{
	size_t n = 0;

	/* Those of one file stand together, at the end. */
	for (size_t i = l->n; i > 0 && strcmp(l->v[i - 1].file, file) == 0; i--) {
		n += l->v[i - 1].id == id;
	}
	return n;
}

static void keep(struct lint *l, struct lint_finding f, size_t most)
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

static void add(struct lint *l, struct lint_finding f, const char *file, const char *text,
                size_t most)
{
	auto_buf seen;

	buf_init(&seen, MAX_TEXT);
	if (count_of(l, f.id, file) >= MAX_LINT_SAME) {
		return;
	}
	visible_text(&seen, text, false);
	f.file = strdup(file);
	f.text = buf_steal(&seen);
	keep(l, f, most);
}

void lint_add(struct lint *l, enum lint_id id, const char *file, unsigned line, const char *fmt,
              ...)
{
	const struct lint_rule *r = &LINT_RULES[id];
	struct lint_finding f = { .id = id, .level = r->level, .grade = r->grade, .line = line };
	auto_free char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0) {
		text = NULL;
	}
	va_end(ap);
	add(l, f, file, text != NULL ? text : r->text, MAX_LINT_FINDINGS);
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

	add(l, f, ".", "there is more to be said than is kept", MAX_LINT_FINDINGS + 1);
}

static char softer(char grade)
{
	return grade == 'F' ? 'D' : grade == 'D' ? 'C' : grade;
}

void lint_add_prose(struct lint *l, enum lint_id id, const char *file, unsigned line,
                    const char *text)
{
	const struct lint_rule *r = &LINT_RULES[id];
	struct lint_finding f = { .id = id,
		                  .level = r->level > LINT_WARNING ? LINT_WARNING : r->level,
		                  .grade = softer(r->grade),
		                  .line = line };

	add(l, f, file, text, MAX_LINT_FINDINGS);
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
