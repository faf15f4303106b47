/* hook_skill.c - see hook_skill.h. */
#include "cli/hook_skill.h"

#include <ctype.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/own.h"
#include "manifest/manifest.h"
#include "policy/path.h"
#include "skill/skill.h"

#define MAX_BRACE_DEPTH 16
#define MAX_WILD_PARTS  3 /* of a pattern: more could keep us looking for minutes */

/* Whatever bears the manifest's name makes it a skill, be it what it may. */
bool hook_is_skill(const struct hook_places *p, const char *dir)
{
	auto_free char *file = path_from(dir, MANIFEST_FILE);
	struct stat st;

	if (file != NULL && lstat(file, &st) == 0) {
		return true;
	}
	return skill_is_one(dir) && (p->project == NULL || strcmp(p->project, dir) != 0);
}

/* Cuts `dir` (real) down to the nearest directory of a skill. */
static bool climb(const struct hook_places *p, char *dir)
{
	for (;;) {
		if (hook_is_skill(p, dir)) {
			return true;
		}
		char *slash = strrchr(dir, '/');
		if (slash == NULL || slash == dir) {
			return false; /* the root directory is no skill */
		}
		*slash = '\0';
	}
}

bool hook_skill_of(const struct hook_places *p, const char *dir, const char *path, char **ret)
{
	auto_free char *full = path[0] != '\0' ? path_from(dir, path) : NULL;
	auto_free char *real = full != NULL ? realpath(full, NULL) : NULL;

	if (full == NULL) {
		return false;
	}
	if (real != NULL && climb(p, real)) {
		*ret = steal_ptr(&real);
		return true;
	}
	/* A name that is not there yet counts where it is a path: a word is not one. */
	struct stat st;
	if (lstat(full, &st) != 0 && strchr(path, '/') == NULL) {
		return false;
	}
	/* By the directory in which the name stands, whatever it leads to. */
	auto_free char *above = path_parent(full);
	auto_free char *place = above != NULL ? realpath(above, NULL) : NULL;
	if (place == NULL || !climb(p, place)) {
		return false;
	}
	*ret = steal_ptr(&place);
	return true;
}

/* What stands behind the last part that is not known, which may be empty. */
static const char *known_tail(const char *text)
{
	const char *star = strrchr(text, '*');

	text = star != NULL ? star + 1 : text;
	return text + (star != NULL ? strspn(text, "/") : 0);
}

void hook_places_add(struct hook_places *p, const char *dir, const struct shell_word *to)
{
	_Static_assert(ARRAY_LEN(p->v) == MAX_HOOK_PLACES, "the cap of limits.h");
	const char *text = to == NULL ? "." : to->plain ? to->text : known_tail(to->text);
	auto_free char *full = path_from(dir, text);
	auto_free char *real = full != NULL ? realpath(full, NULL) : NULL;

	for (size_t i = 0; real != NULL && i < p->n; i++) {
		if (strcmp(p->v[i], real) == 0) {
			return;
		}
	}
	if (p->n == ARRAY_LEN(p->v)) {
		p->too_many = true;
	} else if (real != NULL) {
		p->v[p->n++] = steal_ptr(&real);
	}
}

void hook_places_done(struct hook_places *p)
{
	for (size_t i = 0; i < p->n; i++) {
		free(p->v[i]);
	}
	p->n = 0;
	free(p->project);
	p->project = NULL;
}

static bool names_from_any(const struct hook_places *p, const char *path, char **ret)
{
	for (size_t i = 0; i < p->n; i++) {
		char *found = NULL;
		if (hook_skill_of(p, p->v[i], path, &found)) {
			if (*ret != NULL) {
				free(found);
			} else {
				*ret = found;
			}
			return true;
		}
		if (path[0] == '/') {
			break;
		}
	}
	return false;
}

/* Every run of characters that a path may consist of: what a program is given in
 * quotes may be a program itself. */
bool hook_text_names(const struct hook_places *p, const char *text, size_t len, char **ret)
{
	static const char BREAKS[] = " \t\r\n'\"`()[]{}<>|&;=:,$*?!#^\\";
	size_t at = 0;

	while (at < len) {
		size_t n = 0;
		while (at + n < len && strchr(BREAKS, text[at + n]) == NULL) {
			n++; /* a NUL breaks as well: strchr finds the one that ends BREAKS */
		}
		char part[PATH_MAX];
		if (n > 0 && n < sizeof(part)) {
			memcpy(part, text + at, n);
			part[n] = '\0';
			bool of_home = part[0] == '~' && part[1] == '/' && p->home != NULL;
			auto_free char *full = of_home ? path_from(p->home, part + 2) : NULL;
			if (names_from_any(p, full != NULL ? full : part, ret)) {
				return true;
			}
		}
		at += n + 1;
	}
	return false;
}

