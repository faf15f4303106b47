/* grants.c - the owner's files in the skill's view.
 *
 * Writes are the host's own mounts. Reads of a directory are a read-only
 * overlay over it: other inodes, so that a unix socket or FIFO in it, also
 * one that is made later, is a dead name there and not a way out (a read-only
 * bind stops neither connect() nor a write to a FIFO). Where no overlay can
 * be had the plain read-only mount is used and unix sockets are restricted
 * instead. What is mounted is what was judged: the same device and inode. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/file.h"
#include "os/mount.h"
#include "policy/paths.h"
#include "policy/protect.h"
#include "sandbox/sources.h"
#include "sandbox/stage.h"
#include "sandbox/view.h"

#define IN_VIEW (RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

static int fail(struct ssb_error *err, const struct grant *g, const char *what)
{
	return ssb_fail(err, SSB_E_LAYER, errno, "mounts", "%s '%.200s' (%.60s)", what, g->path,
	                g->where);
}

uint64_t grant_attrs(const struct grant *g)
{
	switch (g->kind) {
	case GRANT_DEVICES:
		/* A device is written on a read-only mount as well: Landlock knows
		 * the difference. Nothing is added to its directory. */
		return MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY;
	case GRANT_KERNEL:
		return MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY;
	case GRANT_FILES:
		break;
	}
	return MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
	       (g->access == ACCESS_READ ? MOUNT_ATTR_RDONLY : 0);
}

unsigned grant_rights(const struct grant *g)
{
	unsigned write = g->access == ACCESS_WRITE ? LL_WRITE : 0;

	if (g->kind != GRANT_FILES) {
		return LL_READ | write;
	}
	/* No sockets, FIFOs or devices are left behind on the host. */
	return LL_READ | LL_EXEC | (write != 0 ? LL_WRITE | LL_CHANGE : 0);
}

int grants_collect(struct stage *s, struct ssb_error *err)
{
	for (size_t i = 0; i < s->n_sources; i++) {
		const struct grant *g = &s->sources[i].grant;
		struct stat st;

		if (s->sources[i].tree >= 0 || s->sources[i].mask || g->scratch) {
			continue;
		}
		/* The plan's fd belongs to the host's mount namespace and cannot be
		 * cloned here: open again, and insist on the same object. */
		auto_fd fd = file_open_nosymlink(g->path, O_PATH);
		bool there = fd >= 0 && fstat(fd, &st) == 0;
		if (g->of_whole && (!there || st.st_dev != g->dev || st.st_ino != g->ino)) {
			s->left_out++; /* gone by now */
			continue;
		}
		if (!there) {
			return fail(err, g, "cannot open");
		}
		if (st.st_dev != g->dev || st.st_ino != g->ino) {
			errno = ESTALE;
			return fail(err, g, "was replaced while the sandbox was built:");
		}
		s->sources[i].tree = mount_clone(fd, "");
		if (s->sources[i].tree < 0 ||
		    mount_restrict(s->sources[i].tree, grant_attrs(g), -1) != 0) {
			return fail(err, g, "cannot take");
		}
	}
	return 0;
}

