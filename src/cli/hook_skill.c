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
#include "base/shell_quote.h"
#include "cli/hook_line.h"
#include "cli/hook_rules.h"
#include "manifest/manifest.h"
#include "policy/path.h"
#include "skill/skill.h"

#define MAX_WILD_PARTS 3 /* of a pattern: glob(3) could take minutes for more */

void hook_skill_done(struct hook_skills *s)
{
	string_list_done(&s->places);
	string_list_done(&s->names);
	string_list_done(&s->roots);
	string_list_done(&s->without);
	string_list_done(&s->own);
	string_list_done(&s->patterns);
	free(s->project);
	free(s->found);
}

void hook_skill_keep(struct hook_skills *s, const char *dir)
{
	auto_free char *real = dir != NULL ? realpath(dir, NULL) : NULL;

	s->unsure = s->unsure || (dir != NULL && string_list_add(&s->own, dir, SIZE_MAX) != 0) ||
	            (real != NULL && string_list_add(&s->own, real, SIZE_MAX) != 0);
}

/* Anything with the name of a manifest makes the directory a skill. */
static bool is_skill(const struct hook_skills *s, const char *dir)
{
	auto_free char *file = path_from(dir, MANIFEST_FILE);
	struct stat st;

	return (file != NULL && lstat(file, &st) == 0) ||
	       (skill_is_one(dir) && (s->project == NULL || strcmp(s->project, dir) != 0));
}

/* Cuts `path` (real) down to the nearest directory of a skill; the root directory is none. */
static bool climb_to_skill(const struct hook_skills *s, char *path)
{
	for (char *slash = path; !is_skill(s, path); *slash = '\0') {
		slash = strrchr(path, '/');
		if (slash == NULL || slash == path) {
			return false;
		}
	}
	return true;
}

/* The nearest directory of a skill at or above what the absolute `full` names: by its real place,
 * else by the place of its name. Returns new, or NULL. */
static char *find_skill(const struct hook_skills *s, const char *full)
{
	auto_free char *real = realpath(full, NULL), *above = path_parent(full);
	auto_free char *place = above != NULL ? realpath(above, NULL) : NULL;
	auto_free char *later = place != NULL ? path_join(place, path_base(full)) : NULL;
	const char *at = real != NULL ? real : later != NULL ? later : full;

	for (size_t i = 0; i < s->own.n && s->only_own; i++) {
		if (path_beneath(at, s->own.v[i]) != NULL) {
			return strdup(s->own.v[i]);
		}
	}
	if (s->only_own) {
		return NULL;
	}
	if (real != NULL && climb_to_skill(s, real)) {
		return steal_ptr(&real);
	}
	return place != NULL && climb_to_skill(s, place) ? steal_ptr(&place) : NULL;
}

static size_t *glob_count; /* glob(3) passes nothing to its functions */

static void *open_dir(const char *name)
{
	return opendir(name);
}

static void close_dir(void *dir)
{
	(void)closedir(dir);
}

static struct dirent *read_counted(void *dir)
{
	return ++*glob_count > MAX_HOOK_WALK ? NULL : readdir(dir);
}

/* Adds what the word, which may be a pattern, stands for in `dir`: the file of that name, and each
 * that matches. */
static void expand_word(struct hook_skills *s, const char *dir, const char *word,
                        struct string_list *ret)
{
	auto_free char *full = path_from(dir, word);
	AUTO(globfree)
	glob_t found = {
		.gl_opendir = open_dir,
		.gl_readdir = read_counted,
		.gl_closedir = close_dir,
		.gl_stat = stat,
		.gl_lstat = lstat,
	};
	size_t wild = 0; /* parts of the path with a wildcard */
	auto_buf pattern;