bool hook_module_names(const struct hook_places *p, const char *text, char **ret)
{
	while (*text != '\0') {
		size_t n = 0;
		while (isalnum((unsigned char)text[n]) != 0 || text[n] == '_' || text[n] == '.') {
			n++;
		}
		char path[PATH_MAX];
		if (n > 0 && n + sizeof(".py") < sizeof(path) && memchr(text, '.', n) != NULL) {
			memcpy(path, text, n);
			path[n] = '\0';
			for (char *dot = path; (dot = strchr(dot, '.')) != NULL;) {
				*dot = '/';
			}
			if (path[0] != '/' && names_from_any(p, path, ret)) {
				return true;
			}
		}
		text += n + (text[n] != '\0');
	}
	return false;
}

static size_t wild_parts(const char *pattern)
{
	size_t n = 0;

	while (*pattern != '\0') {
		size_t len = strcspn(pattern, "/");
		n += strcspn(pattern, "*?[{") < len;
		pattern += len + (pattern[len] == '/');
	}
	return n;
}

static void put_escaped(struct buf *out, const char *text)
{
	for (; *text != '\0'; text++) {
		if (strchr("*?[]{},\\~", *text) != NULL) {
			buf_addc(out, '\\');
		}
		buf_addc(out, *text);
	}
}

/* How many names the braces make of a pattern, at most: of nested ones it counts more
 * than there are. Stops past the cap. */
static size_t expansions(const char *pattern)
{
	size_t n = 1, deep = 0, choices[MAX_BRACE_DEPTH] = { 0 };

	for (; *pattern != '\0' && n <= MAX_HOOK_EXPANSIONS; pattern++) {
		if (*pattern == '\\' && pattern[1] != '\0') {
			pattern++;
		} else if (*pattern == '{' && deep == MAX_BRACE_DEPTH) {
			return MAX_HOOK_EXPANSIONS + 1;
		} else if (*pattern == '{') {
			choices[deep++] = 1;
		} else if (*pattern == ',' && deep > 0) {
			choices[deep - 1]++;
		} else if (*pattern == '}' && deep > 0) {
			n *= choices[--deep];
		}
	}
	while (deep > 0) {
		deep--; /* never closed: glob(3) is not asked to make sense of it */
		n = n * choices[deep] > n ? MAX_HOOK_EXPANSIONS + 1 : n;
	}
	return n;
}

/* "{a..z}" is a "*" to us: glob(3) does not know it. */
static void put_pattern(struct buf *out, const char *pattern)
{
	while (*pattern != '\0') {
		size_t n = strcspn(pattern, "{},\\");
		size_t len = *pattern == '{' ? 1 + strcspn(pattern + 1, "{},\\") : 0;
		if (len > 0 && pattern[len] == '}' && memmem(pattern, len, "..", 2) != NULL) {
			buf_addc(out, '*');
			pattern += len + 1;
			continue;
		}
		n = n > 0 ? n : *pattern == '\\' && pattern[1] != '\0' ? 2 : 1;
		buf_add(out, pattern, n);
		pattern += n;
	}
}

/* All that a pattern may become, from one place. */
static bool pattern_names(const struct hook_places *p, const char *dir, const char *pattern,
                          char **ret)
{
	glob_t found = { 0 };
	bool named = false;
	auto_buf full;

	buf_init(&full, (size_t)4 * PATH_MAX);
	if (pattern[0] != '/') {
		put_escaped(&full, dir);
		buf_addc(&full, '/');
	}
	put_pattern(&full, pattern);
	if (full.failed || glob(full.data, GLOB_NOSORT | GLOB_BRACE, NULL, &found) != 0) {
		globfree(&found);
		return full.failed;
	}
	/* Past the cap nobody can say what it is. */
	named = found.gl_pathc > MAX_HOOK_MATCHES;
	for (size_t i = 0; i < found.gl_pathc && !named; i++) {
		char *skill = NULL;
		named = hook_skill_of(p, "/", found.gl_pathv[i], &skill);
		if (named && *ret == NULL) {
			*ret = steal_ptr(&skill);
		}
		free(skill);
	}
	globfree(&found);
	return named;
}

