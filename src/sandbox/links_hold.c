/* links_hold.c - finds the protected names, directory by directory. If one is a symlink, its target
 * is held (links.h). */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "os/entries.h"
#include "os/file.h"
#include "policy/path.h"
#include "policy/protect.h"
#include "sandbox/links.h"
#include "sandbox/present.h"
#include "sandbox/repos.h"
#include "sandbox/sources.h"

/* True if the owner granted exactly this path by a flag or the policy file. If such a path is the
 * target of a link, it may stay writable, because the owner allowed that. */
static bool is_owners(const struct grant *g, const char *path)
{
	return (g->origin == ORIGIN_FLAG || g->origin == ORIGIN_POLICY) &&
	       strcmp(g->target, path) == 0;
}

/* The context of the functions in this file. */
struct link_holder {
	struct links *links;
	const struct ssb_plan *plan;
	const struct grant *grants; /* the run's grants, with the fds of created paths */
	struct placeholders *placeholders;
	struct ssb_error *err;
};

/* Holds the file or directory at `path`. A missing one need not be held, unless its parent is a
 * placeholder directory: then the parent is held, so that the skill cannot create the path. Returns
 * 0, or -1 with errno. */
static int hold_there(const struct link_holder *h, const char *path)
{
	struct stat st;
	bool there;
	auto_free char *real = links_follow(h->links, h->plan, path, false, &there);
	auto_free char *above = real != NULL ? path_parent(real) : NULL;

	if (real == NULL || above == NULL) {
		return -1;
	}
	if (there) {
		return links_add(h->links, h->plan, real, true);
	}
	if (stat(above, &st) != 0) {
		return file_is_missing(errno) ? 0 : -1;
	}
	return placeholders_is_ours(&st) ? links_add(h->links, h->plan, above, true) : 0;
}

/* True if another user made the link, in a directory that belongs to neither the skill nor that
 * user. The caller has no control over such a link, so it is ignored. */
static bool is_of_others(const struct ssb_plan *plan, const char *link)
{
	const struct grant *g = plan_shown_by(plan, link);
	auto_free char *above = path_parent(link);
	struct stat st, dir;

	return (g == NULL || !grant_is_work(g)) && above != NULL && lstat(link, &st) == 0 &&
	       st.st_uid != geteuid() && st.st_uid != 0 && stat(above, &dir) == 0 &&
	       st.st_uid != dir.st_uid;
}

/* Holds the target of a link, unless the target lies in the directory `in`, which is held itself
 * (NULL: there is no such directory). `is_dir` says whether a missing target would be a
 * directory. */
static int hold_meant(const struct link_holder *h, const char *link, bool is_dir, const char *in)
{
	bool there;

	if (is_of_others(h->plan, link)) {
		return 0;
	}
	auto_free char *real = links_follow(h->links, h->plan, link, false, &there);
	int why = errno;
	const struct grant *g = real != NULL ? plan_shown_by(h->plan, real) : NULL;
	if (real == NULL) {
		return -1;
	}
	if (in != NULL && path_beneath(real, in) != NULL) {
		return 0;
	}
	if (!there) { /* the skill could create the target */
		if (g == NULL || !grant_is_work(g)) {
			return 0;
		}
		const char *rest = path_beneath(real, g->target);
		errno = why;
		return !file_is_missing(why) || placeholders_add(h->placeholders,
		                                                 h->grants[g - h->plan->grants].fd,
		                                                 rest, is_dir) != 0
		               ? -1
		               : hold_there(h, real);
	}
	return g == NULL || is_owners(g, real) ? 0 : links_add(h->links, h->plan, real, true);
}

/* A protected directory whose links are being handled. The host executes or applies the files in
 * it. */
struct held_dir {
	const struct link_holder *holder;
	char path[PATH_MAX];
	int dir;
	unsigned levels; /* how many levels of directories are searched: 1 or 2 */
	size_t entries;
};

/* Returns true if the link `rest` (relative to o->dir) leads out of o->dir. The lookup itself must
 * not leave that directory, because the skill of an earlier run may have chosen the target. */
static bool leads_out(const struct held_dir *o, const char *rest)
{
	auto_fd at = file_openat2(o->dir, rest, O_PATH, RESOLVE_BENEATH | RESOLVE_NO_XDEV);

	return at < 0;
}

