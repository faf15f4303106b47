#include "sandbox/links.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "os/file.h"
#include "os/tree.h"
#include "policy/paths.h"
#include "policy/protect.h"
#include "sandbox/repos.h"
#include "sandbox/sources.h"

#define MAX_LINKS_OF_PATH 40 /* links of one path, as the kernel has it */

/* A path that is being followed. */
struct walk {
	char done[PATH_MAX]; /* no symlink in it; "" is "/" */
	char rest[PATH_MAX];
};

static int too_long(void)
{
	errno = ENAMETOOLONG;
	return -1;
}

static void go_up(struct walk *w)
{
	char *slash = strrchr(w->done, '/');

	if (slash != NULL) {
		*slash = '\0';
	}
}

static bool is_up(const char *rest)
{
	return strcspn(rest, "/") == 2 && memcmp(rest, "..", 2) == 0;
}

/* The next name of what is left. */
static int go_on(struct walk *w)
{
	const char *name = w->rest + strspn(w->rest, "/");
	size_t n = strcspn(name, "/");
	size_t len = strlen(w->done);

	if (is_up(name)) {
		go_up(w);
	} else if (n > 1 || (n == 1 && *name != '.')) {
		if (n + 2 > sizeof(w->done) - len) {
			return too_long();
		}
		snprintf(w->done + len, sizeof(w->done) - len, "/%.*s", (int)n, name);
	}
	memmove(w->rest, name + n, strlen(name + n) + 1);
	return 0;
}

/* In place of the link at the end of what is done: what it says. */
static int go_by(struct walk *w, const char *to)
{
	char rest[PATH_MAX];
	int n = snprintf(rest, sizeof(rest), "%s/%s", to, w->rest);

	if (n < 0 || (size_t)n >= sizeof(rest)) {
		return too_long();
	}
	memcpy(w->rest, rest, (size_t)n + 1);
	if (*to == '/') {
		w->done[0] = '\0';
	} else {
		go_up(w);
	}
	return 0;
}

int links_add(struct links *l, const struct ssb_plan *plan, const char *path, bool read_only)
{
	const struct grant *g = plan_shown_by(plan, path);

	if (g == NULL || g->access != ACCESS_WRITE || g->kind != GRANT_FILES || g->scratch) {
		return 0;
	}
	size_t grant = (size_t)(g - plan->grants);
	const char *rest = path_beneath(path, g->target);
	if (*rest == '\0' && !read_only) {
		return 0; /* a mount, which stays */
	}
	for (size_t i = 0; i < l->n; i++) {
		if (l->v[i].grant == grant && strcmp(l->v[i].path, rest) == 0) {
			l->v[i].read_only |= read_only;
			return 0;
		}
	}
	if (l->n == MAX_HELD) {
		errno = E2BIG;
		return -1;
	}
	char *copy = strdup(rest);
	if (copy == NULL) {
		return -1;
	}
	l->v[l->n++] = (struct held){ .grant = grant, .path = copy, .read_only = read_only };
	return 0;
}

char *links_follow(struct links *l, const struct ssb_plan *plan, const char *path, bool *ret_there)
{
	struct walk w = { .done = "" };
	char to[PATH_MAX];
	bool there = true;

	if (strlen(path) >= sizeof(w.rest)) {
		(void)too_long();
		return NULL;
	}
	memcpy(w.rest, path, strlen(path) + 1);
	for (int links = 0; there && w.rest[strspn(w.rest, "/")] != '\0';) {
		bool up = is_up(w.rest + strspn(w.rest, "/"));
		if ((up && links_add(l, plan, w.done, false) != 0) || go_on(&w) != 0) {
			return NULL;
		}
		ssize_t n = readlink(w.done[0] != '\0' ? w.done : "/", to, sizeof(to) - 1);
		if (n < 0) {
			there = errno == EINVAL; /* no link */
			continue;
		}
		to[n] = '\0';
		there = links++ < MAX_LINKS_OF_PATH;
		if (links_add(l, plan, w.done, true) != 0 || (there && go_by(&w, to) != 0)) {
			return NULL;
		}
	}
	*ret_there = there;
	return strdup(w.done[0] != '\0' ? w.done : "/");
}

/* Named by the owner, to be written: whoever leads there leads to what is meant to be. */
static bool is_owners(const struct grant *g, const char *path)
{
	return (g->origin == ORIGIN_FLAG || g->origin == ORIGIN_POLICY) &&
	       strcmp(g->target, path) == 0;
}

