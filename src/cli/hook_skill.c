/* hook_skill.c - see hook_skill.h. */
#include "cli/hook_skill.h"

#include <errno.h>
#include <fts.h>
#include <glob.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "base/own.h"
#include "cli/hook_programs.h"
#include "manifest/manifest.h"
#include "policy/path.h"
#include "skill/skill.h"

#define MAX_WILD_PARTS 3 /* of a pattern: glob(3) could take minutes for more */

/* Anything with the name of a manifest makes the directory a skill. */
bool hook_skill_is_one(const struct hook_skill_places *p, const char *dir)
{
	auto_free char *file = path_from(dir, MANIFEST_FILE);
	struct stat st;

	return (file != NULL && lstat(file, &st) == 0) ||
	       (skill_is_one(dir) && (p->project == NULL || strcmp(p->project, dir) != 0));
}

/* Cuts `dir` (real) down to the nearest directory of a skill; the root directory is none. */
static bool climb_to_skill(const struct hook_skill_places *p, char *dir)
{
	for (char *slash = dir; !hook_skill_is_one(p, dir); *slash = '\0') {
		slash = strrchr(dir, '/');
		if (slash == NULL || slash == dir) {
			return false;
		}
	}
	return true;
}

/* The nearest directory of a skill at or above what `path` names: by its real place, else by the
 * place of its name. Returns new, or NULL. */
static char *find_skill(const struct hook_skill_places *p, const char *dir, const char *path)
{
	auto_free char *full = path[0] != '\0' ? path_from(dir, path) : NULL;
	auto_free char *real = full != NULL ? realpath(full, NULL) : NULL;
	struct stat st;

	if (real != NULL && climb_to_skill(p, real)) {
		return steal_ptr(&real);
	}
	/* A name that does not exist yet counts if it is a path: a mere word does not. */
	if (full == NULL || (lstat(full, &st) != 0 && strchr(path, '/') == NULL)) {
		return NULL;
	}
	auto_free char *above = path_parent(full);
	auto_free char *place = above != NULL ? realpath(above, NULL) : NULL;
	return place != NULL && climb_to_skill(p, place) ? steal_ptr(&place) : NULL;
}

/* What stands behind the last variable or wildcard; may be empty. */
static const char *known_tail(const struct hook_word *w)
{
	const char *star = w->plain ? NULL : strrchr(w->text, '*');

	return star == NULL ? w->text : star + 1 + strspn(star + 1, "/");
}

static void add_place(struct hook_skill_places *p, const char *full)
{
	_Static_assert(ARRAY_LEN(p->v) == MAX_HOOK_PLACES, "the cap of limits.h");
	auto_free char *real = full != NULL ? realpath(full, NULL) : NULL;

	for (size_t k = 0; k < p->n && real != NULL; k++) {
		if (strcmp(p->v[k], real) == 0) {
			free(steal_ptr(&real));
		}
	}
	if (real != NULL && p->n < ARRAY_LEN(p->v)) {
		p->v[p->n++] = steal_ptr(&real);
	}
	p->too_many = p->too_many || real != NULL;
}

void hook_skill_add_place(struct hook_skill_places *p, const struct hook_word *to)
{
	const size_t n = p->n;

	for (size_t i = 0; i < (n > 0 ? n : 1); i++) {
		auto_free char *full = path_from(n > 0 ? p->v[i] : "/", known_tail(to));
		auto_free char *pattern = path_from(n > 0 ? p->v[i] : "/", to->text);
		glob_t found = { 0 };
		add_place(p, full);
		if (!to->plain && !to->unknown && pattern != NULL && strlen(pattern) < PATH_MAX) {
			(void)glob(pattern, GLOB_NOSORT | GLOB_ONLYDIR, NULL, &found);
		}
		for (size_t k = 0; k < found.gl_pathc; k++) {
			add_place(p, found.gl_pathv[k]);
		}
		globfree(&found);
	}
}

void hook_skill_places_done(struct hook_skill_places *p)
{
	for (size_t i = 0; i < p->n; i++) {
		free(p->v[i]);
	}
	free(p->project);
	free(p->without);
}

/* A path from any of the places. */
static bool names_path(const struct hook_skill_places *p, const char *path, char **ret)
{
	for (size_t i = 0; i < p->n; i++) {
		auto_free char *found = find_skill(p, p->v[i], path);
		if (found != NULL) {
			*ret = *ret == NULL ? steal_ptr(&found) : *ret;
			return true;
		}
	}
	return false;
}

