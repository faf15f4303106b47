/* repos_gitdirs.c - finds the git directories of working trees. The .git file of a submodule or
 * worktree ("gitdir: PATH") names a git directory, and the file commondir in that directory may
 * name a second one. Both are added if they lie in any writable grant. A skill may have written
 * these files in an earlier run, so they are not trusted. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/entries.h"
#include "os/file.h"
#include "policy/path.h"
#include "sandbox/repo_config.h"
#include "sandbox/repos_priv.h"

#define POINTER_BYTES 4096U /* maximum size of a .git file or a commondir */

/* A path in a grant. The grant need not be the one that is searched. */
struct git_place {
	size_t grant;
	char *path; /* relative to the grant's top; owned; NULL: not in a grant */
};

static void place_done(struct git_place *p)
{
	free(p->path);
}

/* True if the path is protected already: it is the .git of a known tree (or of the grant's top), or
 * it is or lies in the .git/modules of such a tree, which is read-only as a whole. */
static bool in_known_git(const struct repos_search *s, size_t grant, const char *path)
{
	static const char *const WHOLE[] = { ".git", ".git/modules" };

	for (const char *at = path; at != NULL; at = strchr(at, '/')) {
		at += *at == '/';
		for (size_t i = 0; i < ARRAY_LEN(WHOLE); i++) {
			size_t len = strlen(WHOLE[i]);
			if (strncmp(at, WHOLE[i], len) != 0 ||
			    (at[len] != '\0' && (i == 0 || at[len] != '/'))) {
				continue;
			}
			size_t before = (size_t)(at - path);
			auto_free char *tree = strndup(path, before > 0 ? before - 1 : 0);
			if (tree == NULL) {
				return false;
			}
			if (*tree == '\0' || repos_is_known(s, grant, tree, false)) {
				return true;
			}
		}
	}
	return false;
}

static void add_gitdir(struct repos_search *s, size_t grant, const char *path)
{
	if (!in_known_git(s, grant, path)) {
		repos_add(s, grant, path, true);
	}
}

/* Reads the first line of a small regular file and removes `lead` from its beginning. Returns false
 * if the line is missing or begins otherwise. */
static bool read_pointer(struct repos_search *s, size_t grant, const char *path, const char *lead,
                         char *out, size_t size)
{
	auto_fd fd = file_openat2(repos_grant_fd(s, grant), path,
	                          O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
	                          REPOS_IN_GRANT | RESOLVE_NO_SYMLINKS);
	struct stat st;

	if (fd < 0) {
		repos_note_unread(s, grant, path);
		return false;
	}
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		return false;
	}
	ssize_t n = read(fd, out, size - 1);
	if (n < 0) {
		repos_note_unread(s, grant, path);
		return false;
	}
	size_t skip = strlen(lead);
	if (n <= (ssize_t)skip || memcmp(out, lead, skip) != 0 || memchr(out, '\0', (size_t)n)) {
		return false;
	}
	out[n] = '\0';
	memmove(out, out + skip, (size_t)n - skip + 1);
	out[strcspn(out, "\r\n")] = '\0';
	return *out != '\0';
}

static bool is_directory(struct repos_search *s, size_t grant, const char *path)
{
	auto_fd fd = file_openat2(repos_grant_fd(s, grant), *path != '\0' ? path : ".",
	                          O_PATH | O_DIRECTORY, REPOS_IN_GRANT | RESOLVE_NO_SYMLINKS);

	if (fd < 0 && errno != EXDEV) { /* EXDEV: another mount, which was noted before */
		repos_note_unread(s, grant, path);
	}
	return fd >= 0;
}

/* Finds the directory that `to` names, relative to the directory `from`, and holds the links on the
 * way. If the directory lies in a writable grant, returns its place; otherwise returns a place
 * whose path is NULL. */
static struct git_place place_of(struct repos_search *s, const struct git_place *from,
                                 const char *to)
{
	const struct git_place nowhere = { 0 };
	bool there = false;
	auto_free char *dir = path_join(s->plan->grants[from->grant].path, from->path);
	auto_free char *path = dir != NULL ? path_from(dir, to) : NULL;
	auto_free char *real =
	        path != NULL ? links_follow(&s->found->links, s->plan, path, true, &there) : NULL;

	if (real == NULL && path != NULL && (errno == ENAMETOOLONG || errno == E2BIG)) {
		repos_cut(s, "the path to a git directory is too long");
		return nowhere;
	}
	if (real == NULL) {
		(void)(path != NULL ? links_unread(path, s->err) : 0);
		s->failed = true;
		return nowhere;
	}
	int why = errno;
	const struct grant *g = plan_shown_by(s->plan, real);
	if (g == NULL || !grant_is_work(g)) {
		return nowhere;
	}
	if (!there) { /* the skill could create the directory, or make it accessible */
		errno = why;
		if (why == EACCES) {
			(void)links_unread(real, s->err);
			s->failed = true;
		}
		repos_cut(s,
		          "a .git in it leads to a place that does not exist or cannot be opened");
		return nowhere;
	}
	const char *rest = path_beneath(real, g->target);
	if (!is_directory(s, (size_t)(g - s->plan->grants), rest)) {
		return nowhere;
	}
	struct git_place found = { (size_t)(g - s->plan->grants), strdup(rest) };
	s->failed |= found.path == NULL;
	return found;
}

