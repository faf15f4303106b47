/* hook_skill.c - finds the skills that words name. */
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
#include "cli/hook.h"
#include "manifest/manifest.h"
#include "policy/path.h"
#include "skill/skill.h"

#define APART "/@%*?[]{}~\\" /* between the names in a path */
#define EXPECTS_DIRECTORY                                                                          \
	" ((cd|pushd|chdir) ([^;|]* )?|-[CDf]|(-[^ ]*[CDfw]|--[^ ]*(dir|file)[^ ]*|"               \
	"--(prefix|cwd|project|wd|workspace)) )$"

/* A SKILL.md in the project's directory describes the project; only a manifest makes it a skill. */
static bool is_skill(const struct hook_skills *s, const char *dir)
{
	auto_free char *file = hook_must(path_join(dir, MANIFEST_FILE));
	bool project = s->project != NULL && strcmp(s->project, dir) == 0;

	return project ? access(file, F_OK) == 0 : skill_is_one(dir);
}

static bool note_skill(struct hook_skills *s, const char *dir)
{
	s->found = s->found == NULL ? hook_must(strdup(dir)) : s->found;
	return true;
}

/* Does the path lead into a skill, by its real place or by the place of its name? */
static bool leads_to_skill(struct hook_skills *s, const char *place, const char *path)
{
	auto_free char *full = hook_must(path_from(place, path)), *real = path_real(full);
	auto_free char *above = hook_must(path_parent(full)), *dir = path_real(above);
	char *const paths[] = { real, dir };
	bool leads = false;

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		char *at = paths[i], *slash = NULL;
		for (size_t k = 0; k < ARRAY_LEN(s->own) && at != NULL; k++) {
			s->names_own |= s->own[k] != NULL && path_beneath(at, s->own[k]) != NULL;
		}
		while (at != NULL && at[1] != '\0' && !leads) {
			leads = is_skill(s, at) && note_skill(s, at);
			slash = strrchr(at, '/');
			slash[slash == at] = '\0';
		}
	}
	return leads;
}

/* Is a skill in the directories, at any depth? What cannot be read may contain one. */
static bool has_skill(struct hook_skills *s, char *const dirs[])
{
	FTS *walk = hook_must(fts_open(dirs, FTS_LOGICAL | FTS_NOCHDIR, NULL));
	FTSENT *e = NULL;
	bool has = false;

	while (!has && (e = fts_read(walk)) != NULL) {
		bool names = skill_file_names_one(e->fts_name);
		auto_free char *above = names ? hook_must(path_parent(e->fts_path)) : NULL;
		if (e->fts_info == FTS_D && strcmp(e->fts_name, ".git") == 0) {
			(void)fts_set(walk, e, FTS_SKIP);
		}
		s->walked += e->fts_level > FTS_ROOTLEVEL && e->fts_info != FTS_DP;
		has = s->walked > MAX_HOOK_WALK ||
		      (names && is_skill(s, above) && note_skill(s, above));
	}
	has |= errno != 0;
	(void)fts_close(walk);
	return has;
}

bool hook_skill_below(struct hook_skills *s)
{
	return s->unsure || has_skill(s, s->places.v);
}

/* Adds the directories where skills are known to be, in `dir` and above it. */
static void add_roots(struct hook_skills *s, const char *dir)
{
	static const char *const NAMES[] = { "skills", ".claude/skills" };

	for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
		auto_free char *root = hook_must(path_join(dir, NAMES[i]));
		if (access(root, F_OK) == 0) {
			s->unsure |= string_list_add_once(&s->roots, root, SIZE_MAX) != 0;
		}
	}
	if (strcmp(dir, "/") != 0) {
		auto_free char *up = hook_must(path_parent(dir));
		add_roots(s, up);
	}
}

/* Is the file our own program, under any name? A directory becomes a place. */
static bool is_us(struct hook_skills *s, const char *place, const char *path)
{
	auto_free char *full = hook_must(path_from(place, path)), *real = realpath(full, NULL);
	struct stat self, st;

	if (real == NULL || stat(real, &st) != 0 || !S_ISDIR(st.st_mode)) {
		return strcmp(path_base(path), "skillsandbox") == 0 ||
		       (real != NULL && stat(s->q->self, &self) == 0 && st.st_ino == self.st_ino &&
		        st.st_dev == self.st_dev);
	}
	if (!string_list_has(&s->places, real)) {
		s->unsure |= string_list_add(&s->places, real, MAX_HOOK_PLACES) != 0;
		add_roots(s, real);
	}
	return false;
}