/* A path in a quoted text, or a module of Python: "skills.x.main". */
static bool names_part(const struct hook_skill_places *p, char *part, char **ret)
{
	bool of_home = strncmp(part, "~/", 2) == 0 && p->home != NULL;
	auto_free char *full = of_home ? path_from(p->home, part + 2) : NULL;

	if (names_path(p, full != NULL ? full : part, ret)) {
		return true;
	}
	if (strchr(part, '/') != NULL || part[0] == '.' || strchr(part, '.') == NULL) {
		return false;
	}
	for (char *dot = part; (dot = strchr(dot, '.')) != NULL;) {
		*dot = '/';
	}
	return names_path(p, part, ret);
}

/* What a program is given in quotes may be a program itself. */
static bool names_in_text(const struct hook_skill_places *p, const char *text, char **ret)
{
	while (*text != '\0') {
		size_t n = strcspn(text, " \t\r\n'\"`()[]{}<>|&;=:,$*?!#^\\");
		auto_free char *part = strndup(text, n);
		/* "-fx.mk": a value that is attached to an option. */
		auto_free char *value = n > 2 && *text == '-' ? strndup(text + 2, n - 2) : NULL;
		if (part == NULL || (n > 0 && names_part(p, part, ret)) ||
		    (value != NULL && names_part(p, value, ret))) {
			return true;
		}
		text += n + (text[n] != '\0');
	}
	return false;
}

/* Does a file that the pattern stands for belong to a skill? */
static bool names_by_pattern(const struct hook_skill_places *p, const char *dir,
                             const char *pattern, char **ret)
{
	auto_free char *full = path_from(dir, pattern);
	glob_t found = { 0 };
	bool named = full == NULL;

	if (full != NULL && strlen(full) < PATH_MAX) {
		(void)glob(full, GLOB_NOSORT, NULL, &found);
	}
	for (size_t i = 0; i < found.gl_pathc && !named; i++) {
		auto_free char *skill = find_skill(p, "/", found.gl_pathv[i]);
		named = skill != NULL;
		*ret = *ret == NULL ? steal_ptr(&skill) : *ret;
	}
	globfree(&found);
	return named;
}

bool hook_skill_names(const struct hook_skill_places *p, const struct hook_word *w, char **ret)
{
	if (names_in_text(p, w->text, ret) || names_path(p, known_tail(w), ret)) {
		return true;
	}
	/* A variable alone names nothing. */
	bool pattern = !w->plain && w->text[strspn(w->text, "*")] != '\0';
	size_t wild = 0; /* parts of the path with a wildcard */
	for (const char *c = w->text; (c = strpbrk(c, "*?[")) != NULL; c += strcspn(c, "/")) {
		wild++;
	}
	if (pattern && wild > MAX_WILD_PARTS) {
		return true;
	}
	for (size_t i = 0; i < p->n && pattern; i++) {
		if (names_by_pattern(p, p->v[i], w->text, ret)) {
			return true;
		}
	}
	return false;
}

static void close_walk(FTS **t)
{
	if (*t != NULL) {
		(void)fts_close(*t);
	}
}

static bool has_skill(struct hook_skill_places *p, char *root, char **ret)
{
	char *const roots[] = { root, NULL };
	AUTO(close_walk) FTS *t = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, NULL);
	FTSENT *e = NULL;

	while (t != NULL && (e = fts_read(t)) != NULL) {
		bool entry = e->fts_info != FTS_DP && e->fts_level > FTS_ROOTLEVEL;
		if (entry && ++p->walked > MAX_HOOK_WALK) {
			return true;
		}
		if (e->fts_info == FTS_D && strcmp(e->fts_name, ".git") == 0) {
			(void)fts_set(t, e, FTS_SKIP);
		}
		bool named = entry && skill_file_names_one(e->fts_name);
		auto_free char *dir = named ? path_parent(e->fts_path) : NULL;
		if (dir != NULL && hook_skill_is_one(p, dir)) {
			*ret = *ret == NULL ? steal_ptr(&dir) : *ret;
			return true;
		}
	}
	return t == NULL || errno != 0; /* what cannot be read may hold one */
}

bool hook_skill_below(struct hook_skill_places *p, const struct hook_word *w, char **ret)
{
	size_t len = w->plain ? strlen(w->text) : strcspn(w->text, "*?[");

	while (!w->plain && len > 0 && w->text[len - 1] != '/') {
		len--;
	}
	auto_free char *known = strndup(w->text, len);
	for (size_t i = 0; i < p->n && len > 0; i++) {
		auto_free char *full = known != NULL ? path_from(p->v[i], known) : NULL;
		auto_free char *real = full != NULL ? realpath(full, NULL) : NULL;
		struct stat st;
		if (real == NULL || stat(real, &st) != 0 || !S_ISDIR(st.st_mode) ||
		    (p->without != NULL && strcmp(p->without, real) == 0)) {
			continue;
		}
		if (has_skill(p, real, ret)) {
			return true;
		}
		free(p->without);
		p->without = steal_ptr(&real);
	}
	return false;
}

