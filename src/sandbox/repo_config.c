/* repo_config.c - reads git's settings on the host, as git would. It reads them even if the git
 * directory lies outside of all grants. A skill may have written these files in an earlier run, so
 * they are not trusted: whatever they contain, the only effect is that paths are held. */
#include "sandbox/repo_config.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/own.h"
#include "base/string_list.h"
#include "os/file.h"
#include "policy/kernel_fs.h"
#include "policy/path.h"
#include "wire/git_config.h"

struct config_reading {
	const struct ssb_plan *plan;
	struct repos *found;
	const char *tree;
	char *gitdir;    /* the tree's git directory, or the one that it shares with other trees;
	                    owned; NULL: there is no repository */
	const char *dir; /* the directory of the file that is being read */
	bool by_skill;   /* a skill may have written the text */
	struct string_list files[2]; /* indexed by `by_skill` */
	const char *cut;
	struct ssb_error *err;
	bool failed; /* `err` has the reason; if it is not filled: out of memory */
};

/* Ends the reading with an error: `path` could name more paths to protect, and cannot be read. */
static void stop_reading(struct config_reading *r, const char *path)
{
	(void)links_unread(path, r->err);
	r->failed = true;
}

/* Calls links_follow(). If that fails, notes the reason and returns NULL. */
static char *follow_path(struct config_reading *r, const char *path, bool *ret_there)
{
	char *real = links_follow(&r->found->links, r->plan, path, r->by_skill, ret_there);

	if (real == NULL && (errno == ENAMETOOLONG || errno == E2BIG)) {
		r->cut = "a path in git's settings is too long";
	} else if (real == NULL) {
		stop_reading(r, path);
	}
	return real;
}

/* True if links_follow() fails, or does not examine the path because its file system may never
 * answer. */
static bool is_far(struct config_reading *r, const char *path)
{
	bool there = false;
	auto_free char *real = follow_path(r, path, &there);

	return real == NULL || (!there && errno == EXDEV);
}

/* Opens a regular file for reading. Returns -1 if there is none. Other kinds of files must not be
 * opened: the open itself could start a watchdog device or unblock the writer of a FIFO, and some
 * kernel files can be read only once. If the file exists and cannot be read, the run must not
 * start, because the paths that it names are unknown. */
static int open_file(struct config_reading *r, const char *path)
{
	struct stat st;
	char link[32];

	if (is_far(r, path)) {
		return -1;
	}
	auto_fd at = open(path, O_PATH | O_CLOEXEC);
	if (at < 0 || fstat(at, &st) != 0) {
		if (links_is_unread(AT_FDCWD, path)) {
			stop_reading(r, path);
		}
		return -1;
	}
	if (!S_ISREG(st.st_mode) || kernel_fs_of(at) != KERNEL_FS_NONE) {
		return -1;
	}
	snprintf(link, sizeof(link), "/proc/self/fd/%d", at);
	int fd = open(link, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && (errno != EACCES || st.st_uid == geteuid())) {
		stop_reading(r, path);
	}
	return fd;
}

/* Reads a file's text. Returns false if there is none. A text that is too long is cut. */
static bool read_text(struct config_reading *r, const char *path, struct buf *text)
{
	auto_fd fd = open_file(r, path);

	if (fd < 0) {
		return false;
	}
	if (file_read_all(fd, text) != 0) {
		if (errno != EFBIG) {
			stop_reading(r, path);
			return false;
		}
		r->cut = "git's settings in it are too long";
	}
	return text->data != NULL;
}

/* Reads a pointer: the first line of the file `name` in `dir` is `lead` and a path, which may be
 * relative to `dir`. Returns the path (new), or NULL if there is no such line. */
static char *read_pointer(struct config_reading *r, const char *dir, const char *name,
                          const char *lead)
{
	auto_buf text = BUF(MAX_REPO_CONFIG);
	auto_free char *path = path_join(dir, name);
	size_t skip = strlen(lead);

	r->failed |= path == NULL;
	if (path == NULL || !read_text(r, path, &text) || strncmp(text.data, lead, skip) != 0) {
		return NULL;
	}
	text.data[strcspn(text.data, "\r\n")] = '\0';
	char *to = text.data[skip] != '\0' ? path_from(dir, text.data + skip) : NULL;
	r->failed |= to == NULL && text.data[skip] != '\0';
	return to;
}

static void add_to(struct config_reading *r, struct string_list *l, size_t max, const char *path,
                   const char *too_many)
{
	if (string_list_add_once(l, path, max) != 0) {
		r->failed |= errno != E2BIG;
		r->cut = too_many;
	}
}

static void add_file(struct config_reading *r, const char *path)
{
	add_to(r, &r->files[r->by_skill], MAX_REPO_CONFIGS, path,
	       "git's settings in it include too many files");
}