/* Adds the git directory that `to` names, relative to the directory `from`, and the git directory
 * that the first one's commondir names. Returns the place of the last one that it added. */
static struct git_place follow_pointer(struct repos_search *s, const struct git_place *from,
                                       const char *to)
{
	char text[POINTER_BYTES];
	struct git_place gitdir = place_of(s, from, to);

	for (int step = 0; gitdir.path != NULL; step++) {
		add_gitdir(s, gitdir.grant, gitdir.path);
		auto_free char *file = path_join(gitdir.path, "commondir");
		if (step == 1 || file == NULL ||
		    !read_pointer(s, gitdir.grant, file + (*file == '/'), "", text, sizeof(text))) {
			break;
		}
		struct git_place common = place_of(s, &gitdir, text);
		place_done(&gitdir);
		gitdir = common;
	}
	return gitdir;
}

/* Adds the git directory of one tree. `tree` is NULL for the top of the grant. */
static void follow_tree(struct repos_search *s, struct repo *tree)
{
	char text[POINTER_BYTES];
	const struct git_place from = { s->grant, tree != NULL ? tree->path : (char[]){ "" } };
	auto_free char *file = tree != NULL ? path_join(from.path, ".git") : strdup(".git");

	if (file == NULL) {
		s->failed = true;
		return;
	}
	AUTO(place_done)
	struct git_place shared = { s->grant, NULL };
	if (read_pointer(s, s->grant, file, "gitdir: ", text, sizeof(text))) {
		shared = follow_pointer(s, &from, text);
	} else if (repos_type_of(s, file) == S_IFLNK) {
		shared = follow_pointer(s, &from, ".git");
	} else {
		shared.path = strdup(file);
	}
	if (tree != NULL && shared.grant == s->grant) {
		tree->shared = steal_ptr(&shared.path);
	}
}

/* Adds the git directories of all trees of this grant. The trees of all grants must be known
 * before, because most git directories lie in one of them. */
static void follow_grant(struct repos_search *s, size_t n_trees)
{
	follow_tree(s, NULL);
	for (size_t i = 0; i < n_trees && !s->failed; i++) {
		if (s->found->v[i].grant == s->grant && !s->found->v[i].gitdir) {
			follow_tree(s, &s->found->v[i]);
		}
	}
}

/* Reads git's settings for this tree. */
static void read_config(struct repos_search *s, const char *tree)
{
	const char *why = NULL;

	s->failed |= repo_config_read(s->plan, s->found, tree, &why, s->err) != 0;
	repos_cut(s, why);
}

static void read_configs(struct repos_search *s, size_t n_trees)
{
	const char *top = s->plan->grants[s->grant].path;

	read_config(s, top);
	for (size_t i = 0; i < n_trees && !s->failed; i++) {
		if (s->found->v[i].grant != s->grant || s->found->v[i].gitdir) {
			continue;
		}
		auto_free char *tree = path_join(top, s->found->v[i].path);
		s->failed |= tree == NULL;
		if (tree != NULL) {
			read_config(s, tree);
		}
	}
}

/* Adds the git directories of a repository's worktrees: `gitdir`/worktrees/NAME. Each is a git
 * directory, even if its tree is not granted, and git can make more of them. If there are too many,
 * or they cannot be listed, the whole directory "worktrees" becomes read-only. */
static void hold_worktrees(struct repos_search *s, size_t grant, const char *gitdir)
{
	AUTO(string_list_done) struct string_list names = { 0 };
	auto_free char *all =
	        *gitdir != '\0' ? path_join(gitdir, "worktrees") : strdup("worktrees");
	auto_free char *whole = all != NULL ? path_join(s->plan->grants[grant].path, all) : NULL;
	auto_fd fd = whole == NULL
	                     ? -1
	                     : file_openat2(repos_grant_fd(s, grant), all, O_RDONLY | O_DIRECTORY,
	                                    REPOS_IN_GRANT | RESOLVE_NO_SYMLINKS);
	auto_dir dir = fd >= 0 ? fdopendir(fd) : NULL;
	size_t room = s->most - s->found->n < MAX_WORKTREES ? s->most - s->found->n : MAX_WORKTREES;
	bool listed = dir != NULL;

	if (whole == NULL || (dir == NULL && (file_is_missing(errno) || errno == ELOOP))) {
		s->failed |= whole == NULL;
		return;
	}
	(void)(listed ? steal_fd(&fd) : -1);
	for (const struct dirent *e; listed && (e = entries_of(dir)) != NULL;) {
		auto_free char *path = path_join(all, e->d_name);
		listed = path != NULL && string_list_add(&names, path, room) == 0;
	}
	if (!listed || errno != 0) {
		repos_hold_whole(s, whole);
		return;
	}
	for (size_t i = 0; i < names.n; i++) {
		if (is_directory(s, grant, names.v[i])) {
			repos_add(s, grant, names.v[i], true);
		}
	}
}

