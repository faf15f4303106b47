/* skills.c - the skills that are served. The list is made again each time, because skills are
 * installed and removed while the server is running.
 *
 * A path that a client sends is checked twice: first its text, and then the real path to which
 * it leads. A path outside of the served directories is not looked up, and gets the same
 * answer whether it exists or not: a client must not learn which files the owner has. */
#include "serve/skills.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "policy/path.h"
#include "skill/skill.h"

struct skills {
	char **roots; /* real paths */
	char **named; /* the roots as the owner wrote them, made absolute */
	size_t n_roots;
	struct skill *v;
	size_t n;
};

static int fail_no_memory(struct ssb_error *err)
{
	return ssb_fail(err, SSB_E_NOMEM, 0, "skills", "out of memory");
}

/* ---- roots ---------------------------------------------------------------- */

/* Makes the path absolute, and removes "." and empty parts. Uses only the text, not the file
 * system. Returns new, or NULL if the path contains "..", or is too long. */
static char *path_plain(const char *word)
{
	char cwd[MAX_PATH_BYTES];
	auto_buf out = BUF(MAX_PATH_BYTES);

	if (word[0] != '/') {
		if (getcwd(cwd, sizeof(cwd)) == NULL || cwd[0] != '/') {
			return NULL;
		}
		buf_adds(&out, strcmp(cwd, "/") == 0 ? "" : cwd);
	}
	for (const char *p = word; *p != '\0';) {
		size_t len = strcspn(p, "/");
		if (len == 2 && p[0] == '.' && p[1] == '.') {
			return NULL;
		}
		if (len > 0 && !(len == 1 && p[0] == '.')) {
			buf_addc(&out, '/');
			buf_add(&out, p, len);
		}
		p += len + (p[len] == '/' ? 1 : 0);
	}
	if (out.len == 0) {
		buf_addc(&out, '/');
	}
	return buf_steal(&out);
}

static int add_root(struct skills *s, const char *dir, struct ssb_error *err)
{
	auto_free char *real = realpath(dir, NULL);
	auto_free char *named = path_plain(dir);
	struct stat st;

	if (real == NULL || stat(real, &st) != 0) {
		return ssb_fail(err, errno == ENOENT ? SSB_E_NOT_FOUND : SSB_E_SYS, errno,
		                "--skills", "'%.200s'", dir);
	}
	if (!S_ISDIR(st.st_mode)) {
		return ssb_fail(
		        err, SSB_E_USAGE, 0, "--skills",
		        "'%.200s' is not a directory; name the directory of a skill or of skills",
		        dir);
	}
	for (size_t i = 0; i < s->n_roots; i++) {
		if (strcmp(s->roots[i], real) == 0) {
			return 0;
		}
	}
	s->named[s->n_roots] = named != NULL ? steal_ptr(&named) : strdup(real);
	if (s->named[s->n_roots] == NULL) {
		return fail_no_memory(err);
	}
	s->roots[s->n_roots++] = steal_ptr(&real);
	return 0;
}

static void forget_skills(struct skills *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->v[i].name);
		free(s->v[i].dir);
	}
	free(s->v);
	s->v = NULL;
	s->n = 0;
}

void skills_free(struct skills *s)
{
	if (s == NULL) {
		return;
	}
	forget_skills(s);
	for (size_t i = 0; i < s->n_roots; i++) {
		free(s->roots[i]);
		free(s->named[i]);
	}
	free(s->roots);
	free(s->named);
	free(s);
}

OWN_FREEP(skills_freep, struct skills, skills_free)

int skills_new(char *const dirs[], size_t n, struct skills **ret, struct ssb_error *err)
{
	AUTO(skills_freep) struct skills *s = calloc(1, sizeof(*s));

	if (s == NULL || (s->roots = calloc(n + 1, sizeof(*s->roots))) == NULL ||
	    (s->named = calloc(n + 1, sizeof(*s->named))) == NULL) {
		return fail_no_memory(err);
	}
	for (size_t i = 0; i < n; i++) {
		if (add_root(s, dirs[i], err) != 0) {
			return -1;
		}
	}
	*ret = steal_ptr(&s);
	return 0;
}

/* ---- the list -------------------------------------------------------------- */

static bool is_served(const struct skills *s, const char *real)
{
	return ARRAY_HAS(root, s->roots, s->n_roots, path_beneath(real, *root) != NULL);
}

/* Adds a skill to the list. Takes `dir`. */
static int add_skill(struct skills *s, char *dir, struct ssb_error *err)
{
	auto_free char *real = dir;

	for (size_t i = 0; i < s->n; i++) {
		if (strcmp(s->v[i].dir, real) == 0) {
			return 0;
		}
	}
	if (s->n >= MAX_SKILLS) {
		return ssb_fail(err, SSB_E_LIMIT, 0, "--skills", "there are more than %d skills",
		                MAX_SKILLS);
	}
	char *name = strdup(path_base(real));
	if (name == NULL || !ARRAY_MORE(s->v, s->n)) {
		free(name);
		return fail_no_memory(err);
	}
	s->v[s->n++] = (struct skill){ name, steal_ptr(&real) };
	return 0;
}

