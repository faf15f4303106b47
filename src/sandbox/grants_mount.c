/* grants_mount.c - mounts the granted files into the skill's view.
 *
 * A write grant is the host's own mount. A read grant of a directory is a read-only overlay over
 * it. The overlay has inodes of its own, so a unix socket or FIFO of the host, even one that is
 * made later, cannot be used through it. (A read-only bind mount stops neither connect() nor a
 * write to a FIFO.) If the kernel cannot make the overlay, the plain read-only mount is used and
 * unix sockets are restricted instead. Only the object that planning judged (same device and inode)
 * is mounted. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/file.h"
#include "os/mount.h"
#include "sandbox/sources.h"
#include "sandbox/stage.h"
#include "sandbox/root.h"

#define IN_VIEW (RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

static int fail_grant(struct ssb_error *err, const struct grant *g, const char *what)
{
	return ssb_fail(err, SSB_E_LAYER, errno, "mounts", "%s '%.200s' (%.60s)", what, g->path,
	                g->where);
}

uint64_t grants_attrs(const struct grant *g)
{
	switch (g->kind) {
	case GRANT_DEVICES:
		/* A device on a read-only mount can still be written; Landlock decides about that.
		 * The read-only mount only stops the skill from adding names to the directory. */
		return MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY;
	case GRANT_KERNEL:
		return MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY;
	case GRANT_FILES:
		break;
	}
	return MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
	       (g->access == ACCESS_READ ? MOUNT_ATTR_RDONLY : 0);
}

unsigned grants_rights(const struct grant *g)
{
	unsigned write = g->access == ACCESS_WRITE ? LL_WRITE : 0;

	if (g->kind != GRANT_FILES) {
		return LL_READ | write;
	}
	/* Never LL_SPECIAL: the skill must not leave sockets or FIFOs behind on the host. No right
	 * of landlock.h allows the skill to make devices. */
	return LL_READ | LL_EXEC | (write != 0 ? LL_WRITE | LL_CHANGE : 0);
}

int grants_collect(struct stage *s, struct ssb_error *err)
{
	for (size_t i = 0; i < s->config->n_sources; i++) {
		const struct grant *g = &s->config->sources[i].grant;
		struct stat st;

		if (s->config->sources[i].tree >= 0 || s->config->sources[i].mask || g->scratch) {
			continue;
		}
		/* The plan's fd belongs to the host's mount namespace and cannot be cloned here. So
		 * open the path again, and check that it is the same object. */
		auto_fd fd = file_open_nosymlink(g->path, O_PATH);
		bool there = fd >= 0 && fstat(fd, &st) == 0;
		if (g->of_whole && (!there || st.st_dev != g->dev || st.st_ino != g->ino)) {
			s->left_out++; /* removed meanwhile */
			continue;
		}
		if (!there) {
			return fail_grant(err, g, "cannot open");
		}
		if (st.st_dev != g->dev || st.st_ino != g->ino) {
			errno = ESTALE;
			return fail_grant(err, g,
			                  "while the sandbox was built, another process replaced");
		}
		s->config->sources[i].tree = mount_clone(fd, "");
		if (s->config->sources[i].tree < 0 ||
		    mount_restrict(s->config->sources[i].tree, grants_attrs(g), -1) != 0) {
			return fail_grant(err, g, "cannot mount");
		}
	}
	return 0;
}

/* An overlay without an upper layer needs two lower directories, and shows the content of both. So
 * its second directory is `empty`. */
