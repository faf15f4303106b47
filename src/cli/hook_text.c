/* hook_text.c - see hook_text.h. */
#include "cli/hook_text.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/own.h"
#include "cli/hook_programs.h"
#include "policy/path.h"

/* Words before the name of a directory. Others, such as `--to pdf`, rather name something else. */
static const char MOVERS[] =
        "cd pushd chdir -*[CDfw] --*dir* --*file --prefix --cwd --project --wd --workspace";

#define MAX_MOVER 32 /* bytes of such a word */

/* Drops what a shell drops: quotes, backslashes, and a new line behind a backslash. */
static void strip_text(struct buf *out, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\\' && i + 1 < len && text[i + 1] == '\n') {
			i++;
		} else if (text[i] != '\0' && strchr("'\"\\", text[i]) == NULL) {
			buf_addc(out, text[i]);
		}
	}
	buf_addc(out, '\0');
}

static void add_name(struct hook_text *t, struct string_list *l, const char *name)
{
	auto_buf plain;

	buf_init(&plain, MAX_PATH_BYTES);
	strip_text(&plain, name, strlen(name));
	t->incomplete = t->incomplete || plain.failed ||
	                (plain.data[0] != '\0' &&
	                 string_list_add_once(l, plain.data, MAX_HOOK_SKILLS) != 0);
}

static void close_dir(DIR **d)
{
	if (*d != NULL) {
		(void)closedir(*d);
	}
}

/* `root`: the name of the directory itself; NULL: it is not to be learned. */
static void learn_directory(struct hook_text *t, const struct hook_skill_places *p,
                            const char *above, const char *below, const char *root)
{
	auto_free char *dir = path_from(above, below);
	AUTO(close_dir) DIR *d = dir != NULL ? opendir(dir) : NULL;
	const struct dirent *e = NULL;

	t->incomplete = t->incomplete || dir == NULL;
	while (d != NULL && (e = readdir(d)) != NULL) {
		bool may_be = e->d_type == DT_DIR || e->d_type == DT_LNK || e->d_type == DT_UNKNOWN;
		if (!may_be || strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) {
			continue;
		}
		auto_free char *skill = path_from(dir, e->d_name);
		if (skill != NULL && hook_skill_is_one(p, skill)) {
			add_name(t, &t->skills, e->d_name);
			if (root != NULL) {
				add_name(t, &t->roots, root);
			}
		}
	}
}

static void learn_above(struct hook_text *t, const struct hook_skill_places *p, const char *dir)
{
	auto_free char *at = dir != NULL ? strdup(dir) : NULL;

	if (at != NULL) {
		learn_directory(t, p, at, ".", NULL);
	}
	while (at != NULL) {
		learn_directory(t, p, at, "skills", "skills");
		learn_directory(t, p, at, ".claude/skills", NULL);
		char *up = strcmp(at, "/") != 0 ? path_parent(at) : NULL;
		free(at);
		at = up;
	}
}

void hook_text_learn(struct hook_text *t, const struct hook_skill_places *p)
{
	for (size_t i = 0; i < p->n; i++) {
		learn_above(t, p, p->v[i]);
	}
	learn_above(t, p, p->project);
	if (p->home != NULL) {
		learn_directory(t, p, p->home, "skills", "skills");
		learn_directory(t, p, p->home, ".claude/skills", NULL);
	}
}

void hook_text_done(struct hook_text *t)
{
	string_list_done(&t->skills);
	string_list_done(&t->roots);
}

static bool is_of_name(char c)
{
	return isalnum((unsigned char)c) != 0 || (c != '\0' && strchr("_.-", c) != NULL);
}

/* Is `at` the start of a word? */
static bool is_start(const char *text, const char *at)
{
	return at == text || strchr(" \t\r\n;&|<>()`", at[-1]) != NULL;
}

/* Is the word at `at` the argument of `cd`, or of an option that takes a directory or a file? */
static bool is_argument(const char *text, const char *at)
{
	const char *end = at;

	while (end > text && (end[-1] == ' ' || end[-1] == '\t')) {
		end--;
	}
	const char *word = end;
	while (end - word < MAX_MOVER && !is_start(text, word)) {
		word--;
	}
	auto_free char *name = strndup(word, (size_t)(end - word));
	return end < at && (name == NULL || hook_programs_list(MOVERS, name));
}

/* Is a short option such as "-C" or "-sf" attached to what is at `at`? */
static bool is_attached(const char *text, const char *at)
{
	const char *word = at;

	while (word > text && at - word < MAX_MOVER && isalpha((unsigned char)word[-1]) != 0) {
		word--;
	}
	return word < at && word > text && word[-1] == '-' && is_start(text, word - 1);
}

/* Is the name, which the text contains at `at`, that of a directory there? */
static bool is_used(const struct hook_text *t, const char *text, const char *at, size_t len,
                    bool root)
{
	const char before = at > text ? at[-1] : '\0', after = at[len];
	bool option = is_attached(text, at);
	bool fallback = before == '-' && at - text > 1 && at[-2] == ':'; /* ${X:-spy} */

	/* A module of Python: "skills.x". */
	for (size_t i = 0; i < t->roots.n && before == '.'; i++) {
		size_t n = strlen(t->roots.v[i]) + 1;
		if ((size_t)(at - text) >= n && strncmp(at - n, t->roots.v[i], n - 1) == 0) {
			return true;
		}
	}
	if ((is_of_name(before) && !option && !fallback) ||
	    (is_of_name(after) && !(after == '.' && option && before == 'm'))) {
		return false;
	}
	if (root && before != '\0' && strchr("=:", before) != NULL) {
		return true;
	}
	return before == '/' || after == '/' || after == '.' ||
	       (option && strchr("CDf", before) != NULL) ||
	       (is_start(text, at) && (root || is_argument(text, at)));
}

static bool has_name(const struct hook_text *t, const struct string_list *l, const char *text)
{
	for (size_t i = 0; i < l->n; i++) {
		size_t len = strlen(l->v[i]);
		for (const char *at = text; (at = strstr(at, l->v[i])) != NULL; at++) {
			if (is_used(t, text, at, len, l == &t->roots)) {
				return true;
			}
		}
	}
	return false;
}

bool hook_text_is_about(const struct hook_text *t, const char *text, size_t len)
{
	static const char DIRECTORY[] = ".claude";
	auto_buf plain;

	buf_init(&plain, MAX_SHELL_BYTES + 1);
	strip_text(&plain, text, len);
	if (plain.failed || t->incomplete) {
		return true;
	}
	for (const char *at = plain.data; (at = strstr(at, DIRECTORY)) != NULL; at++) {
		if (!is_of_name(at[sizeof(DIRECTORY) - 1])) {
			return true;
		}
	}
	return has_name(t, &t->skills, plain.data) || has_name(t, &t->roots, plain.data);
}

bool hook_text_is_name(const struct hook_text *t, const char *text)
{
	return string_list_has(&t->skills, text) || string_list_has(&t->roots, text);
}
