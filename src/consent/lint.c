/* lint.c - checks one skill: its manifest, then each of its files. */
#include "consent/lint.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "consent/lint_priv.h"
#include "os/file.h"
#include "os/tree.h"
#include "policy/path.h"
#include "skill/skill.h"

/* ---- files ------------------------------------------------------------------------ */

struct lint_walk {
	struct lint *out;
	int top;
	size_t left; /* bytes that may still be read */
	bool whole;  /* true: files that version control keeps are read, too */
	bool cut;    /* some files were not read */
};

static const char *kind_of(mode_t mode)
{
	return S_ISFIFO(mode) ? "a FIFO" : S_ISSOCK(mode) ? "a socket" : "a device";
}

/* Reports a link that leads out of the skill. If the target is missing, the link is reported
 * only if its path leads out. */
static void look_at_link(struct lint_walk *w, const struct tree_entry *e)
{
	auto_fd fd = file_openat2(w->top, e->path, O_PATH, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);

	if (fd < 0 && errno != ENOENT) {
		lint_add(w->out, LINT_SYMLINK, e->path, 0, "this symlink leads out of the skill");
	}
}

static void read_file(struct lint_walk *w, const struct tree_entry *e)
{
	auto_buf bytes;
	struct stat st;
	size_t cap = w->left < MAX_LINT_FILE ? w->left : MAX_LINT_FILE;
	auto_fd fd = -1;

	buf_init(&bytes, cap);
	/* O_NONBLOCK: a FIFO that replaced the file must not block us. */
	fd = openat(e->dir, e->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		lint_add(w->out, LINT_INCOMPLETE, e->path, 0, "the file cannot be read");
		return;
	}
	int rc = file_read_all(fd, &bytes);
	if (rc != 0) {
		lint_add(w->out, LINT_INCOMPLETE, e->path, 0,
		         "only the beginning of the file was checked");
	}
	w->left -= bytes.len < w->left ? bytes.len : w->left;
	if (bytes.len > 0) {
		lint_bytes(w->out, e->path, (st.st_mode & 0111) != 0, bytes.data, bytes.len);
	}
}

static bool look_at(void *arg, const struct tree_entry *e)
{
	struct lint_walk *w = arg;
	mode_t mode = e->st.st_mode;

	if (!w->whole && skill_is_foreign(e->path, strlen(e->path))) {
		return false;
	}
	if (S_ISLNK(mode)) {
		look_at_link(w, e);
		return false;
	}
	if (!S_ISREG(mode) && !S_ISDIR(mode)) {
		lint_add(w->out, LINT_SPECIAL, e->path, 0, "it is %s", kind_of(mode));
		return false;
	}
	if (S_ISREG(mode) && (mode & (S_ISUID | S_ISGID)) != 0) {
		lint_add(w->out, LINT_SETUID, e->path, 0, "the file runs with the rights of its %s",
		         (mode & S_ISUID) != 0 ? "owner" : "group");
	}
	if ((mode & S_IWOTH) != 0 && (mode & S_ISVTX) == 0) {
		lint_add(w->out, LINT_WORLD, e->path, 0, "every user of the machine can change it");
	}
	if (S_ISREG(mode) && w->left > 0) {
		read_file(w, e);
	} else if (S_ISREG(mode) && e->st.st_size > 0) {
		w->cut = true;
	}
	return true;
}

static void look_at_files(struct lint *l, int dir_fd, bool whole)
{
	static const struct tree_caps caps = { MAX_LINT_FILES, MAX_SKILL_DEPTH };
	struct lint_walk w = { .out = l, .top = dir_fd, .left = MAX_LINT_BYTES, .whole = whole };

	if (!tree_walk(dir_fd, &caps, look_at, &w) || w.cut) {
		lint_add(l, LINT_INCOMPLETE, ".", 0,
		         "the skill has too many files, or files that are too large");
	}
}

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

/* Copies the file's name from "dir/file:line:column". */
static const char *file_of(const char *where, char *out, size_t size)
{
	const char *base = path_base(where);
	size_t n = strcspn(base, ":");

	snprintf(out, size, "%.*s", (int)(n < size ? n : size - 1), base);
	return n > 0 && where[0] != '\0' ? out : MANIFEST_FILE;
}

static void add_invalid(struct lint *l, const struct ssb_diags *diags, const struct ssb_error *err)
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

/* Checks the manifest. A derived manifest is not a file, so the findings in it get no line
 * number. */
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

/* The owner's own manifest for the skill is not part of the skill, so it is not checked. */
static int look_at_skill(struct lint *l, const char *dir, int fd, struct ssb_error *err)
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
		add_invalid(l, diags, err);
		*err = (struct ssb_error){ 0 };
	} else {
		return -1;
	}
	look_at_files(l, fd, whole);
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
	if (look_at_skill(&l, dir, fd, err) != 0) {
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
