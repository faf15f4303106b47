/* hook_reach.c - see hook_reach.h. */
#include "cli/hook_reach.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/own.h"
#include "cli/hook_programs.h"
#include "policy/path.h"
#include "skill/skill.h"

/* Lead programs to other files than they would find by themselves. */
static const char *const LEADING[] = {
	"PATH",      "CDPATH",   "BASH_ENV", "ENV",      "PYTHONPATH", "PYTHONSTARTUP",
	"NODE_PATH", "PERL5LIB", "RUBYLIB",  "LUA_PATH", "LD_PRELOAD", "LD_LIBRARY_PATH",
};

/* Directories that are still to be looked at; the strings are its own. */
struct walk {
	const char *root;
	const char *wanted; /* a name that the skill must have; NULL: any skill */
	char **v;
	size_t n;
	char *found;
};

static void walk_done(struct walk *w)
{
	while (w->n > 0) {
		free(w->v[--w->n]);
	}
	free(w->v);
}

/* Takes `dir`. */
static bool put_directory(struct walk *w, char *dir)
{
	void *v = reallocarray(w->v, w->n + 1, sizeof(*w->v));

	if (v == NULL || dir == NULL) {
		free(dir);
		w->v = v != NULL ? v : w->v;
		return false;
	}
	w->v = v;
	w->v[w->n++] = dir;
	return true;
}

static bool has_wanted(const struct hook_reach *r, const struct walk *w, const char *skill)
{
	auto_free char *parent = path_parent(skill);
	auto_free char *in = w->wanted != NULL ? path_from(skill, w->wanted) : NULL;
	auto_free char *beside =
	        w->wanted != NULL && parent != NULL ? path_from(parent, w->wanted) : NULL;
	auto_free char *of = NULL;

	return w->wanted == NULL || (in != NULL && access(in, F_OK) == 0) ||
	       (beside != NULL && access(beside, F_OK) == 0 &&
	        hook_skill_of(r->places, "/", beside, &of));
}

/* A link within what is walked is met at its own place. */
static bool put_entry(struct walk *w, const char *dir, const struct dirent *e)
{
	auto_free char *full = path_join(dir, e->d_name);
	struct stat st;

	if (e->d_type == DT_DIR) {
		return strcmp(e->d_name, ".git") == 0 || put_directory(w, steal_ptr(&full));
	}
	if (e->d_type != DT_LNK && e->d_type != DT_UNKNOWN) {
		return true;
	}
	auto_free char *real = full != NULL ? realpath(full, NULL) : NULL;
	bool elsewhere =
	        real != NULL && (e->d_type == DT_UNKNOWN || path_beneath(real, w->root) == NULL);
	return !elsewhere || stat(real, &st) != 0 || !S_ISDIR(st.st_mode) ||
	       put_directory(w, steal_ptr(&real));
}

static void close_directory(DIR **d)
{
	if (*d != NULL) {
		(void)closedir(*d);
	}
}

static bool look_into(struct hook_reach *r, struct walk *w, const char *dir)
{
	AUTO(close_directory) DIR *d = opendir(dir);
	const struct dirent *e;

	while (d != NULL && (e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) {
			continue;
		}
		if (++r->walked > MAX_HOOK_WALK) {
			return true; /* nobody can say */
		}
		if (skill_file_names_one(e->d_name) && hook_is_skill(r->places, dir) &&
		    has_wanted(r, w, dir)) {
			w->found = strdup(dir);
			return true;
		}
		if (!put_entry(w, dir, e)) {
			return true;
		}
	}
	return false;
}

/* Does a skill (that has `wanted`) lie in the directory `root`, at any depth? */
static bool skills_in(struct hook_reach *r, const char *root, const char *wanted, char **ret)
{
	AUTO(walk_done) struct walk w = { .root = root, .wanted = wanted };
	bool found = r->walked > MAX_HOOK_WALK || !put_directory(&w, strdup(root));

	while (!found && w.n > 0) {
		auto_free char *dir = w.v[--w.n];
		found = look_into(r, &w, dir);
	}
	if (*ret == NULL) {
		*ret = steal_ptr(&w.found);
	}
	free(w.found);
	return found;
}