	buf_init(&pattern, 2 * MAX_PATH_BYTES);
	for (const char *c = dir; *c != '\0' && word[0] != '/'; c++) {
		buf_addf(&pattern, strchr("*?[\\", *c) != NULL ? "\\%c" : "%c", *c);
	}
	buf_addf(&pattern, "/%s", word);
	for (const char *c = word; (c = strpbrk(c, "*?[")) != NULL; c += strcspn(c, "/")) {
		wild++;
	}
	if (full == NULL || strlen(full) >= PATH_MAX || pattern.failed) {
		return; /* no file has that name */
	}
	glob_count = &s->matched;
	int rc = wild == 0 || wild > MAX_WILD_PARTS || s->unsure
	                 ? 0
	                 : glob(pattern.data, GLOB_NOSORT | GLOB_ALTDIRFUNC, NULL, &found);
	s->matched += found.gl_pathc;
	s->unsure = s->unsure || wild > MAX_WILD_PARTS || (rc != 0 && rc != GLOB_NOMATCH) ||
	            s->matched > MAX_HOOK_WALK || string_list_add(ret, full, SIZE_MAX) != 0;
	for (size_t i = 0; i < found.gl_pathc && !s->unsure; i++) {
		s->unsure = s->unsure || string_list_add(ret, found.gl_pathv[i], SIZE_MAX) != 0;
	}
}

void hook_skill_enter(struct hook_skills *s, const char *dir)
{
	const size_t n = s->places.n;

	for (size_t i = 0; i < (n > 0 ? n : 1) && (n == 0 || !s->unsure); i++) {
		AUTO(string_list_done) struct string_list found = { 0 };
		expand_word(s, n > 0 ? s->places.v[i] : "/", dir, &found);
		for (size_t k = 0; k < found.n; k++) {
			auto_free char *real = realpath(found.v[k], NULL);
			s->unsure = s->unsure ||
			            (real != NULL &&
			             string_list_add_once(&s->places, real, MAX_HOOK_PLACES) != 0);
		}
	}
}

static bool names_path(struct hook_skills *s, const char *path)
{
	/* A long line may repeat a pattern that matches many files. */
	if (strpbrk(path, "*?[") != NULL && string_list_has(&s->patterns, path)) {
		return s->unsure;
	}
	for (size_t i = 0; i < s->places.n && !s->unsure; i++) {
		AUTO(string_list_done) struct string_list found = { 0 };
		struct stat st;
		expand_word(s, s->places.v[i], path, &found);
		for (size_t k = 0; k < found.n; k++) {
			/* A path that does not exist yet counts: a mere word does not. */
			bool named = strchr(path, '/') != NULL || lstat(found.v[k], &st) == 0;
			auto_free char *skill = named ? find_skill(s, found.v[k]) : NULL;
			s->looked += named;
			s->unsure = s->unsure || s->looked > MAX_HOOK_NAMES;
			if (skill != NULL) {
				s->found = s->found == NULL ? steal_ptr(&skill) : s->found;
				return true;
			}
		}
	}
	s->unsure = s->unsure || (strpbrk(path, "*?[") != NULL &&
	                          string_list_add(&s->patterns, path, SIZE_MAX) != 0);
	return s->unsure;
}

bool hook_skill_names(struct hook_skills *s, const char *word)
{
	size_t n = 0;

	if (names_path(s, word)) {
		return true;
	}
	for (const char *at = word; *at != '\0'; at += n + (at[n] != '\0')) {
		n = strcspn(at, "=:,!#^$+\"'` ()<>;|&");
		/* What follows a variable is relative to an unknown directory. */
		size_t slashes = at > word && at[-1] == '$' ? strspn(at, "/") : 0;
		auto_free char *part = n > slashes ? strndup(at + slashes, n - slashes) : NULL;
		if (part == NULL) {
			continue;
		}
		/* "-fx.mk": a value that is attached to an option */
		if ((strcmp(part, word) != 0 && names_path(s, part)) ||
		    (part[0] == '-' && strlen(part) > 2 && names_path(s, part + 2))) {
			return true;
		}
		bool module = strchr(part, '/') == NULL && part[0] != '.'; /* of Python: a.b */
		for (char *dot = part; module && (dot = strchr(dot, '.')) != NULL;) {
			*dot = '/';
		}
		if (module && strchr(part, '/') != NULL && names_path(s, part)) {
			return true;
		}
	}
	return false;
}