/* An overlay without an upper layer wants two lower ones, and shows what is in both. */
int view_overlay(int root_fd, int empty, int *tree)
{
	char lower[64];
	const struct mount_option options[] = { { "lowerdir", lower }, { NULL, NULL } };

	snprintf(lower, sizeof(lower), "/.lower:/proc/self/fd/%d", empty);
	if (view_place(root_fd, ".lower", true) != 0 ||
	    mount_attach(*tree, root_fd, ".lower") != 0) {
		return -1;
	}
	int overlay = mount_new("overlay", options,
	                        MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	int saved = errno;
	int loose = overlay >= 0 ? overlay : mount_clone(*tree, "");
	/* The overlay has its own private copy of the lower mount. */
	(void)umount2("/.lower", MNT_DETACH);
	own_close(tree);
	*tree = loose;
	errno = saved;
	return overlay >= 0 ? 0 : -1;
}

/* A mount stands on it already: it cannot be moved. */
static bool is_pinned(int fd)
{
	struct statx st;

	return statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &st) == 0 &&
	       (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

/* Mounts the object behind fd over itself: it can no longer be renamed,
 * removed or replaced, and with `read_only` not be changed either. */
static int pin(int fd, bool read_only)
{
	auto_fd tree = mount_clone(fd, "");

	if (tree < 0 || (read_only && mount_restrict(tree, MOUNT_ATTR_RDONLY, -1) != 0)) {
		return -1;
	}
	return mount_attach(tree, fd, "");
}

/* In a writable grant? Of those that it lies in the innermost counts. */
static bool in_work(const struct ssb_plan *plan, const char *path)
{
	const struct grant *in = plan_shown_by(plan, path);

	return in != NULL && grant_is_work(in);
}

/* Beneath a private place: the skill can rename things there, and Landlock's rights reach
 * down into what is mounted in it. */
static bool in_private(const struct ssb_plan *plan, const char *path)
{
	const char *const places[] = { plan->home, "/tmp", "/var/tmp", "/dev/shm" };

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		size_t n = strlen(places[i]);
		if (strncmp(path, places[i], n) == 0 && path[n] == '/') {
			return true;
		}
	}
	return false;
}

/* The directories that lead to a grant stay where they are: renamed, the grant
 * would go by a name of the skill's choice, and its own, on the host as well, would
 * mean what the skill makes there. */
static int pin_way(const struct ssb_plan *plan, int root_fd, const char *target)
{
	char part[PATH_MAX];

	for (size_t i = 1; target[i] != '\0'; i++) {
		snprintf(part, sizeof(part), "%.*s", (int)i, target);
		if (target[i] != '/' || !(in_private(plan, part) || in_work(plan, part))) {
			continue;
		}
		auto_fd at = file_openat2(root_fd, part + 1, O_PATH | O_NOFOLLOW, IN_VIEW);
		if (at < 0 || (!is_pinned(at) && pin(at, false) != 0)) {
			return -1;
		}
	}
	return 0;
}

/* Makes `name` beneath dir_fd read-only. Its parents are pinned, so that they
 * cannot be renamed away; so is a symlink on the way, and what that leads to is
 * held where it lies (links.h). */
static int protect_one(int dir_fd, const char *name)
{
	char part[PATH_MAX];

	for (size_t i = 1;; i++) {
		if (name[i] != '/' && name[i] != '\0') {
			continue;
		}
		snprintf(part, sizeof(part), "%.*s", (int)i, name);
		auto_fd at = file_openat2(dir_fd, part, O_PATH | O_NOFOLLOW,
		                          RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
		struct stat st;
		if (at < 0 || fstat(at, &st) != 0) {
			/* Not there: what is to be held has a placeholder. */
			return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
		}
		bool last = name[i] == '\0' || !S_ISDIR(st.st_mode) || placeholder_is(&st);
		if ((last || !is_pinned(at)) && pin(at, last) != 0) {
			return -1;
		}
		if (last) {
			return 0;
		}
	}
}

/* The placeholders in `target` would be news to git inside: its list of what to
 * overlook, in `gitdir` beneath the grant's tree, gets their names, in the view
 * only. Best effort: it is for comfort. */
static void hide_from_git(int root_fd, int tree, const char *gitdir, int target, size_t nth)
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
		if (fstatat(target, PROTECTED[i].name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    placeholder_is(&st)) {
			buf_addf(&text, "/%s\n", PROTECTED[i].name);
		}
	}
	snprintf(place, sizeof(place), "etc/.git-exclude-%zu", nth);
	auto_fd list = openat(root_fd, place, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (text.failed || list < 0 || file_write_all(list, text.data, text.len) != 0) {
		return;
	}
	auto_fd made = mount_clone(root_fd, place);
	if (made >= 0 && mount_restrict(made, MOUNT_ATTR_RDONLY, -1) == 0) {
		(void)mount_attach(made, exclude, "");
	}
}

/* `within` is where in the grant `dir` lies, "" at its top. */
static int protect_names(const struct grant *g, int dir, const char *within, bool gitdir,
                         struct ssb_error *err)
{
	for (size_t i = 0; i < PROTECTED_COUNT; i++) {
		const char *name = gitdir ? protected_in_gitdir(&PROTECTED[i]) : PROTECTED[i].name;
		/* One that is granted by name is a grant of its own, mounted over it. */
		if (name != NULL && protect_one(dir, name) != 0) {
			return ssb_fail(
			        err, SSB_E_LAYER, errno, "mounts",
			        "cannot protect '%s', which the host obeys, in '%.90s%s%.70s' "
			        "(%.40s)",
			        name, g->path, *within != '\0' ? "/" : "", within, g->where);
		}
	}
	return 0;
}

/* Opens the directory `path` beneath the grant, with every directory on the
 * way pinned: otherwise one of them is renamed, and another repository takes
 * its place. */
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
		if (at < 0 || (!is_pinned(at) && pin(at, false) != 0)) {
			return -1;
		}
		if (path[i] == '\0') {
			/* Again: what lies on top now is the mount. */
			return file_openat2(tree, path, O_PATH | O_DIRECTORY | O_NOFOLLOW,
			                    RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
		}
	}
}

/* The names at the top of the grant, and in each repository in it. */
static int grant_protect(const struct stage *s, size_t i, int root_fd, struct ssb_error *err)
{
	const struct grant *g = &s->sources[i].grant;
	int tree = s->sources[i].tree;

	if (protect_names(g, tree, "", false, err) != 0) {
		return -1;
	}
	hide_from_git(root_fd, tree, ".git", tree, i);
	for (size_t k = 0; s->repos != NULL && k < s->repos->n; k++) {
		const struct repo *r = &s->repos->v[k];
		if (r->grant != s->sources[i].nth) {
			continue;
		}
		auto_fd dir = open_pinned(tree, r->path);
		if (dir < 0) {
			return ssb_fail(err, SSB_E_LAYER, errno, "mounts",
			                "cannot protect the repository '%.90s/%.90s' (%.40s)",
			                g->path, r->path, g->where);
		}
		if (protect_names(g, dir, r->path, r->gitdir, err) != 0) {
			return -1;
		}
		if (r->shared != NULL) {
			hide_from_git(root_fd, tree, r->shared, dir, MAX_GRANTS + k);
		}
	}
	return 0;
}

/* One thing in the grant that a protected name goes by or leads to, the way there included. */
static int hold_one(int tree, const struct held *h)
{
	const char *name = h->read_only ? path_base(h->path) : "";
	size_t len = strlen(h->path) - strlen(name);
	auto_free char *way = strndup(h->path, *name != '\0' && len > 0 ? len - 1 : len);
	auto_fd dir = way != NULL ? open_pinned(tree, way) : -1;
	auto_fd at = dir < 0 || *name == '\0' ? steal_fd(&dir)
	                                      : file_openat2(dir, name, O_PATH | O_NOFOLLOW,
	                                                     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);

	return at < 0 ? -1 : h->read_only ? pin(at, true) : 0;
}

static int grant_hold(const struct stage *s, size_t i, struct ssb_error *err)
{
	const struct source *src = &s->sources[i];

	for (size_t k = 0; s->repos != NULL && k < s->repos->links.n; k++) {
		const struct held *h = &s->repos->links.v[k];
		if (!src->submount && h->grant == src->nth && hold_one(src->tree, h) != 0) {
			return ssb_fail(
			        err, SSB_E_LAYER, errno, "mounts",
			        "cannot protect '%.90s/%.90s' (%.40s), to which a name leads "
			        "that the host obeys",
			        src->grant.path, h->path, src->grant.where);
		}
	}
	return 0;
}

/* Before anything is attached: the second lower directory must be empty. */
static int grant_overlay(struct stage *s, size_t i, int root_fd, struct ssb_error *err)
{
	struct source *src = &s->sources[i];
	const struct grant *g = &src->grant;

	if (src->tree < 0 || g->access != ACCESS_READ || !g->is_dir || src->ready ||
	    g->kind == GRANT_KERNEL) {
		return 0;
	}
	if (g->kind == GRANT_FILES && view_overlay(root_fd, s->empty, &src->tree) == 0) {
		return 0;
	}
	if (g->kind == GRANT_FILES && in_private(s->plan, g->target)) {
		/* There Landlock has to allow writing, and nothing else would
		 * stop a write to a FIFO of the host. */
		return fail(err, g, "holds other mounts, or cannot be overlaid; grant its parts:");
	}
	s->unix_sockets = false;
	return 0;
}

/* An empty directory that cannot be changed, but for places to mount what was
 * granted beneath it. */
static int empty_tree(const struct stage *s, const struct grant *g)
{
	static const struct mount_option nothing[] = { { "size", "4k" },
		                                       { "mode", "0555" },
		                                       { NULL, NULL } };
	auto_fd tree = mount_new("tmpfs", nothing, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	size_t len = strlen(g->target);

	for (size_t i = 0; tree >= 0 && i < s->n_sources; i++) {
		const struct grant *in = &s->sources[i].grant;
		if (strncmp(in->target, g->target, len) == 0 && in->target[len] == '/' &&
		    view_place(tree, in->target + len + 1, in->is_dir) != 0) {
			return -1;
		}
	}
	return tree >= 0 && mount_restrict(tree, MOUNT_ATTR_RDONLY, -1) == 0 ? steal_fd(&tree) : -1;
}

/* Hides what a plain mount of the directory above would show. */
static int mask_attach(const struct stage *s, const struct grant *g, int root_fd,
                       struct ssb_error *err)
{
	const uint64_t attrs = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
	auto_fd target = file_openat2(root_fd, g->target + 1, O_PATH, IN_VIEW);

	if (target < 0) {
		return errno == ENOENT || errno == EACCES ? 0 : fail(err, g, "cannot mask");
	}
	auto_fd tree = g->is_dir ? empty_tree(s, g) : mount_clone(root_fd, "dev/null");
	if (tree < 0 || (!g->is_dir && mount_restrict(tree, attrs, -1) != 0) ||
	    mount_attach(tree, target, "") != 0) {
		return fail(err, g, "cannot mask");
	}
	return 0;
}

/* All of them together hold no more than the private places do. */
static int scratch_tree(const struct stage *s)
{
	unsigned long long share = s->plan->res.max_disk_mb * 1024;
	size_t n = 0;
	char size[32], inodes[32];

	for (size_t i = 0; i < s->plan->n_grants; i++) {
		n += s->plan->grants[i].scratch;
	}
	snprintf(size, sizeof(size), "%lluk", n > 0 ? share / n : share);
	snprintf(inodes, sizeof(inodes), "%d", SCRATCH_INODES);
	const struct mount_option options[] = {
		{ "size", size }, { "nr_inodes", inodes }, { "mode", "0777" }, { NULL, NULL }
	};
	return mount_new("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

static int grant_attach(struct stage *s, size_t i, int root_fd, struct ssb_error *err)
{
	const struct grant *g = &s->sources[i].grant;
	const char *name = g->target + 1;

	if (s->sources[i].mask) {
		return mask_attach(s, g, root_fd, err);
	}
	if (rootfs_way(s, g, root_fd, err) != 0) {
		return -1;
	}
	if (g->scratch && (s->sources[i].tree = scratch_tree(s)) < 0) {
		return fail(err, g, "cannot make a file system for");
	}
	/* Beneath another grant the place exists already, or cannot be made. */
	(void)view_place(root_fd, name, g->is_dir);
	if (pin_way(s->plan, root_fd, g->target) != 0) {
		return fail(err, g, "cannot hold the way to");
	}
	auto_fd target = file_openat2(root_fd, name, O_PATH, IN_VIEW);
	if (target < 0) {
		return fail(err, g, "has no place in the sandbox:");
	}
	if (mount_attach(s->sources[i].tree, target, "") != 0) {
		if (g->of_whole && errno == ENOENT) {
			s->left_out++; /* removed since it was taken */
			return 0;
		}
		return fail(err, g, "cannot mount");
	}
	if (grant_is_work(g) && grant_protect(s, i, root_fd, err) != 0) {
		return -1;
	}
	return grant_hold(s, i, err);
}

int grants_attach(struct stage *s, int root_fd, struct ssb_error *err)
{
	for (size_t i = 0; i < s->n_sources; i++) {
		if (grant_overlay(s, i, root_fd, err) != 0) {
			return -1;
		}
	}
	(void)unlinkat(root_fd, ".lower", AT_REMOVEDIR);
	for (size_t i = 0; i < s->n_sources; i++) {
		const struct source *src = &s->sources[i];
		bool left_out = src->tree < 0 && src->grant.of_whole && !src->mask;
		if (!left_out && grant_attach(s, i, root_fd, err) != 0) {
			return -1;
		}
	}
	return 0;
}

/* Step by step: until the old root is gone a symlink on the way could lead to the host, and
 * beneath a writable grant somebody else may put one there. */
int view_place(int root, const char *path, bool dir)
{
	char part[NAME_MAX + 1];
	auto_fd held = -1;
	int at = root;

	for (;;) {
		size_t n = strcspn(path, "/");
		if (n == 0 || n >= sizeof(part)) {
			errno = n == 0 ? ENOENT : ENAMETOOLONG;
			return -1;
		}
		memcpy(part, path, n);
		part[n] = '\0';
		if (path[n] == '\0') {
			break;
		}
		if (mkdirat(at, part, 0755) != 0 && errno != EEXIST) {
			return -1;
		}
		int next = openat(at, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0) {
			return -1;
		}
		own_close(&held);
		at = held = next;
		path += n + 1;
	}
	if (dir) {
		return mkdirat(at, part, 0755) != 0 && errno != EEXIST ? -1 : 0;
	}
	auto_fd fd = openat(at, part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	return fd < 0 && errno != EEXIST ? -1 : 0;
}