bool hook_word_names(const struct hook_places *p, const struct shell_word *w, char **ret)
{
	if (w->plain) {
		return names_from_any(p, w->text, ret) ||
		       hook_text_names(p, w->text, strlen(w->text), ret);
	}
	if (hook_text_names(p, w->text, strlen(w->text), ret) ||
	    names_from_any(p, known_tail(w->text), ret)) {
		return true;
	}
	if (w->unknown && w->text[strspn(w->text, "*")] == '\0') {
		return false; /* anything at all names nothing */
	}
	if (expansions(w->pattern) > MAX_HOOK_EXPANSIONS) {
		return true; /* nobody can say what it is */
	}
	if (wild_parts(w->pattern) > MAX_WILD_PARTS || strlen(w->pattern) >= PATH_MAX) {
		return strchr(w->pattern, '/') != NULL && wild_parts(w->pattern) > MAX_WILD_PARTS;
	}
	for (size_t i = 0; i < p->n; i++) {
		if (pattern_names(p, p->v[i], w->pattern, ret)) {
			return true;
		}
	}
	return false;
}

/* Where the manifest's word leads, on this side of the sandbox; NULL: nowhere. */
static char *entry_file(const struct manifest *m, const char *skill, const char *word)
{
	auto_free char *inside = path_from(m->workdir, word);
	const char *below = inside != NULL ? path_beneath(inside, "/skill") : NULL;

	if (below == NULL) {
		return NULL;
	}
	while (*below == '/') {
		below++;
	}
	auto_free char *full = path_from(skill, below);
	return full != NULL ? realpath(full, NULL) : NULL;
}

/* The manifest's own arguments from `from` on must lead those of the line. */
static bool leads(const struct manifest *m, size_t from, const struct shell_word *args,
                  size_t n_args, size_t *ret_fixed)
{
	size_t n = m->args.n - from;

	for (size_t i = 0; i < n; i++) {
		if (i >= n_args || strcmp(args[i].text, m->args.v[from + i].s) != 0) {
			return false;
		}
	}
	*ret_fixed = n;
	return true;
}

/* The file of a program that the system has; NULL: of another place, or none. */
static char *system_program(const char *word)
{
	static const char *const DIRS[] = { "/usr/local/bin", "/usr/bin", "/bin" };

	for (size_t i = 0; i < ARRAY_LEN(DIRS); i++) {
		const char *name = strchr(word, '/') == NULL ? word : path_beneath(word, DIRS[i]);
		if (name == NULL || strchr(name, '/') != NULL) {
			continue;
		}
		auto_free char *full = path_from(DIRS[i], name);
		char *real = full != NULL && *name != '\0' ? realpath(full, NULL) : NULL;
		if (real != NULL) {
			return real;
		}
	}
	return NULL;
}

/* One in a virtual environment leads to the same file, and is another. */
static bool same_program(const char *a, const char *b)
{
	auto_free char *file_a = system_program(a), *file_b = system_program(b);

	if (strcmp(a, b) == 0 && strchr(a, '/') == NULL) {
		return true;
	}
	return file_a != NULL && file_b != NULL &&
	       (strcmp(file_a, file_b) == 0 || strcmp(path_base(a), path_base(b)) == 0);
}

/* The manifest starts the script: by itself, or by the interpreter that the line has. */
static bool starts_script(const struct manifest *m, const char *skill, const struct hook_start *s,
                          size_t *ret_fixed)
{
	auto_free char *program = entry_file(m, skill, m->command.s);
	size_t at = 0;

	if (program != NULL) {
		return s->interpreter == NULL && strcmp(program, s->script) == 0 &&
		       leads(m, 0, s->args, s->n_args, ret_fixed);
	}
	if (s->interpreter != NULL && !same_program(s->interpreter, m->command.s)) {
		return false;
	}
	while (at < m->args.n && m->args.v[at].s[0] == '-') {
		at++;
	}
	if (at == m->args.n || (s->interpreter == NULL && at > 0)) {
		return false;
	}
	auto_free char *first = entry_file(m, skill, m->args.v[at].s);
	return first != NULL && strcmp(first, s->script) == 0 &&
	       leads(m, at + 1, s->args, s->n_args, ret_fixed);
}

bool hook_is_entry(const char *skill, const char *config_dir, const struct hook_start *s,
                   size_t *ret_fixed, char **ret_named)
{
	AUTO(skill_found_done) struct skill_found found = { 0 };
	struct ssb_error err = { 0 };
	const char *below = path_beneath(s->script, skill);

	if (below == NULL) {
		return false;
	}
	auto_free char *named = strdup(below + strspn(below, "/"));
	char *const args[] = { named, NULL };
	if (named == NULL || skill_find(skill, config_dir, args, &found, NULL, &err) != 0 ||
	    !starts_script(found.manifest, skill, s, ret_fixed)) {
		return false;
	}
	*ret_named = found.used > 0 ? steal_ptr(&named) : NULL;
	return true;
}

bool hook_names_script(const char *skill, const char *config_dir)
{
	AUTO(skill_found_done) struct skill_found found = { 0 };
	struct ssb_error err = { 0 };

	return skill_find(skill, config_dir, NULL, &found, NULL, &err) == 0 && found.no_entry;
}
