/* hook_skill.c - see hook_skill.h. */
#include "cli/hook_skill.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/own.h"
#include "manifest/manifest.h"
#include "policy/paths.h"

#define MAX_WILD_PARTS 3 /* of a pattern: more could keep us looking for minutes */

/* Cuts `dir` (real) down to the nearest directory with a manifest. */
static bool climb(char *dir)
{
	for (;;) {
		auto_free char *file = path_from(dir, MANIFEST_FILE);
		struct stat st;
		if (file != NULL && lstat(file, &st) == 0) {
			return true;
		}
		char *slash = strrchr(dir, '/');
		if (slash == NULL || slash == dir) {
			return false; /* the root directory is no skill */
		}
		*slash = '\0';
	}
}

bool hook_skill_of(const char *dir, const char *path, char **ret)
{
	auto_free char *full = path[0] != '\0' ? path_from(dir, path) : NULL;
	auto_free char *real = full != NULL ? realpath(full, NULL) : NULL;

	if (full == NULL) {
		return false;
	}
	if (real != NULL && climb(real)) {
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
	if (place == NULL || !climb(place)) {
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
}

static bool names_from_any(const struct hook_places *p, const char *path, char **ret)
{
	for (size_t i = 0; i < p->n; i++) {
		char *found = NULL;
		if (hook_skill_of(p->v[i], path, &found)) {
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

/* All that a pattern may become, from one place. */
static bool pattern_names(const char *dir, const char *pattern, char **ret)
{
	glob_t found = { 0 };
	bool named = false;
	auto_buf full;

	buf_init(&full, (size_t)4 * PATH_MAX);
	if (pattern[0] != '/') {
		put_escaped(&full, dir);
		buf_addc(&full, '/');
	}
	buf_adds(&full, pattern);
	if (full.failed || glob(full.data, GLOB_NOSORT | GLOB_BRACE, NULL, &found) != 0) {
		globfree(&found);
		return full.failed;
	}
	/* Past the cap nobody can say what it is. */
	named = found.gl_pathc > MAX_HOOK_MATCHES;
	for (size_t i = 0; i < found.gl_pathc && !named; i++) {
		char *skill = NULL;
		named = hook_skill_of("/", found.gl_pathv[i], &skill);
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
	if (wild_parts(w->pattern) > MAX_WILD_PARTS || strlen(w->pattern) >= PATH_MAX) {
		return strchr(w->pattern, '/') != NULL && wild_parts(w->pattern) > MAX_WILD_PARTS;
	}
	for (size_t i = 0; i < p->n; i++) {
		if (pattern_names(p->v[i], w->pattern, ret)) {
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

bool hook_is_entry(const char *skill, const char *script, bool interpreted,
                   const struct shell_word *args, size_t n_args, size_t *ret_fixed)
{
	AUTO(manifest_freep) struct manifest *m = NULL;
	struct ssb_error err = { 0 };
	size_t at = 0;

	if (manifest_load(skill, &m, NULL, &err) != 0) {
		return false;
	}
	auto_free char *program = entry_file(m, skill, m->command.s);
	if (program != NULL && strcmp(program, script) == 0) {
		return leads(m, 0, args, n_args, ret_fixed);
	}
	while (at < m->args.n && m->args.v[at].s[0] == '-') {
		at++;
	}
	if (at == m->args.n || (!interpreted && at > 0) || program != NULL) {
		return false;
	}
	auto_free char *first = entry_file(m, skill, m->args.v[at].s);
	return first != NULL && strcmp(first, script) == 0 &&
	       leads(m, at + 1, args, n_args, ret_fixed);
}