static int take_link(struct held_dir *o, const char *within, const char *name)
{
	char rest[2 * NAME_MAX + 2], link[PATH_MAX];

	snprintf(rest, sizeof(rest), "%s%s%s", within, *within != '\0' ? "/" : "", name);
	if (!leads_out(o, rest)) {
		return 0;
	}
	int n = snprintf(link, sizeof(link), "%s/%s", o->path, rest);
	errno = ENAMETOOLONG;
	if (n < 0 || (size_t)n >= sizeof(link) ||
	    hold_meant(o->holder, link, false, o->path) != 0) {
		return ssb_fail(o->holder->err, SSB_E_LAYER, errno, "mounts",
		                "cannot protect the target of '%.180s', which tools on the host "
		                "follow; remove this symlink",
		                link);
	}
	return 0;
}

static int fail_held_dir(const struct held_dir *o, const char *within)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%.1000s", o->path, within);
	return links_unread(path, o->holder->err);
}

static int take_links(struct held_dir *o, int dir, const char *within, unsigned level);

/* Opens the directory `name` in `at` and calls take_links() for it. It is not an error if another
 * program has removed or replaced the directory. */
static int take_links_in(struct held_dir *o, int at, const char *name, const char *within,
                         unsigned level)
{
	auto_fd dir = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (dir < 0) {
		return errno == ELOOP || !links_is_unread(at, name) ? 0 : fail_held_dir(o, within);
	}
	return take_links(o, dir, within, level);
}

/* Holds the targets of the symlinks in the directory `dir` and in its subdirectories, down to level
 * o->levels. `within` is the path of `dir` relative to o->dir. */
static int take_links(struct held_dir *o, int dir, const char *within, unsigned level)
{
	const struct dirent64 *e;
	struct entries names;

	entries_init(&names, dir);
	while ((e = entries_next(&names)) != NULL) {
		struct stat st = { .st_mode = DTTOIF(e->d_type) };
		if (++o->entries > MAX_REPO_ENTRIES) {
			errno = E2BIG;
			return fail_held_dir(o, within);
		}
		if (e->d_type == DT_UNKNOWN &&
		    fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 &&
		    !file_is_missing(errno)) {
			return fail_held_dir(o, within);
		}
		if ((S_ISLNK(st.st_mode) && take_link(o, within, e->d_name) != 0) ||
		    (S_ISDIR(st.st_mode) && level < o->levels &&
		     take_links_in(o, dir, e->d_name, e->d_name, level + 1) != 0)) {
			return -1;
		}
	}
	return errno != 0 ? fail_held_dir(o, within) : 0;
}

/* A directory that contains protected names. */
struct names_at {
	int dir;
	const char *path; /* its absolute path */
	bool gitdir;      /* see repos.h */
	unsigned levels;  /* see struct held_dir */
};

/* True if the owner has granted this directory for writing by its own path. */
static bool is_owners_held_dir(const struct held_dir *o)
{
	const struct grant *g = plan_shown_by(o->holder->plan, o->path);

	return g != NULL && g->access == ACCESS_WRITE && is_owners(g, o->path);
}

/* Opens the directory `name` in `in`. Links are followed only where links_follow() allows it.
 * Returns a new fd, or -1 with errno. */
static int open_held_dir(const struct link_holder *h, const struct names_at *in, const char *name)
{
	bool there;
	int fd = file_openat2(in->dir, name, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);

	if (fd >= 0 || errno != ELOOP) {
		return fd;
	}
	auto_free char *link = path_from(in->path, name);
	auto_free char *real =
	        link != NULL ? links_follow(h->links, h->plan, link, false, &there) : NULL;
	return real != NULL && there ? file_open_nosymlink(real, O_PATH | O_DIRECTORY) : -1;
}

/* Holds the targets of the links in a protected directory: a hook may be a symlink to a script of
 * the tree. With two levels, the link .claude/skills/x is examined, but nothing in a directory of
 * this name. */