/* What a link means; `in`: unless that lies in this directory, which is held itself. */
static int hold_meant(struct links *l, const struct ssb_plan *plan, const char *link,
                      const char *in)
{
	bool there;
	auto_free char *real = links_follow(l, plan, link, &there);
	const struct grant *g = real != NULL ? plan_shown_by(plan, real) : NULL;

	if (real == NULL) {
		return -1;
	}
	if (in != NULL && path_beneath(real, in) != NULL) {
		return 0;
	}
	if (!there) { /* a name that the skill could fill? */
		errno = ENOENT;
		return g != NULL && grant_is_work(g) ? -1 : 0;
	}
	return g == NULL || is_owners(g, real) ? 0 : links_add(l, plan, real, true);
}

/* A directory that the host obeys, and what in it leads elsewhere. */
struct obeyed {
	struct links *links;
	const struct ssb_plan *plan;
	char path[PATH_MAX];
	struct ssb_error *err;
	int failed;
};

static bool leads_out(const struct obeyed *o, const struct tree_entry *e)
{
	char to[PATH_MAX];
	auto_fd at = openat(e->dir, e->name, O_PATH | O_CLOEXEC);

	return at < 0 || file_path(at, to, sizeof(to)) < 0 || path_beneath(to, o->path) == NULL;
}

static bool take_obeyed(void *arg, const struct tree_entry *e)
{
	struct obeyed *o = arg;

	if (S_ISLNK(e->st.st_mode) && o->failed == 0 && leads_out(o, e)) {
		auto_free char *link = path_join(o->path, e->path);
		if (link == NULL || hold_meant(o->links, o->plan, link, o->path) != 0) {
			o->failed = ssb_fail(o->err, SSB_E_LAYER, errno, "mounts",
			                     "cannot protect '%.100s/%.80s', which the host "
			                     "obeys; if it is a symlink to nothing, remove it",
			                     o->path, e->path);
		}
	}
	return strchr(e->path, '/') == NULL; /* .claude/skills/x, and no deeper */
}

/* Of a directory that is to be read-only: a hook that is a symlink to a script of the tree, say,
 * is what it leads to. */