int root_overlay(int root_fd, int empty, int *tree)
{
	char lower[64];
	const struct mount_option options[] = { { "lowerdir", lower }, { NULL, NULL } };

	snprintf(lower, sizeof(lower), "/.lower:/proc/self/fd/%d", empty);
	if (root_make_place(root_fd, ".lower", true) != 0 ||
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

/* True if the innermost grant that contains the path is a writable directory. */
static bool in_work(const struct ssb_plan *plan, const char *path)
{
	const struct grant *in = plan_shown_by(plan, path);

	return in != NULL && grant_is_work(in);
}

/* Pins the directories that lead to a grant's mount point. If the skill could rename one of them,
 * it could move the grant to another path, and could make other content at the grant's own path (on
 * the host, too). */
static int pin_way(const struct ssb_plan *plan, int root_fd, const char *target)
{
	char part[PATH_MAX];

	for (size_t i = 1; target[i] != '\0'; i++) {
		snprintf(part, sizeof(part), "%.*s", (int)i, target);
		if (target[i] != '/' || !(view_in_private(plan, part) || in_work(plan, part))) {
			continue;
		}
		auto_fd at = file_openat2(root_fd, part + 1, O_PATH | O_NOFOLLOW, IN_VIEW);
		if (at < 0 || (!root_is_pinned(at) && root_pin(at, false) != 0)) {
			return -1;
		}
	}
	return 0;
}

/* Puts an overlay over a read grant if it needs one. Must run before anything is mounted into the
 * new root, because s->empty must still be empty. */
static int grant_overlay(struct stage *s, size_t i, int root_fd, struct ssb_error *err)
{
	struct mount_source *src = &s->config->sources[i];
	const struct grant *g = &src->grant;

	if (src->tree < 0 || g->access != ACCESS_READ || !g->is_dir || src->ready ||
	    g->kind == GRANT_KERNEL) {
		return 0;
	}
	if (g->kind == GRANT_FILES && root_overlay(root_fd, s->empty, &src->tree) == 0) {
		return 0;
	}
	if (g->kind == GRANT_FILES && view_in_private(s->config->plan, g->target)) {
		/* The grant is shown in a private place, where Landlock allows writing. So without
		 * the overlay the skill could write to a FIFO of the host. */
		return fail_grant(err, g,
		                  "this directory contains other mounts, or cannot be overlaid; "
		                  "grant its parts instead:");
	}
	s->unix_sockets = false;
	return 0;
}

/* Makes a tree with an empty directory that cannot be changed. It has mount points for grants that
 * lie beneath it. Returns its fd, or -1 with errno. */
static int empty_tree(const struct stage *s, const struct grant *g)
{
	static const struct mount_option nothing[] = { { "size", "4k" },
		                                       { "mode", "0555" },
		                                       { NULL, NULL } };
	auto_fd tree = mount_new("tmpfs", nothing, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	size_t len = strlen(g->target);

	for (size_t i = 0; tree >= 0 && i < s->config->n_sources; i++) {
		const struct grant *in = &s->config->sources[i].grant;
		if (strncmp(in->target, g->target, len) == 0 && in->target[len] == '/' &&
		    root_make_place(tree, in->target + len + 1, in->is_dir) != 0) {
			return -1;
		}
	}
	return tree >= 0 && mount_restrict(tree, MOUNT_ATTR_RDONLY, -1) == 0 ? steal_fd(&tree) : -1;
}

/* Mounts an empty object over the target of `g`, to hide the content that the mount of a directory
 * above shows. */
static int mask_attach(const struct stage *s, const struct grant *g, int root_fd,
                       struct ssb_error *err)
{
	const uint64_t attrs = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
	auto_fd target = file_openat2(root_fd, g->target + 1, O_PATH, IN_VIEW);

	if (target < 0) {
		return errno == ENOENT || errno == EACCES ? 0 : fail_grant(err, g, "cannot mask");
	}
	auto_fd tree = g->is_dir ? empty_tree(s, g) : mount_clone(root_fd, "dev/null");
	if (tree < 0 || (!g->is_dir && mount_restrict(tree, attrs, -1) != 0) ||
	    mount_attach(tree, target, "") != 0) {
		return fail_grant(err, g, "cannot mask");
	}
	return 0;
}

/* Makes a scratch file system. All scratch file systems together may be as large as the private
 * places (max_disk_mb). Returns its fd, or -1 with errno. */
static int scratch_tree(const struct stage *s)
{
	unsigned long long share = s->config->plan->res.max_disk_mb * 1024;
	size_t n = 0;
	char size[32], inodes[32];

	for (size_t i = 0; i < s->config->plan->n_grants; i++) {
		n += s->config->plan->grants[i].scratch;
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
	const struct grant *g = &s->config->sources[i].grant;
	const char *name = g->target + 1;

	if (s->config->sources[i].mask) {
		return mask_attach(s, g, root_fd, err);
	}
	if (rootfs_way(s, g, root_fd, err) != 0) {
		return -1;
	}
	if (g->scratch && (s->config->sources[i].tree = scratch_tree(s)) < 0) {
		return fail_grant(err, g, "cannot make a file system for");
	}
	/* Ignore a failure: if the mount point is beneath another grant, it exists already or
	 * cannot be made. Opening it below finds out. */
	(void)root_make_place(root_fd, name, g->is_dir);
	if (pin_way(s->config->plan, root_fd, g->target) != 0) {
		return fail_grant(err, g, "cannot protect the directories that lead to");
	}
	auto_fd target = file_openat2(root_fd, name, O_PATH, IN_VIEW);
	if (target < 0 && errno == EACCES && s->config->sources[i].submount) {
		return 0; /* the host mount lies in a directory that is closed to the skill */
	}
	if (target < 0) {
		return fail_grant(err, g,
		                  errno == EACCES
		                          ? "a directory above the granted path does not let other "
		                            "users in; grant that directory instead of"
		                          : "the sandbox has no place to mount");
	}
	if (mount_attach(s->config->sources[i].tree, target, "") != 0) {
		if (g->of_whole && errno == ENOENT) {
			s->left_out++; /* removed meanwhile */
			return 0;
		}
		return fail_grant(err, g, "cannot mount");
	}
	if (grant_is_work(g) && grants_protect(s, i, root_fd, err) != 0) {
		return -1;
	}
	return grants_hold(s, i, err);
}

int grants_attach(struct stage *s, int root_fd, struct ssb_error *err)
{
	for (size_t i = 0; i < s->config->n_sources; i++) {
		if (grant_overlay(s, i, root_fd, err) != 0) {
			return -1;
		}
	}
	(void)unlinkat(root_fd, ".lower", AT_REMOVEDIR);
	for (size_t i = 0; i < s->config->n_sources; i++) {
		const struct mount_source *src = &s->config->sources[i];
		bool left_out = src->tree < 0 && src->grant.of_whole && !src->mask;
		if (!left_out && grant_attach(s, i, root_fd, err) != 0) {
			return -1;
		}
	}
	return 0;
}

/* Makes the path one directory at a time. Until the old root is gone, a symlink in the path could
 * lead to the host, and beneath a writable grant another process may put one there. */
int root_make_place(int root, const char *path, bool dir)
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
