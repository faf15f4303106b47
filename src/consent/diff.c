/* diff.c - compares the files and the requests of two states of a skill. */
#include "consent/diff.h"

#include <assert.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/string_list.h"
#include "base/tail.h"
#include "consent/words.h"
#include "policy/path.h"
#include "skill/skill.h"

#define MAX_ITEMS ((size_t)8 * MAX_LIST_ITEMS)

static const struct {
	const char *name; /* in JSON */
	const char *mark;
	const char *words;
} CHANGES[] = {
	[CHANGE_ADDED] = { "added", "  + ", "new" },
	[CHANGE_REMOVED] = { "removed", "  - ", "removed" },
	[CHANGE_CONTENT] = { "content", "  ~ ", "changed" },
	[CHANGE_MODE] = { "mode", "  ~ ", "its mode changed" },
};

static const char *const KINDS[FILE_KINDS] = {
	[FILE_MANIFEST] = "manifest",     [FILE_ENTRY] = "entry point",
	[FILE_EXECUTABLE] = "executable", [FILE_CODE] = "code",
	[FILE_OTHER] = "other",
};

/* Names of files that a program executes or loads, or in which a program finds commands. */
static const char *const CODE[] = {
	"*.py",          "*.pyw",    "*.pyc",
	"*.pyd",         "*.pth",    "*.sh",
	"*.bash",        "*.zsh",    "*.fish",
	"*.ksh",         "*.js",     "*.mjs",
	"*.cjs",         "*.jsx",    "*.ts",
	"*.mts",         "*.cts",    "*.tsx",
	"*.node",        "*.wasm",   "*.rb",
	"*.pl",          "*.pm",     "*.php",
	"*.lua",         "*.r",      "*.jl",
	"*.tcl",         "*.awk",    "*.ps1",
	"*.so",          "*.so.*",   "*.a",
	"*.o",           "*.jar",    "*.class",
	"*.go",          "*.rs",     "*.c",
	"*.h",           "*.cc",     "*.cpp",
	"*.mk",          "Makefile", "Dockerfile*",
	"package*.json", ".npmrc",   "*.toml",
	"setup.cfg",     "*.ini",    "requirements*.txt",
	"*.whl",         "*.zip",    "*.egg",
};

void diff_done(struct diff *d)
{
	free(d->files);
	string_list_done(&d->more);
	string_list_done(&d->less);
	*d = (struct diff){ 0 };
}