/* Adds the settings of the machine and of the owner, which apply to every tree. */
static void add_common_files(struct config_reading *r)
{
	static const char *const OWNERS[] = { ".gitconfig", ".config/git/config" };

	add_file(r, "/etc/gitconfig");
	for (size_t i = 0; i < ARRAY_LEN(OWNERS); i++) {
		auto_free char *path = path_join(r->plan->home, OWNERS[i]);
		if (path == NULL) {
			r->failed = true;
			return;
		}
		add_file(r, path);
	}
}

static bool is_written(const struct ssb_plan *plan, const char *path)
{
	const struct grant *g = plan_shown_by(plan, path);

	return g != NULL && grant_is_work(g);
}

/* Adds a git directory that does not lie in its tree. `path` may be NULL. */
static void add_gitdir(struct config_reading *r, const char *path)
{
	bool there = false;
	auto_free char *real = path != NULL ? follow_path(r, path, &there) : NULL;

	if (real != NULL && there) {
		add_to(r, &r->found->gitdirs, MAX_GITDIRS, real,
		       "too many git directories lie outside of their work trees");
	}
}

/* Adds the files of settings of this tree: "config" of its repository, which all worktrees share,
 * and "config.worktree" of its own git directory. */
static void add_own_files(struct config_reading *r)
{
	auto_free char *pointed = read_pointer(r, r->tree, ".git", "gitdir: ");
	bool apart = pointed != NULL;
	auto_free char *gitdir = pointed != NULL ? steal_ptr(&pointed) : path_join(r->tree, ".git");
	auto_free char *shared = gitdir != NULL ? read_pointer(r, gitdir, "commondir", "") : NULL;
	auto_free char *own = gitdir != NULL ? path_join(gitdir, "config.worktree") : NULL;
	auto_free char *config =
	        gitdir != NULL ? path_join(shared != NULL ? shared : gitdir, "config") : NULL;

	if (own == NULL || config == NULL) {
		r->failed = true;
		return;
	}
	add_file(r, config);
	add_file(r, own);
	if (apart || !is_written(r->plan, r->tree)) {
		add_gitdir(r, gitdir);
		add_gitdir(r, shared);
	}
	if (is_far(r, gitdir)) {
		return;
	}
	if (access(gitdir, F_OK) == 0) {
		r->gitdir = steal_ptr(shared != NULL ? &shared : &gitdir);
	} else if (errno != ENAMETOOLONG && links_is_unread(AT_FDCWD, gitdir)) {
		stop_reading(r, gitdir);
	}
}

static bool is_named(const struct repos *f, size_t grant, const char *path, bool is_dir)
{
	for (size_t i = 0; i < f->n_named; i++) {
		const struct named *n = &f->named[i];
		if (n->grant == grant && n->is_dir == is_dir && strcmp(n->path, path) == 0) {
			return true;
		}
	}
	return false;
}

/* Refuses the run if a grant that you did not name yourself is, or lies in, the file or directory
 * that git reads or executes. Nothing in such a grant could be held: it was asked for exactly. */
static bool is_exposed(struct config_reading *r, const char *real, bool is_dir)
{
	const struct grant *g =
	        ARRAY_FIND(e, r->plan->grants, r->plan->n_grants,
	                   grant_is_written(e) &&
	                           (e->origin == ORIGIN_MANIFEST || e->origin == ORIGIN_CALLER) &&
	                           path_beneath(e->path, real) != NULL &&
	                           (!e->is_dir || strcmp(e->path, real) != 0));

	if (g == NULL) {
		return false;
	}
	ssb_fail(r->err, SSB_E_POLICY, 0, g->where,
	         "write %s: git on the host %s it, as its settings say; only you can grant it: "
	         "--write %s",
	         g->path, is_dir ? "executes" : "reads settings from", g->path);
	r->failed = true;
	return true;
}

/* Handles an absolute path from the settings. If the skill could write it, adds it to found->named.
 * Otherwise adds a directory of hooks to found->hooks, because links in it may lead to files that
 * the skill can write. */
static void add_named(struct config_reading *r, const char *path, bool is_dir)
{
	static const char TOO_MANY[] = "git's settings in it name too many places";
	struct repos *f = r->found;
	bool there;
	auto_free char *real = follow_path(r, path, &there);

	if (real == NULL || is_exposed(r, real, is_dir)) {
		return;
	}
	const struct grant *g = plan_shown_by(r->plan, real);
	if (g == NULL || !grant_is_written(g)) {
		if (is_dir && there) {
			add_to(r, &f->hooks, MAX_NAMED, real, TOO_MANY);
		}
		return;
	}
	size_t grant = (size_t)(g - r->plan->grants);
	const char *rest = path_beneath(real, g->target);
	if (is_named(f, grant, rest, is_dir)) {
		return;
	}
	if (f->n_named == MAX_NAMED) {
		r->cut = TOO_MANY;
		return;
	}
	char *copy = strdup(rest);
	r->failed |= copy == NULL;
	if (copy != NULL) {
		f->named[f->n_named++] =
		        (struct named){ .grant = grant,
			                .path = copy,
			                .is_dir = is_dir,
			                .whole = is_dir && path_beneath(r->tree, real) != NULL };
	}
}