static bool skills_in_places(struct hook_reach *r, const char *wanted, char **ret)
{
	_Static_assert(ARRAY_LEN(r->seen) == MAX_HOOK_PLACES, "one for each place");
	for (size_t i = 0; i < r->places->n; i++) {
		if (wanted != NULL) {
			if (skills_in(r, r->places->v[i], wanted, ret)) {
				return true;
			}
			continue;
		}
		if (r->seen[i] == 0) {
			r->seen[i] = skills_in(r, r->places->v[i], NULL, ret) ? 1 : -1;
		}
		if (r->seen[i] > 0) {
			return true;
		}
	}
	return false;
}

/* In what a word names, as far as it is known. */
static bool skills_in_word(struct hook_reach *r, const struct shell_word *w, char **ret)
{
	size_t len = w->plain ? strlen(w->text) : strcspn(w->text, "*?[{");

	while (!w->plain && len > 0 && w->text[len - 1] != '/') {
		len--;
	}
	if (len == 0) {
		return skills_in_places(r, NULL, ret);
	}
	auto_free char *known = strndup(w->text, len);
	for (size_t i = 0; known != NULL && i < r->places->n; i++) {
		auto_free char *full = path_from(r->places->v[i], known);
		auto_free char *real = full != NULL ? realpath(full, NULL) : NULL;
		struct stat st;
		if (real != NULL && stat(real, &st) == 0 && S_ISDIR(st.st_mode) &&
		    skills_in(r, real, NULL, ret)) {
			return true;
		}
	}
	return known == NULL;
}

/* `NAME=value` of a name that leads elsewhere, with a value that is not known, or is a
 * directory with skills; PATH has its programs directly in what it names. */
static bool leads_elsewhere(struct hook_reach *r, const struct shell_word *w, char **ret)
{
	size_t n = strcspn(w->text, "=+");
	char name[32] = "";

	if (!shell_assigns(w) || n >= sizeof(name)) {
		return false;
	}
	memcpy(name, w->text, n);
	if (!hook_program_among(name, LEADING, ARRAY_LEN(LEADING))) {
		return false;
	}
	if (w->unknown) {
		return skills_in_places(r, NULL, ret);
	}
	const char *value = strchr(w->text, '=');
	while (strcmp(name, "PATH") != 0 && value != NULL && *value != '\0') {
		value++;
		size_t len = strcspn(value, ":");
		auto_free char *part = strndup(value, len);
		struct shell_word of = { .text = part, .plain = true };
		bool here = part != NULL && part[strspn(part, "./")] == '\0' && part[0] != '/';
		if (part == NULL || (!here && skills_in_word(r, &of, ret))) {
			return true;
		}
		value += len;
	}
	return false;
}

/* The command that begins with word `at`, up to what ends it for find(1). */
static bool starts_other(const struct hook_reach *r, const struct shell_command *c, size_t at)
{
	struct shell_command sub = { .words = c->words + at };

	while (at + sub.n_words < c->n_words && strcmp(sub.words[sub.n_words].text, ";") != 0) {
		sub.n_words++;
	}
	return sub.n_words > 0 && !hook_program_looks(&sub, r->self);
}

static bool finds(struct hook_reach *r, const struct shell_command *c, size_t at, char **ret)
{
	static const char *const EXEC[] = { "-exec", "-execdir", "-ok", "-okdir" };
	bool starts = false, named = false;

	for (size_t i = at + 1; i < c->n_words; i++) {
		if (hook_program_among(c->words[i].text, EXEC, ARRAY_LEN(EXEC))) {
			starts = starts || starts_other(r, c, i + 1);
		}
	}
	for (size_t i = at + 1; starts && i < c->n_words; i++) {
		const char *s = c->words[i].text;
		if (s[0] == '-' || s[0] == '(' || s[0] == '!') {
			break;
		}
		named = true;
		if (skills_in_word(r, &c->words[i], ret)) {
			return true;
		}
	}
	return starts && !named && skills_in_places(r, NULL, ret);
}