static bool same_link(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool same_bytes(const struct skill_file *a, const struct skill_file *b)
{
	return a->dir == b->dir && a->size == b->size && same_link(a->link, b->link) &&
	       memcmp(a->sha256, b->sha256, sizeof(a->sha256)) == 0;
}

static bool is_code(const char *path)
{
	return ARRAY_HAS(code, CODE, ARRAY_LEN(CODE),
	                 fnmatch(*code, path_base(path), FNM_CASEFOLD) == 0);
}

/* Returns true if the plan's command names this file. For main.py it may be "/skill/main.py" or
 * "main.py". */
static bool is_entry(const struct ssb_plan *plan, const char *path)
{
	return plan != NULL &&
	       (ARRAY_HAS(word, plan->argv.v, plan->argv.n, tail_behind(*word, '/', path)) ||
	        (plan->format == SKILL_SKILLWARE && strcmp(path, "skill.py") == 0));
}

static bool can_execute(const struct skill_file *f)
{
	return f != NULL && skill_file_executable(f);
}

static enum file_kind kind_of(const struct ssb_plan *plan, const struct file_change *f)
{
	const struct skill_file *any = f->now != NULL ? f->now : f->before;
	bool link = (f->now != NULL && f->now->link != NULL) ||
	            (f->before != NULL && f->before->link != NULL);

	assert(any != NULL);
	return skill_file_names_one(any->path)                 ? FILE_MANIFEST
	       : is_entry(plan, any->path)                     ? FILE_ENTRY
	       : can_execute(f->now) || can_execute(f->before) ? FILE_EXECUTABLE
	       : link || is_code(any->path)                    ? FILE_CODE
	                                                       : FILE_OTHER;
}

static int by_kind(const void *a, const void *b)
{
	const struct file_change *x = a, *y = b;
	const struct skill_file *of_x = x->now != NULL ? x->now : x->before;
	const struct skill_file *of_y = y->now != NULL ? y->now : y->before;

	return x->kind != y->kind ? (int)x->kind - (int)y->kind : strcmp(of_x->path, of_y->path);
}

static void add_file(struct diff *d, const struct skill_file *before, const struct skill_file *now,
                     const struct ssb_plan *plan)
{
	enum change c = before == NULL             ? CHANGE_ADDED
	                : now == NULL              ? CHANGE_REMOVED
	                : !same_bytes(before, now) ? CHANGE_CONTENT
	                                           : CHANGE_MODE;

	if (c != CHANGE_MODE || skill_file_mode(before) != skill_file_mode(now)) {
		struct file_change f = { .change = c, .before = before, .now = now };
		f.kind = kind_of(plan, &f);
		d->files[d->n_files++] = f;
	}
}

/* Both lists are sorted by path. */
static int compare_files(struct diff *d, const struct skill_files *before,
                         const struct skill_files *now, const struct ssb_plan *plan)
{
	size_t i = 0, k = 0;

	d->files = calloc(before->n + now->n + 1, sizeof(*d->files));
	while (d->files != NULL && (i < before->n || k < now->n)) {
		int order = i == before->n ? 1
		            : k == now->n  ? -1
		                           : strcmp(before->v[i].path, now->v[k].path);
		const struct skill_file *old = order <= 0 ? &before->v[i++] : NULL;
		const struct skill_file *new = order >= 0 ? &now->v[k++] : NULL;
		add_file(d, old, new, plan);
	}
	if (d->files == NULL) {
		return -1;
	}
	qsort(d->files, d->n_files, sizeof(*d->files), by_kind);
	return 0;
}

/* Leaves out the requests that the owner added, because the skill itself does not ask for them. */
static int drop_remembered(struct string_list *items, const struct lock *l)
{
	for (size_t i = 0; i < l->n_allowed; i++) {
		auto_free char *item = given_item(l->allowed[i].option, l->allowed[i].value);
		if (item == NULL) {
			return -1;
		}
		string_list_drop(items, item);
	}
	return 0;
}

/* Adds to *ret the items of `from` that are not in `in`. */
static int compare_items(struct string_list *ret, const struct string_list *from,
                         const struct string_list *in)
{
	for (size_t i = 0; i < from->n; i++) {
		if (!string_list_has(in, from->v[i]) &&
		    string_list_add_once(ret, from->v[i], MAX_ITEMS) != 0) {
			return -1;
		}
	}
	return 0;
}

int diff_make(const struct lock *before, const struct skill_files *now, const struct ssb_plan *plan,
              struct diff *ret)
{
	AUTO(diff_done) struct diff d = { 0 };
	const struct string_list *asked = plan != NULL ? &plan->requested : NULL;

	if (compare_files(&d, &before->files, now, plan) != 0 ||
	    (asked != NULL && (compare_items(&d.more, asked, &before->asked) != 0 ||
	                       compare_items(&d.less, &before->asked, asked) != 0 ||
	                       drop_remembered(&d.more, before) != 0))) {
		return -1;
	}
	d.same = d.n_files == 0 && d.more.n == 0 && d.less.n == 0;
	*ret = d;
	d = (struct diff){ 0 };
	return 0;
}

/* ---- text ---------------------------------------------------------------- */

static void put_color_line(struct buf *out, bool color, const char *code, const char *mark,
                           const struct buf *text)
{
	out->failed |= text->failed;
	if (!out->failed) {
		buf_adds(out, color ? code : "");
		words_fold(out, mark, text->data, WORDS_COLUMNS);
		buf_adds(out, color ? "\033[0m" : "");
	}
}

static void put_file_line(struct buf *out, const struct file_change *f, bool color)
{
	const struct skill_file *any = f->now != NULL ? f->now : f->before;
	auto_buf text = BUF(16UL * MAX_WORD_BYTES);

	words_quote(&text, any->path);
	buf_addf(&text, ": %s", CHANGES[f->change].words);
	if (f->change == CHANGE_CONTENT && f->before != NULL && f->now != NULL) {
		buf_addf(&text, ", %ju to %ju bytes", (uintmax_t)f->before->size,
		         (uintmax_t)f->now->size);
	}
	if (f->before != NULL && f->now != NULL && f->before->mode != f->now->mode) {
		buf_addf(&text, ", mode %03o to %03o", f->before->mode, f->now->mode);
	}
	if (f->now != NULL && f->now->link != NULL) {
		buf_adds(&text, ", a link to ");
		words_quote(&text, f->now->link);
	} else if (f->now != NULL && f->now->dir) {
		buf_adds(&text, ", an empty directory");
	} else if (f->now != NULL && (f->now->mode & 0111) != 0 &&
	           (f->before == NULL || (f->before->mode & 0111) == 0)) {
		buf_adds(&text, ", can be executed");
	}
	put_color_line(out, color, "\033[33m", CHANGES[f->change].mark, &text);
}

static void add_items(struct buf *out, const char *mark, const struct string_list *l, bool color,
                      const char *code)
{
	for (size_t i = 0; i < l->n; i++) {
		auto_buf text = BUF(16UL * MAX_WORD_BYTES);

		words_plain(&text, l->v[i]);
		put_color_line(out, color, code, mark, &text);
	}
}

void diff_asks(struct buf *out, const struct diff *d, bool color)
{
	if (d->more.n > 0) {
		buf_adds(out, "The skill asks for more than you approved:\n");
		add_items(out, "  + ", &d->more, color, "\033[31m");
	}
	if (d->less.n > 0) {
		buf_adds(out, "The skill does not ask for these any more:\n");
		add_items(out, "  - ", &d->less, color, "\033[32m");
	}
}

void diff_kinds(struct buf *out, const struct diff *d, size_t from)
{
	size_t n[FILE_KINDS] = { 0 };
	const char *before = "";

	for (size_t i = from; i < d->n_files; i++) {
		n[d->files[i].kind]++;
	}
	for (size_t i = 0; i < FILE_KINDS; i++) {
		if (n[i] > 0) {
			buf_addf(out, "%s%zu %s", before, n[i], KINDS[i]);
			before = ", ";
		}
	}
}

void diff_files(struct buf *out, const struct diff *d, bool color, size_t most)
{
	if (d->n_files > 0) {
		buf_addf(out, "%zu file%s changed since you approved the skill:\n", d->n_files,
		         d->n_files == 1 ? " has" : "s have");
	}
	size_t n = most == 0 || d->n_files < most ? d->n_files : most;
	for (size_t i = 0; i < n; i++) {
		put_file_line(out, &d->files[i], color);
	}
	if (n < d->n_files) {
		buf_addf(out, "  and %zu more: ", d->n_files - n);
		diff_kinds(out, d, n);
		buf_adds(out, "\n");
	}
}

/* The requests come first: all of them are always shown. */
void diff_text(struct buf *out, const struct diff *d, bool color, size_t most)
{
	if (d->same) {
		buf_adds(out, "Nothing has changed since you approved the skill.\n");
		return;
	}
	diff_asks(out, d, color);
	diff_files(out, d, color, most);
}

/* ---- JSON ---------------------------------------------------------------- */

static void put_side(struct json *j, const char *key, const struct skill_file *f)
{
	char digest[DIGEST_TEXT];
	char mode[8];

	json_key(j, key);
	if (f == NULL) {
		json_null(j);
		return;
	}
	snprintf(mode, sizeof(mode), "%04o", f->mode & 07777);
	json_open(j, '{');
	json_kuint(j, "size", f->size);
	json_kstr(j, "mode", mode);
	json_kstr(j, "digest", f->link == NULL && !f->dir ? digest_text(f->sha256, digest) : NULL);
	json_kstr(j, "link", f->link);
	json_close(j, '}');
}

void diff_json(struct json *j, const struct diff *d)
{
	json_open(j, '{');
	json_kbool(j, "same", d->same);
	json_kstrs(j, "more", d->more.v, d->more.n);
	json_kstrs(j, "less", d->less.v, d->less.n);
	json_kopen(j, "files", '[');
	for (size_t i = 0; i < d->n_files; i++) {
		const struct file_change *f = &d->files[i];
		json_open(j, '{');
		json_kstr(j, "path", f->now != NULL ? f->now->path : f->before->path);
		json_kstr(j, "change", CHANGES[f->change].name);
		put_side(j, "before", f->before);
		put_side(j, "now", f->now);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_close(j, '}');
}