/* Calls hold_worktrees() for every repository that was found, and for the tops of the grants. */
static void hold_all_worktrees(struct repos_search *s)
{
	for (size_t i = 0; i < s->plan->n_grants && !s->failed; i++) {
		if (grant_is_work(&s->plan->grants[i])) {
			hold_worktrees(s, i, ".git");
		}
	}
	size_t n = s->found->n;
	for (size_t i = 0; i < n && !s->failed; i++) {
		const struct repo *r = &s->found->v[i];
		auto_free char *git = r->gitdir ? strdup(r->path) : path_join(r->path, ".git");
		s->failed |= git == NULL;
		if (git != NULL) {
			hold_worktrees(s, r->grant, git);
		}
	}
}

static int add_above(const struct ssb_plan *plan, const char *path, struct string_list *ret)
{
	auto_free char *dir = strdup(path);

	while (dir != NULL && strcmp(dir, "/") != 0 && strcmp(dir, plan->home) != 0) {
		char *above = path_parent(dir);
		free(dir);
		dir = above;
		const struct grant *in = dir != NULL ? plan_shown_by(plan, dir) : NULL;
		if (in != NULL && grant_is_work(in)) {
			return 0;
		}
		if (dir != NULL && string_list_add_once(ret, dir, MAX_AROUND) != 0) {
			return -1;
		}
	}
	return dir != NULL ? 0 : -1;
}

/* Adds to `ret` the directories above each writable grant, up to the home or to "/". Directories
 * that lie in a writable grant themselves are left out, because the search for repositories visits
 * them anyway.
 *
 * The settings, hooks and protected names of a repository around a grant are outside of the grant,
 * but may lead to files in the grant. These files must be protected as if the whole repository were
 * granted. */
static int list_around(const struct ssb_plan *plan, struct string_list *ret, struct ssb_error *err)
{
	for (size_t i = 0; i < plan->n_grants; i++) {
		const struct grant *g = &plan->grants[i];
		if (grant_is_written(g) && add_above(plan, g->path, ret) != 0) {
			return ssb_fail(err, SSB_E_LAYER, errno, "mounts",
			                "more than %d directories lie above the paths that the "
			                "skill may write; grant fewer such paths",
			                MAX_AROUND);
		}
	}
	return 0;
}

/* Reads the settings of the repositories around the grants, and adds all git directories of these
 * repositories that lie in a grant. */
static void look_around(struct repos_search *s)
{
	struct repos *f = s->found;
	struct stat st;

	s->failed |= list_around(s->plan, &f->around, s->err) != 0;
	for (size_t i = 0; i < f->around.n && !s->failed; i++) {
		auto_free char *git = path_join(f->around.v[i], ".git");
		if (git != NULL && lstat(git, &st) == 0) {
			read_config(s, f->around.v[i]);
		} else if (git == NULL || links_is_unread(AT_FDCWD, git)) {
			(void)(git != NULL ? links_unread(git, s->err) : 0);
			s->failed = true;
		}
	}
	for (size_t i = 0; i < f->gitdirs.n && !s->failed; i++) {
		const struct grant *g = plan_shown_by(s->plan, f->gitdirs.v[i]);
		if (g == NULL || !grant_is_work(g)) {
			continue;
		}
		size_t grant = (size_t)(g - s->plan->grants);
		const char *path = path_beneath(f->gitdirs.v[i], g->target);
		if (is_directory(s, grant, path)) {
			add_gitdir(s, grant, path);
		}
	}
}

/* Reads the settings of the machine and of the owner for grants of single files. One reading is
 * enough, because these settings apply everywhere. */
static void read_common_configs(struct repos_search *s)
{
	const struct grant *g = ARRAY_FIND(e, s->plan->grants, s->plan->n_grants,
	                                   grant_is_written(e) && !e->is_dir);
	auto_free char *dir = g != NULL ? path_parent(g->path) : NULL;

	s->failed |= g != NULL && dir == NULL;
	if (dir != NULL) {
		read_config(s, dir);
	}
}

void repos_gitdirs_follow(struct repos_search *s, size_t n_trees)
{
	follow_grant(s, n_trees);
	read_configs(s, n_trees);
}

void repos_gitdirs_around(struct repos_search *s)
{
	look_around(s);
	if (!s->failed) {
		read_common_configs(s);
	}
	hold_all_worktrees(s);
}