static void add_from(struct config_reading *r, const char *dir, const char *path, bool is_dir)
{
	auto_free char *whole = path_from(dir, path);

	if (whole == NULL) {
		r->failed = true;
		return;
	}
	add_named(r, whole, is_dir);
	if (!is_dir) {
		add_file(r, whole);
	}
}

/* An included file is relative to the file that includes it. A directory of hooks is relative to
 * the directory in which git runs the hooks: the top of the tree or, for a push, the git directory.
 * In the git directory, no other directory of hooks can be made. A directory of templates is
 * relative to the directory in which "git init" is started, which is not known. */
static void take_path(struct config_reading *r, enum git_config_name name, const char *path)
{
	if (name == GIT_CONFIG_INCLUDE) {
		add_from(r, r->dir, path, false);
	} else if (*path == '/') {
		add_named(r, path, true);
	} else if (name == GIT_CONFIG_HOOKS && r->gitdir != NULL) {
		add_from(r, r->tree, path, true);
		if (strncmp(path, ".git/", 5) != 0) {
			add_from(r, r->gitdir, path, true);
		}
	}
}

/* Finds the home of the user `name` (`len` bytes) in the password file, without a name service,
 * which could block. Returns new; NULL if the user is not in it. */
static char *find_home(const char *name, size_t len)
{
	auto_file f = fopen("/etc/passwd", "re");
	struct passwd pw;
	struct passwd *found = NULL;
	char text[4096];

	while (f != NULL && fgetpwent_r(f, &pw, text, sizeof(text), &found) == 0) {
		if (strlen(pw.pw_name) == len && memcmp(pw.pw_name, name, len) == 0) {
			return strdup(pw.pw_dir);
		}
	}
	return NULL;
}

/* "~name/rest" */
static void take_home_path(struct config_reading *r, enum git_config_name name, const char *value)
{
	size_t len = strcspn(value + 1, "/");
	auto_free char *home = find_home(value + 1, len);
	const char *rest = value + 1 + len;
	auto_free char *path = home != NULL ? path_join(home, rest + strspn(rest, "/")) : NULL;

	if (home == NULL) {
		r->cut = "git's settings in it name the home of a user who is not in /etc/passwd";
	} else if (path == NULL) {
		r->failed = true;
	} else {
		take_path(r, name, path);
	}
}

/* Called for each path in the settings. Expands the path as git does. */
static void take_name(void *arg, enum git_config_name name, const char *value)
{
	static const char OPTIONAL[] = ":(optional)";
	static const char PREFIX[] = "%(prefix)/"; /* where git is installed */
	static const char *const PREFIXES[] = { "/usr", "/usr/local" };
	struct config_reading *r = arg;
	const struct owner owner = { .home = r->plan->home };

	value += strncmp(value, OPTIONAL, sizeof(OPTIONAL) - 1) == 0 ? sizeof(OPTIONAL) - 1 : 0;
	if (strncmp(value, PREFIX, sizeof(PREFIX) - 1) == 0) {
		for (size_t i = 0; i < ARRAY_LEN(PREFIXES) && !r->failed; i++) {
			auto_free char *path = path_join(PREFIXES[i], value + sizeof(PREFIX) - 1);
			r->failed |= path == NULL;
			if (path != NULL) {
				take_path(r, name, path);
			}
		}
		return;
	}
	if (value[0] == '~' && value[1] != '/' && value[1] != '\0') {
		take_home_path(r, name, value);
		return;
	}
	auto_free char *path = path_expand(&owner, value);
	r->failed |= path == NULL;
	if (path != NULL) {
		take_path(r, name, path);
	}
}

/* Reads all files of one list. The list grows while it is read, because included files are
 * added. If a skill may have written a file, the files that it includes go into the list of the
 * skill's files. */
static void read_files(struct config_reading *r, bool by_skill)
{
	const struct string_list *l = &r->files[by_skill];

	for (size_t i = 0; i < l->n && !r->failed; i++) {
		auto_buf text = BUF(MAX_REPO_CONFIG);
		auto_free char *path = strdup(l->v[i]);
		auto_free char *dir = path != NULL ? path_parent(path) : NULL;

		r->dir = dir;
		r->failed |= dir == NULL;
		r->by_skill = by_skill;
		if (!r->failed && read_text(r, path, &text)) {
			r->by_skill = by_skill || is_written(r->plan, path);
			git_config_read(text.data, text.len, take_name, r);
		}
	}
}

int repo_config_read(const struct ssb_plan *plan, struct repos *found, const char *tree,
                     const char **ret_cut, struct ssb_error *err)
{
	struct config_reading r = { .plan = plan, .found = found, .tree = tree, .err = err };

	add_common_files(&r);
	r.by_skill = is_written(plan, tree);
	add_own_files(&r);
	read_files(&r, false);
	read_files(&r, true);
	string_list_done(&r.files[false]);
	string_list_done(&r.files[true]);
	free(r.gitdir);
	if (r.cut != NULL) {
		*ret_cut = r.cut;
	}
	return r.failed ? -1 : 0;
}
