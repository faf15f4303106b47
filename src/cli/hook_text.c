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

/* The start of the word that contains `at`. */
static const char *find_word(const char *text, const char *at)
{
	while (at > text && strchr(" \t\r\n;&|<>()`", at[-1]) == NULL) {
		at--;
	}
	return at;
}

/* Is the word at `word` the argument of `cd`, or of an option that takes a directory or a file? */
static bool is_argument(const char *text, const char *word)
{
	const char *end = word;

	while (end > text && (end[-1] == ' ' || end[-1] == '\t')) {
		end--;
	}
	const char *before = find_word(text, end);
	auto_free char *name = strndup(before, (size_t)(end - before));

	return end < word && (name == NULL || hook_programs_list(MOVERS, name));
}

/* Is the text up to `end` an option, "-C" or "-sf", so that its value is attached to it? */
static bool is_option(const char *word, const char *end)
{
	bool option = end - word > 1 && word[0] == '-';

	for (word++; word < end; word++) {
		option = option && isalpha((unsigned char)*word) != 0;
	}
	return option;
}

/* Is the name, which the text contains at `at`, that of a directory there? */
static bool is_used(const struct hook_text *t, const char *text, const char *at, size_t len,
                    bool root)
{
	const char *word = find_word(text, at);
	const char before = at > text ? at[-1] : '\0', after = at[len];
	bool option = is_option(word, at);

	/* A module of Python: "skills.x". */
	for (size_t i = 0; i < t->roots.n && before == '.'; i++) {
		size_t n = strlen(t->roots.v[i]) + 1;
		if ((size_t)(at - text) >= n && strncmp(at - n, t->roots.v[i], n - 1) == 0) {
			return true;
		}
	}
	if ((is_of_name(before) && !option) ||
	    (is_of_name(after) && !(after == '.' && option && before == 'm'))) {
		return false;
	}
	if (root && before != '\0' && strchr("=:", before) != NULL) {
		return true;
	}
	return before == '/' || after == '/' || after == '.' ||
	       (option && strchr("CDf", before) != NULL) ||
	       (at == word && (root || is_argument(text, word)));
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