/* Adds the directories in a root, and the symlinks in it that lead to served directories. */
static int add_children(struct skills *s, const char *root, struct ssb_error *err)
{
	auto_dir dir = opendir(root);
	int failed = 0;

	/* A root that was removed, or that is not readable any more, has no skills: this is not
	 * an error. */
	for (struct dirent *d; dir != NULL && failed == 0 && (d = readdir(dir)) != NULL;) {
		auto_free char *path = d->d_name[0] == '.' ? NULL : path_join(root, d->d_name);
		auto_free char *real = path == NULL ? NULL : realpath(path, NULL);
		if (real != NULL && is_served(s, real) && skill_is_one(real)) {
			failed = add_skill(s, steal_ptr(&real), err);
		}
	}
	return failed;
}

/* Gives `v` a longer name, because `other` has the same name: "tools/weather" for "weather", or
 * the whole path if the longer names are the same, too. */
static int name_apart(struct skill *v, const struct skill *other)
{
	size_t len = strlen(v->dir);
	size_t same = 0;

	for (int slashes = 0; same < len && slashes < 2; same++) {
		slashes += v->dir[len - 1 - same] == '/';
	}
	size_t other_len = strlen(other->dir);
	bool alike = other_len >= same &&
	             strcmp(other->dir + other_len - same, v->dir + len - same) == 0;
	char *name = strdup(alike ? v->dir : v->dir + len - same + (same < len ? 1 : 0));
	if (name == NULL) {
		return -1;
	}
	free(v->name);
	v->name = name;
	return 0;
}

static int make_unique(struct skills *s, struct ssb_error *err)
{
	for (size_t i = 0; i < s->n; i++) {
		for (size_t k = 0; k < s->n; k++) {
			const char *base = path_base(s->v[k].dir);
			if (k != i && strcmp(path_base(s->v[i].dir), base) == 0 &&
			    name_apart(&s->v[i], &s->v[k]) != 0) {
				return fail_no_memory(err);
			}
		}
	}
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct skill *)a)->name, ((const struct skill *)b)->name);
}

int skills_list(struct skills *s, const struct skill **ret, size_t *ret_n, struct ssb_error *err)
{
	forget_skills(s);
	for (size_t i = 0; i < s->n_roots; i++) {
		if (skill_is_one(s->roots[i])) {
			char *copy = strdup(s->roots[i]);
			if (copy == NULL || add_skill(s, copy, err) != 0) {
				return copy == NULL ? fail_no_memory(err) : -1;
			}
		} else if (add_children(s, s->roots[i], err) != 0) {
			return -1;
		}
	}
	if (make_unique(s, err) != 0) {
		return -1;
	}
	if (s->n > 1) {
		qsort(s->v, s->n, sizeof(*s->v), by_name);
	}
	*ret = s->v;
	*ret_n = s->n;
	return 0;
}

/* ---- one skill -------------------------------------------------------------- */

/* Returns true if the path, by its text alone, lies in a served directory. */
static bool reads_served(const struct skills *s, const char *word)
{
	auto_free char *plain = path_plain(word);

	for (size_t i = 0; plain != NULL && i < s->n_roots; i++) {
		if (path_beneath(plain, s->roots[i]) != NULL ||
		    path_beneath(plain, s->named[i]) != NULL) {
			return true;
		}
	}
	return false;
}

/* Resolves the path. If the path names a manifest, the result is the manifest's directory. Returns
 * NULL if the path does not exist, or must not be looked up. */
static char *real_directory(const struct skills *s, const char *word)
{
	char *real = reads_served(s, word) ? realpath(word, NULL) : NULL;
	char *slash = real == NULL ? NULL : strrchr(real, '/');

	if (slash != NULL && slash != real && skill_file_names_one(slash + 1)) {
		*slash = '\0';
	}
	return real;
}

int skills_find(struct skills *s, const char *word, const struct skill **ret, struct ssb_error *err)
{
	const struct skill *v;
	size_t n;

	assert(word != NULL);
	if (skills_list(s, &v, &n, err) != 0) {
		return -1;
	}
	const struct skill *found = ARRAY_FIND(e, s->v, s->n, strcmp(e->name, word) == 0);
	bool is_path = strchr(word, '/') != NULL || word[0] == '.' || word[0] == '~';
	auto_free char *real = found == NULL && is_path ? real_directory(s, word) : NULL;

	if (real != NULL) {
		found = ARRAY_FIND(skill, v, n, strcmp(skill->dir, real) == 0);
	}
	if (found != NULL) {
		*ret = found;
		return 0;
	}
	if (is_path && (real == NULL || !is_served(s, real))) {
		return ssb_fail(
		        err, SSB_E_POLICY, 0, "skill",
		        "'%.200s' is not served here; list_skills names what is served, and "
		        "only the owner can serve more (skillsandbox serve --skills DIR)",
		        word);
	}
	return ssb_fail(
	        err, SSB_E_NOT_FOUND, 0, "skill",
	        "this server serves no skill '%.200s'; list_skills names the skills that it serves",
	        word);
}