static bool fd_starts(struct hook_reach *r, const struct shell_command *c, size_t at, char **ret)
{
	static const char *const EXEC[] = { "-x", "-X", "--exec", "--exec-batch" };
	bool starts = false;

	for (size_t i = at + 1; i < c->n_words; i++) {
		if (hook_program_among(c->words[i].text, EXEC, ARRAY_LEN(EXEC))) {
			starts = starts || starts_other(r, c, i + 1);
		}
	}
	for (size_t i = at + 1; starts && i < c->n_words; i++) {
		if (skills_in_word(r, &c->words[i], ret)) {
			return true;
		}
	}
	return starts && skills_in_places(r, NULL, ret);
}

/* What comes to it on standard input can be any name. */
static bool xargs_starts(struct hook_reach *r, const struct shell_command *c, size_t at, char **ret)
{
	static const char *const WITH_VALUE[] = { "-I", "-n",         "-P",         "-L",
		                                  "-d", "-s",         "-a",         "-E",
		                                  "-j", "--max-args", "--max-procs" };

	for (at++; at < c->n_words && c->words[at].text[0] == '-'; at++) {
		at += hook_program_among(c->words[at].text, WITH_VALUE, ARRAY_LEN(WITH_VALUE));
	}
	return at < c->n_words && starts_other(r, c, at) && skills_in_places(r, NULL, ret);
}

static const struct {
	const char *name;
	bool (*reaches)(struct hook_reach *r, const struct shell_command *c, size_t at, char **ret);
} WALKERS[] = {
	{ "find", finds },         { "fd", fd_starts },          { "fdfind", fd_starts },
	{ "xargs", xargs_starts }, { "parallel", xargs_starts },
};

/* The word that is started: the program, or what an interpreter is given. NULL: text,
 * which is judged by what it names, or nothing. */
static const struct shell_word *started(const struct shell_command *c, size_t at)
{
	static const char *const GIVEN_TEXT[] = { "-c", "-e", "-[!-]*c", "--eval", "-p", "eval" };

	if (at >= c->n_words || !hook_program_interprets(c->words[at].text)) {
		return at < c->n_words ? &c->words[at] : NULL;
	}
	for (size_t i = at + 1; i < c->n_words; i++) {
		const struct shell_word *w = &c->words[i];
		if (hook_program_among(w->text, GIVEN_TEXT, ARRAY_LEN(GIVEN_TEXT)) ||
		    strcmp(c->words[at].text, "eval") == 0) {
			return NULL;
		}
		if (w->text[0] != '-') {
			return w;
		}
	}
	return NULL;
}

bool hook_reaches(struct hook_reach *r, const struct shell_command *c, char **ret)
{
	for (size_t i = 0; i < c->n_words; i++) {
		if (leads_elsewhere(r, &c->words[i], ret)) {
			return true;
		}
		for (size_t k = 0; k < ARRAY_LEN(WALKERS); k++) {
			if (strcmp(path_base(c->words[i].text), WALKERS[k].name) == 0 &&
			    !hook_program_looks(c, r->self) && WALKERS[k].reaches(r, c, i, ret)) {
				return true;
			}
		}
	}
	const size_t at = hook_program_word(c, false);
	const struct shell_command rest = { .words = c->words + at, .n_words = c->n_words - at };
	const struct shell_word *w = started(&rest, 0);
	if (w == NULL || hook_program_looks(&rest, r->self)) {
		return false;
	}
	if (w->unknown) {
		return skills_in_word(r, w, ret);
	}
	bool relative = w->text[0] != '/' && (strchr(w->text, '/') != NULL || w != &rest.words[0]);
	return r->lost && relative && skills_in_places(r, w->text, ret);
}