static int hold_obeyed(struct links *l, const struct ssb_plan *plan, int dir, const char *name,
                       struct ssb_error *err)
{
	static const struct tree_caps CAPS = { .entries = MAX_REPO_ENTRIES, .depth = 2 };
	struct obeyed o = { .links = l, .plan = plan, .err = err };
	auto_fd at = openat(dir, name, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (at < 0 || file_path(at, o.path, sizeof(o.path)) < 0) {
		return 0;
	}
	const struct grant *g = plan_shown_by(plan, o.path);
	if (g == NULL || g->access != ACCESS_WRITE || !is_owners(g, o.path)) {
		(void)tree_walk(at, &CAPS, take_obeyed, &o);
	}
	return o.failed;
}

/* The length of the first part of `name` that is a symlink; 0: none is. */
static size_t linked_part(int dir, const char *name)
{
	auto_fd at = file_openat2(dir, name, O_PATH, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);

	return at >= 0 || errno != ELOOP ? 0 : file_first_symlink(dir, name);
}

/* One protected name in a directory, whose path is `where`, if it is a symlink. */
static int hold_name(struct links *l, const struct ssb_plan *plan, int dir, const char *where,
                     const char *name)
{
	char link[PATH_MAX];
	size_t part = linked_part(dir, name);
	int n = part > 0 ? snprintf(link, sizeof(link), "%s/%.*s", where, (int)part, name) : 0;

	if (n < 0 || (size_t)n >= sizeof(link)) {
		return too_long();
	}
	return part > 0 ? hold_meant(l, plan, link, NULL) : 0;
}

/* The names in one directory, `within` a grant. */
static int hold_names(struct links *l, const struct ssb_plan *plan, const struct grant *g,
                      const char *within, bool gitdir, struct ssb_error *err)
{
	const char *slash = *within != '\0' ? "/" : "";
	auto_free char *where = path_join(g->path, within);
	auto_fd dir = file_openat2(g->fd, *within != '\0' ? within : ".", O_PATH | O_DIRECTORY,
	                           RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);

	for (size_t i = 0; dir >= 0 && where != NULL && i < PROTECTED_COUNT; i++) {
		const struct protected_place *p = &PROTECTED[i];
		const char *name = gitdir ? protected_in_gitdir(p) : p->name;
		if (name != NULL && hold_name(l, plan, dir, where, name) != 0) {
			return ssb_fail(
			        err, SSB_E_LAYER, errno, "mounts",
			        "cannot protect '%s', which the host obeys, in '%.90s%s%.70s' "
			        "(%.40s); if it is a symlink to nothing, remove it",
			        name, g->path, slash, within, g->where);
		}
		if (name != NULL && p->is_dir && hold_obeyed(l, plan, dir, name, err) != 0) {
			return -1;
		}
	}
	return dir >= 0 && where != NULL
	               ? 0
	               : ssb_fail(err, SSB_E_LAYER, errno, "mounts", "cannot open '%.100s%s%.100s'",
	                          g->path, slash, within);
}

/* What is not there by now nobody can make, but beneath a placeholder, which is held then. */
static int hold_there(struct links *l, const struct ssb_plan *plan, const char *path)
{
	struct stat st;
	bool there;
	auto_free char *real = links_follow(l, plan, path, &there);
	auto_free char *above = real != NULL ? path_parent(real) : NULL;

	if (real == NULL || above == NULL) {
		return -1;
	}
	if (there) {
		return links_add(l, plan, real, true);
	}
	return stat(above, &st) == 0 && placeholder_is(&st) ? links_add(l, plan, above, true) : 0;
}

/* What the settings of repositories name. */
static int hold_named(const struct ssb_plan *plan, struct repos *repos, struct ssb_error *err)
{
	for (size_t i = 0; i < repos->n_named; i++) {
		const struct named *n = &repos->named[i];
		const struct grant *g = &plan->grants[n->grant];
		auto_free char *path = path_join(g->path, n->path);
		bool owners = path != NULL && is_owners(g, path);
		if (owners && n->whole) {
			return ssb_fail(err, SSB_E_LAYER, 0, "mounts",
			                "git runs '%.150s' (%.40s) itself as a directory of hooks, "
			                "which the skill must not write; set core.hooksPath of the "
			                "repository there to a directory of its own",
			                g->path, g->where);
		}
		if (!owners && (path == NULL || hold_there(&repos->links, plan, path) != 0)) {
			return ssb_fail(err, SSB_E_LAYER, errno, "mounts",
			                "cannot protect '%.90s/%.90s' (%.40s), which git's "
			                "settings there name",
			                g->path, n->path, g->where);
		}
		if (!owners && hold_obeyed(&repos->links, plan, AT_FDCWD, path, err) != 0) {
			return -1;
		}
	}
	for (size_t i = 0; i < repos->hooks.n; i++) {
		if (hold_obeyed(&repos->links, plan, AT_FDCWD, repos->hooks.v[i], err) != 0) {
			return -1;
		}
	}
	return 0;
}

/* For who tells of attempts to write there. */
static int list_read_only(const struct ssb_plan *plan, struct links *l, struct ssb_error *err)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct held *h = &l->v[i];
		auto_free char *path =
		        h->read_only ? path_join(plan->grants[h->grant].target, h->path) : NULL;
		if (h->read_only &&
		    (path == NULL || string_list_add(&l->paths, path, MAX_HELD) != 0)) {
			return ssb_fail(err, SSB_E_NOMEM, 0, "mounts", "out of memory");
		}
	}
	return 0;
}

int links_hold(const struct ssb_plan *plan, struct repos *repos, struct ssb_error *err)
{
	if (repos == NULL) {
		return 0;
	}
	for (size_t i = 0; i < plan->n_grants; i++) {
		const struct grant *g = &plan->grants[i];
		if (grant_is_work(g) && hold_names(&repos->links, plan, g, "", false, err) != 0) {
			return -1;
		}
	}
	for (size_t i = 0; i < repos->n; i++) {
		const struct repo *r = &repos->v[i];
		if (hold_names(&repos->links, plan, &plan->grants[r->grant], r->path, r->gitdir,
		               err) != 0) {
			return -1;
		}
	}
	return hold_named(plan, repos, err) != 0 ? -1 : list_read_only(plan, &repos->links, err);
}

void links_done(struct links *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].path);
	}
	l->n = 0;
	string_list_done(&l->paths);
}
