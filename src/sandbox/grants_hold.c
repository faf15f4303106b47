/* grants_hold.c - protects files inside a writable grant: the protected names (policy/protect.h)
 * and the files that they lead to (links.h). Each is pinned, that is, mounted over itself: it can
 * then be neither moved nor replaced. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/file.h"
#include "os/mount.h"
#include "policy/path.h"
#include "policy/protect.h"
#include "sandbox/present.h"
#include "sandbox/sources.h"
#include "sandbox/stage.h"
#include "sandbox/root.h"

bool root_is_pinned(int fd)
{
	struct statx st;

	return statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &st) == 0 &&
	       (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

/* Pins the object: mounts it over itself. Returns an fd of this mount. */
static int pin_object(int fd, bool read_only)
{
	auto_fd tree = mount_clone(fd, "");

	if (tree < 0 || (read_only && mount_restrict(tree, MOUNT_ATTR_RDONLY, -1) != 0) ||
	    mount_attach(tree, fd, "") != 0) {
		return -1;
	}
	return steal_fd(&tree);
}

int root_pin(int fd, bool read_only)
{
	assert(fd >= 0);

	auto_fd tree = pin_object(fd, read_only);

	return tree < 0 ? -1 : 0;
}

/* Opens one name of a directory. Follows no symlink. */
static int open_name(int dir, const char *name)
{
	return file_openat2(dir, name, O_PATH | O_NOFOLLOW, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

/* A directory that contains protected names, such as ".git". It is kept open, because the next
 * protected name is often in it, too. */
struct protected_way {
	const char *name; /* a protected name in it; NULL: none yet */
	size_t len;       /* the first `len` bytes of `name` are the directory's path */
	int dir; /* the open directory; -1: it does not exist, or nothing in it can be changed */
};

static void way_done(struct protected_way *w)
{
	own_close(&w->dir);
}

/* Pins the directory `part`, one component of a path, so that it cannot be renamed, and opens it
 * (*ret_dir). If `part` is a placeholder or not a directory, makes it read-only, and does not set
 * *ret_dir. The target of a symlink is held separately (links.h). */
static int pin_part(int dir, const char *part, int *ret_dir)
{
	auto_fd at = open_name(dir, part);
	struct stat st;

	if (at < 0 || fstat(at, &st) != 0) {
		return file_is_missing(errno) ? 0 : -1;
	}
	if (!S_ISDIR(st.st_mode) || placeholders_is_ours(&st)) {
		return root_pin(at, true);
	}
	*ret_dir = root_is_pinned(at) ? steal_fd(&at) : pin_object(at, false);
	return *ret_dir < 0 ? -1 : 0;
}

static int way_pin(struct protected_way *w, int top, const char *name, size_t len)
{
	char part[NAME_MAX + 1];
	auto_fd at = -1;

	for (size_t i = 0; i < len; i++) {
		size_t n = strcspn(name + i, "/");
		int next = -1;
		snprintf(part, sizeof(part), "%.*s", (int)n, name + i);
		if (pin_part(i == 0 ? top : at, part, &next) != 0) {
			return -1;
		}
		own_close(&at);
		at = next;
		i = next >= 0 ? i + n : len;
	}
	own_close(&w->dir);
	*w = (struct protected_way){ name, len, steal_fd(&at) };
	return 0;
}

/* Finds and pins the directory that contains the protected name `name`. *ret_dir is borrowed; -1:
 * there is nothing to protect. */
static int way_to(struct protected_way *w, int top, const char *name, int *ret_dir)
{
	size_t len = strlen(name) - strlen(path_base(name));
	size_t way = len > 0 ? len - 1 : 0;

	if (way > 0 && (w->name == NULL || w->len != way || memcmp(w->name, name, way) != 0) &&
	    way_pin(w, top, name, way) != 0) {
		return -1;
	}
	*ret_dir = way > 0 ? w->dir : top;
	return 0;
}

/* Mounts a new private directory over the placeholder directory `at`. The parents of the
 * placeholder are pinned already, because of another protected name in the same directory. */
static int give_private(int root_fd, int at, size_t nth)
{
	char place[32];

	snprintf(place, sizeof(place), "etc/.git-state-%zu", nth);
	if (mkdirat(root_fd, place, 01755) != 0) {
		return -1;
	}
	auto_fd made = mount_clone(root_fd, place);
	return made < 0 ? -1 : mount_attach(made, at, "");
}

/* Makes a protected name in `dir` read-only, if it exists. If it is a placeholder of HOLD_PRIVATE,
 * mounts a private directory over it instead. */
static int protect_place(int root_fd, int dir, const struct protected_place *p, size_t nth)
{
	auto_fd at = open_name(dir, path_base(p->name));
	struct stat st;

	if (at < 0) {
		return file_is_missing(errno) ? 0 : -1;
	}
	return p->hold == HOLD_PRIVATE && fstat(at, &st) == 0 && placeholders_is_open(&st)
	               ? give_private(root_fd, at, nth)
	               : root_pin(at, true);
}

/* A directory in which names are protected. */
struct protecting {
	const struct grant *grant;
	int dir;
	const char *within; /* its path in the grant, "" at the top */
	bool gitdir;        /* see repos.h */
	size_t nth;         /* the number of this directory among all that are protected */
	struct present present;
};

/* Adds the names of the placeholders to the list of names that git ignores (info/exclude in
 * `gitdir` of the grant's tree). Otherwise git inside the sandbox would report placeholders as new
 * files. Only the skill's view of the list changes, not the file. Errors are ignored, because no
 * protection depends on the list. */
static void hide_from_git(int root_fd, int tree, const char *gitdir, const struct protecting *d)
{
	char place[32], path[PATH_MAX];
	auto_buf text = { 0 };

	snprintf(path, sizeof(path), "%s/info/exclude", gitdir);
	auto_fd exclude = file_openat2(tree, path, O_RDONLY | O_NONBLOCK,
	                               RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);

	buf_init(&text, 256 * 1024);
	if (exclude < 0 || file_read_all(exclude, &text) != 0) {
		return;
	}
	buf_addc(&text, '\n');
	for (size_t i = 0; i < PROTECTED_COUNT; i++) {
		struct stat st;
		if (d->present.name[i] && protect_in_gitdir(&PROTECTED[i]) == NULL &&
		    fstatat(d->dir, PROTECTED[i].name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    placeholders_is_ours(&st)) {
			buf_addf(&text, "/%s\n", PROTECTED[i].name);
		}
	}
	snprintf(place, sizeof(place), "etc/.git-exclude-%zu", d->nth);
	auto_fd list = openat(root_fd, place, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (text.failed || list < 0 || file_write_all(list, text.data, text.len) != 0) {
		return;
	}
	auto_fd made = mount_clone(root_fd, place);
	if (made >= 0 && mount_restrict(made, MOUNT_ATTR_RDONLY, -1) == 0) {
		(void)mount_attach(made, exclude, "");
	}
}

static int protect_names(int root_fd, struct protecting *d, struct ssb_error *err)
{
	AUTO(way_done) struct protected_way way = { .dir = -1 };
	const char *name = "";
	int failed = present_list(d->dir, d->gitdir, &d->present);

	for (size_t i = 0; failed == 0 && i < PROTECTED_COUNT; i++) {
		const struct protected_place *p = &PROTECTED[i];
		int dir = -1;
		if (!d->present.name[i]) {
			continue;
		}
		name = d->gitdir ? protect_in_gitdir(p) : p->name;
		failed = way_to(&way, d->dir, name, &dir);
		/* If this name is itself a grant of the owner, that grant is mounted over the pin
		 * later. */
		failed = failed == 0 && dir >= 0 ? protect_place(root_fd, dir, p, d->nth) : failed;
	}
	return failed == 0 ? 0
	                   : ssb_fail(err, SSB_E_LAYER, errno, "mounts",
	                              "cannot protect '%s' in '%.90s%s%.70s' (%.40s): tools on the "
	                              "host use this name",
	                              name, d->grant->path, *d->within != '\0' ? "/" : "",
	                              d->within, d->grant->where);
}

/* Opens the directory `path` beneath the grant and pins every directory on the way.
 * Otherwise one of them could be renamed, and another repository could take its place. */
static int open_pinned(int tree, const char *path)
{
	char part[PATH_MAX];

	if (*path == '\0') {
		return fcntl(tree, F_DUPFD_CLOEXEC, 3);
	}
	for (size_t i = 1;; i++) {
		if (path[i] != '/' && path[i] != '\0') {
			continue;
		}
		snprintf(part, sizeof(part), "%.*s", (int)i, path);
		auto_fd at = file_openat2(tree, part, O_PATH | O_DIRECTORY | O_NOFOLLOW,
		                          RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
		if (at < 0 || (!root_is_pinned(at) && root_pin(at, false) != 0)) {
			return -1;
		}
		if (path[i] == '\0') {
			/* Open it again: the old fd is beneath the mount that pins it. */
			return file_openat2(tree, path, O_PATH | O_DIRECTORY | O_NOFOLLOW,
			                    RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
		}
	}
}

int grants_protect(const struct stage *s, size_t i, int root_fd, struct ssb_error *err)
{
	assert(i < s->config->n_sources && root_fd >= 0);

	const struct grant *g = &s->config->sources[i].grant;
	int tree = s->config->sources[i].tree;

	struct protecting top = { .grant = g, .dir = tree, .within = "", .nth = i };

	if (protect_names(root_fd, &top, err) != 0) {
		return -1;
	}
	hide_from_git(root_fd, tree, ".git", &top);
	for (size_t k = 0; s->config->repos != NULL && k < s->config->repos->n; k++) {
		const struct repo *r = &s->config->repos->v[k];
		if (r->grant != s->config->sources[i].nth) {
			continue;
		}
		auto_fd dir = open_pinned(tree, r->path);
		if (dir < 0) {
			return ssb_fail(err, SSB_E_LAYER, errno, "mounts",
			                "cannot protect the repository '%.90s/%.90s' (%.40s)",
			                g->path, r->path, g->where);
		}
		struct protecting d = { .grant = g,
			                .dir = dir,
			                .within = r->path,
			                .gitdir = r->gitdir,
			                .nth = MAX_GRANTS + k };
		if (protect_names(root_fd, &d, err) != 0) {
			return -1;
		}
		if (r->shared != NULL) {
			hide_from_git(root_fd, tree, r->shared, &d);
		}
	}
	return 0;
}

/* Pins one held path in the grant, and the directories that lead to it. */
static int hold_one(int tree, const struct held_path *h)
{
	const char *name = h->read_only ? path_base(h->path) : "";
	size_t len = strlen(h->path) - strlen(name);
	auto_free char *way = strndup(h->path, *name != '\0' && len > 0 ? len - 1 : len);
	auto_fd dir = way != NULL ? open_pinned(tree, way) : -1;
	auto_fd at = dir < 0 || *name == '\0' ? steal_fd(&dir)
	                                      : file_openat2(dir, name, O_PATH | O_NOFOLLOW,
	                                                     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);

	return at < 0 ? -1 : h->read_only ? root_pin(at, true) : 0;
}

int grants_hold(const struct stage *s, size_t i, struct ssb_error *err)
{
	assert(i < s->config->n_sources);

	const struct mount_source *src = &s->config->sources[i];

	for (size_t k = 0; s->config->repos != NULL && k < s->config->repos->links.n; k++) {
		const struct held_path *h = &s->config->repos->links.v[k];
		if (!src->submount && h->grant == src->nth && hold_one(src->tree, h) != 0) {
			return ssb_fail(
			        err, SSB_E_LAYER, errno, "mounts",
			        "cannot protect '%.90s/%.90s' (%.40s): a symlink or a setting of a "
			        "repository leads there, and tools on the host follow it; remove "
			        "that link or setting, or grant another directory",
			        src->grant.path, h->path, src->grant.where);
		}
	}
	return 0;
}