void hook_skill_init(struct hook_skills *s)
{
	const struct hook_question *q = s->q;
	auto_free char *path = q->path != NULL ? strdup(q->path) : NULL;

	s->project = q->project != NULL ? realpath(q->project, NULL) : NULL;
	s->own[0] = q->config_dir != NULL ? path_real(q->config_dir) : NULL;
	s->own[1] = q->state_dir != NULL ? path_real(q->state_dir) : NULL;
	for (char *rest = path, *dir = NULL; (dir = strsep(&rest, ":")) != NULL;) {
		s->unsure |= string_list_add(&s->bins, dir, SIZE_MAX) != 0;
	}
	(void)is_us(s, "/", q->cwd);
	add_roots(s, s->project != NULL ? s->project : "/");
	add_roots(s, q->home != NULL ? q->home : "/");
}

void hook_skill_done(struct hook_skills *s)
{
	string_list_done(&s->bins);
	string_list_done(&s->places);
	string_list_done(&s->roots);
	free(s->own[0]);
	free(s->own[1]);
	free(s->project);
	free(s->found);
}

/* Does the path begin with the name of a directory of skills? */
static bool begins_with_root(struct hook_skills *s, const char *path)
{
	bool begins = strncmp(path, ".claude", 7) == 0 && strcspn(path, APART) == 7;

	for (size_t i = 0; i < s->roots.n && !begins && strncmp(path, "skills", 6) == 0; i++) {
		char *const root[] = { s->roots.v[i], NULL };
		begins = strcspn(path, "." APART) == 6 && strstr(root[0], "/.claude/") == NULL &&
		         has_skill(s, root);
	}
	return begins;
}

/* Does a file that matches the pattern lead into a skill, or contain skills? */
static bool matches_skill(struct hook_skills *s, const char *place, const char *path)
{
	auto_free char *full = hook_must(path_from(place, path));
	AUTO(globfree) glob_t found = { 0 };
	/* In the name of a place, a bracket would be a part of the pattern. */
	bool matches = strpbrk(place, "*?[\\") != NULL;

	for (char *c = full; (c = strchr(c, *HOOK_MASK)) != NULL; c++) {
		*c = '?';
	}
	if (glob(full, GLOB_NOSORT, NULL, &found) == 0) {
		(void)is_us(s, "/", found.gl_pathv[0]); /* `cd` takes one */
	}
	for (size_t i = 0; i < found.gl_pathc; i++) {
		matches |= begins_with_root(s, path_base(found.gl_pathv[i]));
		matches |= leads_to_skill(s, "/", found.gl_pathv[i]);
	}
	return matches;
}

/* Does the path lead into a skill from a place, or is a name in it that of a skill in any directory
 * of skills? A mere name means other things, too (the format "pdf"), unless a directory is expected
 * behind the `before` bytes of the text. So does the end of a URL. */
static bool reads_skill(struct hook_skills *s, const char *path, const char *text, size_t before)
{
	const bool url = strstr(path, "//") != NULL;
	bool reads = false;
	size_t n = 0;

	for (const char *at = path; *at != '\0'; at += n + strspn(at + n, APART)) {
		n = strcspn(at, APART);
		bool in_path = strchr(at, '/') != NULL || (at > path && at[-1] == '/' && !url);
		reads |= begins_with_root(s, at);
		for (size_t i = 0; i < s->places.n + s->roots.n; i++) {
			const char *dir =
			        i < s->places.n ? s->places.v[i] : s->roots.v[i - s->places.n];
			auto_free char *all = hook_must(path_join(dir, at));
			all[strlen(all) - strlen(at) + n] = '\0';
			if (n > 0 && at[0] != '.' && is_skill(s, all)) {
				auto_free char *start = hook_must(strndup(text, before));
				reads |= (in_path || hook_line_matches(start, EXPECTS_DIRECTORY)) &&
				         note_skill(s, all);
			}
			if (i < s->places.n && at == path) {
				reads |= leads_to_skill(s, dir, at);
				reads |= strpbrk(at, "*?[" HOOK_MASK) != NULL &&
				         matches_skill(s, dir, at);
			}
		}
	}
	return reads;
}