/* Adds the name as it is in a flat text. */
static void add_name(struct hook_skills *s, struct string_list *l, const char *name)
{
	static const struct hook_name NONE = { NULL, NULL };
	auto_buf flat;

	buf_init(&flat, MAX_PATH_BYTES);
	(void)hook_line_read(&flat, name, strlen(name), &NONE, HOOK_JOINED);
	size_t ends = strlen(" ; ");
	if (flat.failed) {
		s->unsure = true;
	} else if (flat.len > 2 * ends) {
		flat.data[flat.len - ends] = '\0';
		s->unsure = s->unsure ||
		            string_list_add_once(l, flat.data + ends, MAX_HOOK_SKILLS) != 0;
	}
}

static void learn_directory(struct hook_skills *s, const char *above, const char *below)
{
	auto_free char *dir = path_from(above, below);
	auto_dir d = dir != NULL ? opendir(dir) : NULL;
	const struct dirent *e = NULL;

	while (d != NULL && (e = readdir(d)) != NULL) {
		bool may_be = e->d_type == DT_DIR || e->d_type == DT_LNK || e->d_type == DT_UNKNOWN;
		auto_free char *skill =
		        may_be && e->d_name[0] != '.' ? path_from(dir, e->d_name) : NULL;
		if (skill != NULL && is_skill(s, skill)) {
			add_name(s, &s->names, e->d_name);
			if (strcmp(below, "skills") == 0) {
				add_name(s, &s->roots, below);
			}
		}
	}
}

void hook_skill_learn(struct hook_skills *s, const char *home)
{
	add_name(s, &s->roots, ".claude");
	for (size_t i = 0; i < s->places.n + 2; i++) {
		const char *from = i < s->places.n    ? s->places.v[i]
		                   : i == s->places.n ? s->project
		                                      : home;
		auto_free char *at = from != NULL ? strdup(from) : NULL;
		if (at != NULL && i < s->places.n) {
			learn_directory(s, at, ".");
		}
		while (at != NULL) {
			learn_directory(s, at, "skills");
			learn_directory(s, at, ".claude/skills");
			char *up = strcmp(at, "/") != 0 ? path_parent(at) : NULL;
			free(at);
			at = up;
		}
	}
}

bool hook_skill_mentions(const struct hook_skills *s, const char *flat)
{
	for (size_t i = 0; i < s->names.n + s->roots.n; i++) {
		bool root = i >= s->names.n;
		const char *name = root ? s->roots.v[i - s->names.n] : s->names.v[i];
		if (hook_rules_mention(flat, name, root)) {
			return true;
		}
	}
	return s->unsure;
}

static void close_walk(FTS **t)
{
	if (*t != NULL) {
		(void)fts_close(*t);
	}
}

static bool has_skill(struct hook_skills *s, char *root)
{
	char *const roots[] = { root, NULL };
	AUTO(close_walk) FTS *t = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, NULL);
	FTSENT *e = NULL;

	while (t != NULL && (e = fts_read(t)) != NULL) {
		bool entry = e->fts_info != FTS_DP && e->fts_level > FTS_ROOTLEVEL;
		if (entry && ++s->walked > MAX_HOOK_WALK) {
			return true;
		}
		if (e->fts_info == FTS_D && strcmp(e->fts_name, ".git") == 0) {
			(void)fts_set(t, e, FTS_SKIP);
		}
		bool named = entry && skill_file_names_one(e->fts_name);
		auto_free char *dir = named ? path_parent(e->fts_path) : NULL;
		if (dir != NULL && is_skill(s, dir)) {
			s->found = s->found == NULL ? steal_ptr(&dir) : s->found;
			return true;
		}
	}
	return t == NULL || errno != 0; /* what cannot be read may hold one */
}