/* Where the manifest's word leads, on this side of the sandbox; NULL: nowhere. */
static char *find_entry_file(const struct manifest *m, const char *skill, const char *word)
{
	auto_free char *inside = path_from(m->workdir, word);
	const char *below = inside != NULL ? path_beneath(inside, "/skill") : NULL;
	auto_free char *full = below != NULL ? path_from(skill, below + strspn(below, "/")) : NULL;

	return full != NULL ? realpath(full, NULL) : NULL;
}

/* One in a virtual environment is another program. */
static bool is_of_system(const char *program)
{
	return strchr(program, '/') == NULL ||
	       hook_programs_list("/bin/* /usr/bin/* /usr/local/bin/*", program);
}

static bool is_same_program(const char *a, const char *b)
{
	return is_of_system(a) && is_of_system(b) && strcmp(path_base(a), path_base(b)) == 0;
}

/* Does the manifest start the script (a real path), by itself, or by `interpreter` (may be NULL)?
 * Its arguments must lead `args`; *ret_args is then the first that is the caller's. */
static bool starts_script(const struct manifest *m, const char *skill, const char *script,
                          const char *interpreter, const struct hook_command *c, size_t *ret_args)
{
	auto_free char *program = find_entry_file(m, skill, m->command.s);
	size_t at = 0;

	if (program == NULL) {
		while (at < m->args.n && m->args.v[at].s[0] == '-') {
			at++;
		}
		bool same =
		        interpreter != NULL ? is_same_program(interpreter, m->command.s) : at == 0;
		program = same && at < m->args.n ? find_entry_file(m, skill, m->args.v[at++].s)
		                                 : NULL;
	} else if (interpreter != NULL) {
		return false;
	}
	if (program == NULL || strcmp(program, script) != 0) {
		return false;
	}
	for (; at < m->args.n; at++, ++*ret_args) {
		if (*ret_args >= c->n_words ||
		    strcmp(c->words[*ret_args].text, m->args.v[at].s) != 0) {
			return false;
		}
	}
	return true;
}

bool hook_skill_is_start(const struct hook_skill_places *p, const char *dir, const char *config_dir,
                         const struct hook_command *words, bool interpreted,
                         struct hook_skill_start *ret)
{
	AUTO(skill_found_done) struct skill_found found = { 0 };
	struct ssb_error err = { 0 };
	const struct hook_word *w = words->words;
	size_t at = interpreted ? 1 : 0;

	while (interpreted && at < words->n_words &&
	       strncmp(path_base(w[0].text), "python", 6) == 0 &&
	       (strcmp(w[at].text, "-u") == 0 || strcmp(w[at].text, "-B") == 0)) {
		at++;
	}
	bool script = at < words->n_words && w[at].text[0] != '-' &&
	              (interpreted || strchr(w[at].text, '/') != NULL);
	auto_free char *full = script ? path_from(dir, w[at].text) : NULL;
	auto_free char *real = full != NULL ? realpath(full, NULL) : NULL;
	struct stat st;
	if (real == NULL || stat(real, &st) != 0 || !S_ISREG(st.st_mode)) {
		return false;
	}
	auto_free char *skill = find_skill(p, "/", real);
	const char *below = skill != NULL ? path_beneath(real, skill) : NULL;
	auto_free char *named = below != NULL ? strdup(below + strspn(below, "/")) : NULL;
	char *const args[] = { named, NULL };
	ret->arguments = at + 1;
	if (named == NULL || skill_find(skill, config_dir, args, &found, NULL, &err) != 0 ||
	    !starts_script(found.manifest, skill, real, interpreted ? w[0].text : NULL, words,
	                   &ret->arguments)) {
		return false;
	}
	ret->skill = steal_ptr(&skill);
	ret->script = found.used > 0 ? steal_ptr(&named) : NULL;
	return true;
}

bool hook_skill_needs_script(const char *skill, const char *config_dir)
{
	AUTO(skill_found_done) struct skill_found found = { 0 };
	struct ssb_error err = { 0 };

	return skill_find(skill, config_dir, NULL, &found, NULL, &err) == 0 && found.no_entry;
}