/* Reads the texts between any characters of `ends`. */
static bool read_parts(struct hook_skills *s, const char *text, const char *ends)
{
	bool names = false;
	size_t n = 0;

	for (const char *at = text; *at != '\0'; at += n + (at[n] != '\0')) {
		n = strcspn(at, ends);
		/* What follows a variable is relative to an unknown directory; "-Cdir". */
		size_t skip = at > text && at[-1] == '$' ? strspn(at, "/") : 0;
		skip += at[0] == '-' && n > 2 ? 2 : 0;
		auto_free char *part = hook_must(strndup(at + skip, n > skip ? n - skip : 0));
		for (size_t i = s->places.n; i > 0 && part[0] != '\0'; i--) {
			s->names_us |= is_us(s, s->places.v[i - 1], part);
		}
		for (size_t i = 0; i < s->bins.n && part[0] != '\0'; i++) {
			s->names_us |= strchr(part, '/') == NULL && is_us(s, s->bins.v[i], part);
		}
		names |= reads_skill(s, part, text, (size_t)(at - text) + skip);
		/* Python's module a.b is the file a/b. */
		bool module = part[0] != '.' && strchr(part, '/') == NULL;
		for (char *dot = part; module && (dot = strchr(dot, '.')) != NULL;) {
			*dot = '/';
		}
		for (size_t i = 0; i < s->places.n && module; i++) {
			names |= leads_to_skill(s, s->places.v[i], part);
		}
	}
	return names;
}

bool hook_skill_names(struct hook_skills *s, const char *text)
{
	bool words = read_parts(s, text, " ");

	return read_parts(s, text, "=:,!#^$+\"'` ()<>;|&") || words || s->unsure;
}

char *hook_skill_at(const struct hook_skills *s, const char *path, char **ret_name)
{
	struct hook_skills other = *s;

	other.found = NULL;
	for (size_t i = 0; i < s->places.n && path[0] != '\0' && other.found == NULL; i++) {
		auto_free char *full = hook_must(path_from(s->places.v[i], path));
		auto_free char *real = realpath(full, NULL);
		if (real != NULL && leads_to_skill(&other, "/", real)) {
			size_t n = strlen(other.found);
			*ret_name = hook_must(strdup(real + n + (real[n] != '\0')));
		}
	}
	return other.found;
}

/* Are they the same language? What is written for sh, bash runs, too; not the other way. */
static bool same_language(const char *interpreter, const char *program)
{
	auto_buf both = BUF(MAX_PATH_BYTES);

	buf_addf(&both, "%s %s", interpreter, program);
	return strcmp(interpreter, program) == 0 ||
	       hook_line_matches(hook_must(both.data),
	                         "^(python(3([.][0-9]+)?)? python(3([.][0-9]+)?)?"
	                         "|node(js)? node(js)?|sh bash)$");
}

bool hook_skill_run(const struct hook_skills *s, const char *interpreter, const char *file,
                    bool more, struct buf *out)
{
	AUTO(skill_found_done) struct skill_found found = { 0 };
	struct ssb_error err = { 0 };
	auto_free char *name = NULL, *skill = hook_skill_at(s, file, &name);
	char *const args[] = { name, NULL };

	if (skill == NULL || name[0] == '\0' ||
	    skill_find(skill, s->q->config_dir, args, &found, NULL, &err) != 0) {
		return false;
	}
	/* The command must start the file like that, without arguments of its own. */
	const struct string_list *argv = &found.argv;
	if (argv->n == 0 || argv->n > 2) {
		return false;
	}
	const char *program = argv->n == 1 ? "" : path_base(argv->v[0]);
	auto_free char *inside =
	        hook_must(path_from(found.manifest->workdir, argv->v[argv->n - 1]));
	auto_free char *clean = hook_must(path_words(inside));
	const char *below = path_beneath(clean, "/skill");
	if (below == NULL || strcmp(below, name) != 0 ||
	    (interpreter[0] != '\0' && !same_language(interpreter, program))) {
		return false;
	}
	shell_quote(out, skill);
	buf_adds(out, more || found.used > 0 ? " --" : "");
	if (found.used > 0) {
		buf_addc(out, ' ');
		shell_quote(out, name);
	}
	return true;
}