static int hold_links_in(const struct link_holder *h, const struct names_at *in, const char *name)
{
	auto_fd at = open_held_dir(h, in, name);
	struct held_dir o = { .holder = h, .dir = at, .levels = in->levels };

	assert(o.levels <= 2); /* take_links() keeps the name of only one subdirectory */
	if (at < 0 &&
	    (file_is_missing(errno) || errno == ELOOP || errno == EACCES || errno == EXDEV)) {
		return 0; /* hold_name() has judged the links that lead to it */
	}
	if (at < 0 || file_path(at, o.path, sizeof(o.path)) < 0) {
		return links_unread(name, h->err);
	}
	return is_owners_held_dir(&o) ? 0 : take_links_in(&o, at, ".", "", 1);
}

/* Returns the length of the first part of `name` that ends in a symlink; 0: `name` contains no
 * symlink; -1 with errno. */
static ssize_t linked_part(int dir, const char *name)
{
	auto_fd at = file_openat2(dir, name, O_PATH, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);

	if (at < 0 && errno != ELOOP) {
		return links_is_unread(dir, name) ? -1 : 0;
	}
	return at >= 0 ? 0 : (ssize_t)file_first_symlink(dir, name);
}

/* If `name` in the directory `dir` (its path is `where`) is or contains a symlink, holds the
 * target. Returns 0, or -1 with errno. */