bool hook_skill_below(struct hook_skills *s, const char *word)
{
	size_t len = strcspn(word, "*?[$");

	while (word[len] != '\0' && len > 0 && word[len - 1] != '/') {
		len--;
	}
	auto_free char *known = strndup(word, len);
	for (size_t i = 0; i < s->places.n && len > 0; i++) {
		auto_free char *full = known != NULL ? path_from(s->places.v[i], known) : NULL;
		auto_free char *real = full != NULL ? realpath(full, NULL) : NULL;
		struct stat st;
		if (real == NULL || stat(real, &st) != 0 || !S_ISDIR(st.st_mode) ||
		    string_list_has(&s->without, real)) {
			continue;
		}
		if (has_skill(s, real) || string_list_add(&s->without, real, SIZE_MAX) != 0) {
			return true;
		}
	}
	return s->unsure;
}

/* Is the manifest's word, on this side of the sandbox, the file `real`? */
static bool leads_to(const struct manifest *m, const char *skill, const char *word,
                     const char *real)
{
	auto_free char *inside = path_from(m->workdir, word);
	const char *below = inside != NULL ? path_beneath(inside, "/skill") : NULL;
	auto_free char *full = below != NULL ? path_from(skill, below + strspn(below, "/")) : NULL;
	auto_free char *file = full != NULL ? realpath(full, NULL) : NULL;

	return file != NULL && strcmp(file, real) == 0;
}

/* An interpreter in a virtual environment is another program than that of the system. */
static bool is_same_program(const char *a, const char *b)
{
	return hook_rules_is_of_system(a) && hook_rules_is_of_system(b) &&
	       strcmp(path_base(a), path_base(b)) == 0;
}

/* Does the manifest start the file `real` by itself, or by `interpreter` (NULL: none)? `args` are
 * the words behind the file; those of the manifest must come first. *ret is then the first of the
 * caller's. */
static bool starts_file(const struct manifest *m, const char *skill, const char *real,
                        const char *interpreter, char *const args[], char *const **ret)
{
	bool direct = leads_to(m, skill, m->command.s, real);
	size_t at = 0;

	while (!direct && at < m->args.n && m->args.v[at].s[0] == '-') {
		at++;
	}
	if (direct ? interpreter != NULL
	           : (interpreter != NULL ? !is_same_program(interpreter, m->command.s) : at > 0) ||
	                     at == m->args.n || !leads_to(m, skill, m->args.v[at++].s, real)) {
		return false;
	}
	for (; at < m->args.n; at++, args++) {
		if (*args == NULL || strcmp(*args, m->args.v[at].s) != 0) {
			return false;
		}
	}
	*ret = args;
	return true;
}

bool hook_skill_run(struct hook_skills *s, const char *config_dir, char *const words[],
                    struct buf *out)
{
	const bool interpreted = hook_rules_is_interpreter(words[0]);
	AUTO(skill_found_done) struct skill_found found = { 0 };
	struct ssb_error err = { 0 };
	char *const *w = words + interpreted;
	struct stat st;

	while (interpreted && *w != NULL && strncmp(path_base(words[0]), "python", 6) == 0 &&
	       (strcmp(*w, "-u") == 0 || strcmp(*w, "-B") == 0)) {
		w++;
	}
	bool script = *w != NULL && **w != '-' && (interpreted || strchr(*w, '/') != NULL);
	auto_free char *full = script ? path_from(s->places.v[0], *w) : NULL;
	auto_free char *real = full != NULL ? realpath(full, NULL) : NULL;
	if (real == NULL || stat(real, &st) != 0 || !S_ISREG(st.st_mode)) {
		return false;
	}
	auto_free char *skill = find_skill(s, real);
	const char *below = skill != NULL ? path_beneath(real, skill) : NULL;
	auto_free char *named = below != NULL ? strdup(below + strspn(below, "/")) : NULL;
	char *const args[] = { named, NULL };
	if (named == NULL || skill_find(skill, config_dir, args, &found, NULL, &err) != 0 ||
	    !starts_file(found.manifest, skill, real, interpreted ? words[0] : NULL, w + 1, &w)) {
		return false;
	}
	buf_adds(out, " run ");
	shell_quote(out, skill);
	buf_adds(out, *w != NULL || found.used > 0 ? " --" : "");
	if (found.used > 0) {
		buf_addc(out, ' ');
		shell_quote(out, named);
	}
	for (; *w != NULL; w++) {
		buf_addc(out, ' ');
		shell_quote(out, *w);
	}
	return true;
}
