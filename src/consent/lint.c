#include "consent/lint.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "consent/lint_priv.h"
#include "policy/path.h"
#include "skill/skill.h"

static int by_place(const void *a, const void *b)
{
	const struct lint_finding *x = a, *y = b;
	int order = strcmp(x->file, y->file);

	if (order == 0) {
		order = x->line < y->line ? -1 : x->line > y->line;
	}
	if (order == 0) {
		order = x->id < y->id ? -1 : x->id > y->id;
	}
	return order != 0 ? order : strcmp(x->text, y->text);
}

/* ---- the skill -------------------------------------------------------------------- */

/* The name of the file in "dir/file:line:column". */
static const char *file_of(const char *where, char *out, size_t size)
{
	const char *base = path_base(where);
	size_t n = strcspn(base, ":");

	snprintf(out, size, "%.*s", (int)(n < size ? n : size - 1), base);
	return n > 0 && where[0] != '\0' ? out : MANIFEST_FILE;
}

static void not_valid(struct lint *l, const struct ssb_diags *diags, const struct ssb_error *err)
{
	size_t before = l->n;
	char file[NAME_MAX + 1];

	for (size_t i = 0; i < ssb_diags_count(diags); i++) {
		const struct ssb_diag *d = ssb_diags_get(diags, i);
		if (d->severity == SSB_ERROR) {
			lint_add(l, LINT_MANIFEST, file_of(d->where, file, sizeof(file)),
			         lint_line_of(d->where), "%s", d->text);
		}
	}
	if (l->n == before) {
		lint_add(l, LINT_MANIFEST, file_of(err->where, file, sizeof(file)),
		         lint_line_of(err->where), "%s", err->text);
	}
}

/* The lines of a manifest that was derived are nowhere to be seen. */
static void look_at_found(struct lint *l, const struct skill_found *f, int fd)
{
	const char *file = path_base(f->file);
	size_t before = l->n;

	l->name = strdup(f->manifest->name);
	lint_manifest(l, f->manifest, file);
	if (!skill_format_derived(f->format)) {
		lint_entrypoint(l, f->manifest, file, fd);
		return;
	}
	for (size_t i = before; i < l->n; i++) {
		l->v[i].line = 0;
	}
}

/* The owner's own file about the skill is no part of it. */
static int look(struct lint *l, const char *dir, int fd, struct ssb_error *err)
{
	AUTO(diags_freep) struct ssb_diags *diags = ssb_diags_new();
	AUTO(skill_found_done) struct skill_found found = { 0 };

	if (diags == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "lint", "out of memory");
	}
	bool whole = false;
	if (skill_find(dir, NULL, NULL, &found, diags, err) == 0) {
		look_at_found(l, &found, fd);
		whole = lint_starts_foreign(found.manifest, fd);
	} else if (err->code == SSB_E_MANIFEST || err->code == SSB_E_LIMIT) {
		not_valid(l, diags, err);
		*err = (struct ssb_error){ 0 };
	} else {
		return -1;
	}
	lint_files(l, fd, whole);
	return 0;
}

int lint_skill(const char *dir, struct lint *ret, struct ssb_error *err)
{
	AUTO(lint_done) struct lint l = { .dir = strdup(dir), .grade = 'A' };
	auto_fd fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0) {
		return ssb_fail(err, errno == ENOENT ? SSB_E_NOT_FOUND : SSB_E_SYS, errno, "lint",
		                "'%.200s'", dir);
	}
	if (look(&l, dir, fd, err) != 0) {
		return -1;
	}
	if (l.n > 0) {
		qsort(l.v, l.n, sizeof(*l.v), by_place);
	}
	if (l.cut) {
		lint_add_cut(&l);
	}
	*ret = l;
	l = (struct lint){ 0 };
	return 0;
}