static int hold_name(const struct link_holder *h, int dir, const char *where, const char *name,
                     bool is_dir)
{
	char link[PATH_MAX];
	ssize_t part = linked_part(dir, name);
	int n = part > 0 ? snprintf(link, sizeof(link), "%s/%.*s", where, (int)part, name) : 0;

	if (part < 0) {
		return -1;
	}
	if (n < 0 || (size_t)n >= sizeof(link)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return part > 0 ? hold_meant(h, link, is_dir, NULL) : 0;
}

/* Handles a protected directory in the common case: it is missing, or it can be read and no symlink
 * leads to it. In any other case sets *ret_done to false. */
static int hold_plain(const struct link_holder *h, const struct names_at *in, const char *name,
                      bool *ret_done)
{
	struct held_dir o = { .holder = h, .levels = in->levels };
	auto_fd dir = file_openat2(in->dir, name, O_RDONLY | O_DIRECTORY,
	                           RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	bool known = dir >= 0 || file_is_missing(errno);
	int n = snprintf(o.path, sizeof(o.path), "%s/%s", in->path, name);

	*ret_done = known && n > 0 && (size_t)n < sizeof(o.path);
	if (dir < 0 || !*ret_done || is_owners_held_dir(&o)) {
		return 0;
	}
	o.dir = dir;
	return take_links(&o, dir, "", 1);
}

static int hold_names(const struct link_holder *h, const struct names_at *at)
{
	struct present present;

	if (present_list(at->dir, at->gitdir, &present) != 0) {
		return links_unread(at->path, h->err);
	}
	for (size_t i = 0; i < PROTECTED_COUNT; i++) {
		const struct protected_place *p = &PROTECTED[i];
		const char *name = at->gitdir ? protect_in_gitdir(p) : p->name;
		bool done = false;
		if (!present.name[i] ||
		    (p->hold == HOLD_BY_LINK && placeholders_is_link(at->dir, name))) {
			continue;
		}
		if (p->is_dir && hold_plain(h, at, name, &done) != 0) {
			return -1;
		}
		if (done) {
			continue;
		}
		if (hold_name(h, at->dir, at->path, name, p->is_dir) != 0) {
			return ssb_fail(h->err, SSB_E_LAYER, errno, "mounts",
			                "cannot protect '%s' in '%.150s' (tools on the host use "
			                "this name); if it is a symlink, remove it",
			                name, at->path);
		}
		if (p->is_dir && hold_links_in(h, at, name) != 0) {
			return -1;
		}
	}
	return 0;
}

/* Handles the protected names in the directory `within` of a grant. */
static int hold_within(const struct link_holder *h, const struct grant *g, const char *within,
                       bool gitdir)
{
	auto_free char *path = path_join(g->path, within);
	auto_fd dir = file_openat2(g->fd, *within != '\0' ? within : ".", O_PATH | O_DIRECTORY,
	                           RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	const struct names_at at = { dir, path, gitdir, 2 };

	return dir >= 0 && path != NULL ? hold_names(h, &at)
	                                : ssb_fail(h->err, SSB_E_LAYER, errno, "mounts",
	                                           "cannot open '%.100s/%.100s'", g->path, within);
}

/* Handles the protected names in a directory above a grant. If that directory is the home, only one
 * level of each protected directory is examined, because protected directories in a home contain
 * many files. */
static int hold_around(const struct link_holder *h, const char *path)
{
	auto_fd dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct names_at at = { dir, path, false, strcmp(path, h->plan->home) == 0 ? 1 : 2 };

	return dir < 0 ? links_unread(path, h->err) : hold_names(h, &at);
}

/* Handles the protected names in a git directory that is not granted. */
static int hold_gitdir(const struct link_holder *h, const char *path)
{
	const struct grant *g = plan_shown_by(h->plan, path);
	auto_fd dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct names_at at = { dir, path, true, 2 };

	if (g != NULL && grant_is_work(g)) {
		return 0; /* links_hold() handles it as one of the repositories */
	}
	if (dir < 0) {
		return links_is_unread(AT_FDCWD, path) ? links_unread(path, h->err) : 0;
	}
	return hold_names(h, &at);
}

/* Holds the paths that the settings of repositories name. */
static int hold_named(const struct link_holder *h, const struct repos *repos)
{
	static const struct names_at ANYWHERE = { .dir = AT_FDCWD, .path = "/", .levels = 2 };

	for (size_t i = 0; i < repos->n_named; i++) {
		const struct named *n = &repos->named[i];
		const struct grant *g = &h->plan->grants[n->grant];
		auto_free char *path = path_join(g->path, n->path);
		bool owners = path != NULL && is_owners(g, path);
		if (owners && n->whole) {
			return ssb_fail(h->err, SSB_E_LAYER, 0, "mounts",
			                "git runs hooks directly from '%.150s' (%.40s), so the "
			                "skill must not write there; set core.hooksPath of the "
			                "repository to a separate directory",
			                g->path, g->where);
		}
		if (!owners && (path == NULL || hold_there(h, path) != 0)) {
			return ssb_fail(h->err, SSB_E_LAYER, errno, "mounts",
			                "cannot protect '%.90s/%.90s' (%.40s), which git's "
			                "settings name",
			                g->path, n->path, g->where);
		}
		if (!owners && hold_links_in(h, &ANYWHERE, path) != 0) {
			return -1;
		}
	}
	for (size_t i = 0; i < repos->hooks.n; i++) {
		if (hold_links_in(h, &ANYWHERE, repos->hooks.v[i]) != 0) {
			return -1;
		}
	}
	return 0;
}

/* Lists the read-only paths for the observer, which reports attempts to write there. */
static int list_read_only(const struct ssb_plan *plan, struct links *l, struct ssb_error *err)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct held_path *h = &l->v[i];
		auto_free char *path =
		        h->read_only ? path_join(plan->grants[h->grant].target, h->path) : NULL;
		if (h->read_only &&
		    (path == NULL || string_list_add(&l->paths, path, MAX_HELD) != 0)) {
			return ssb_fail(err, SSB_E_NOMEM, 0, "mounts", "out of memory");
		}
	}
	return 0;
}

int links_hold(const struct ssb_plan *plan, const struct prepared *of_run, struct repos *repos,
               struct placeholders *placeholders, struct ssb_error *err)
{
	if (repos == NULL) {
		return 0;
	}
	const struct link_holder h = { &repos->links, plan, prepared_grants(of_run, plan),
		                       placeholders, err };
	for (size_t i = 0; i < plan->n_grants; i++) {
		const struct grant *g = &h.grants[i];
		if (grant_is_work(g) && hold_within(&h, g, "", false) != 0) {
			return -1;
		}
	}
	for (size_t i = 0; i < repos->n; i++) {
		const struct repo *r = &repos->v[i];
		if (hold_within(&h, &h.grants[r->grant], r->path, r->gitdir) != 0) {
			return -1;
		}
	}
	for (size_t i = 0; i < repos->around.n; i++) {
		if (hold_around(&h, repos->around.v[i]) != 0) {
			return -1;
		}
	}
	for (size_t i = 0; i < repos->gitdirs.n; i++) {
		if (hold_gitdir(&h, repos->gitdirs.v[i]) != 0) {
			return -1;
		}
	}
	return hold_named(&h, repos) != 0 ? -1 : list_read_only(plan, &repos->links, err);
}
