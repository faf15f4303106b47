/* rootfs_mount.c - shows an unpacked root file system in place of the host's.
 *
 * The root of the sandbox remains its own tmpfs, with its own /proc, /dev, /tmp, home and files of
 * /etc. Each entry at the top of the image's root file system is mounted into it read-only. If a
 * directory also contains files of the sandbox, or needs a new mount point for a grant, its entries
 * are mounted one by one instead. If both have an entry of the same name, the sandbox's entry is
 * used. So no file of the image (a symlink in place of /etc, say) can replace it.
 *
 * An overlay covers the root file system, as for read grants: sockets and FIFOs in it cannot be
 * used, and host mounts in it are not shown. */
#include <assert.h>
#include <dirent.h>
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
#include "os/entries.h"
#include "os/file.h"
#include "os/mount.h"
#include "sandbox/stage.h"
#include "sandbox/root.h"

#define PLAIN (RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)
#define PLACE ".rootfs" /* where the root file system is mounted while its parts are cloned */

struct parts {
	const struct stage *stage;
	int root;
	unsigned n;
};

static int fail_rootfs(const struct ssb_plan *plan, struct ssb_error *err, const char *what,
                       const char *name)
{
	return ssb_fail(err, SSB_E_LAYER, errno, "mounts",
	                "%s '%.100s' of the root file system '%.160s'", what, name,
	                plan->rootfs.path);
}

/* Restricts the mounts of the tree and moves the fd *tree to *ret_rootfs. On failure the caller
 * keeps it. */
static int take_tree(const struct ssb_plan *plan, int *tree, int *ret_rootfs, struct ssb_error *err)
{
	if (*tree < 0 || mount_restrict(*tree, grants_attrs(&plan->rootfs), -1) != 0) {
		return fail_rootfs(plan, err, "cannot clone or restrict the mount", "/");
	}
	*ret_rootfs = steal_fd(tree);
	return 0;
}

int rootfs_take(struct stage_config *config, struct ssb_error *err)
{
	if (config->plan->rootfs.path == NULL) {
		return 0;
	}
	auto_fd tree = mount_clone_one(config->plan->rootfs.fd);
	return take_tree(config->plan, &tree, &config->rootfs, err);
}

int rootfs_collect(struct stage *s, struct ssb_error *err)
{
	const struct grant *g = &s->config->plan->rootfs;
	struct stat st;

	if (g->path == NULL || s->rootfs >= 0) {
		return 0;
	}
	/* As in grants_collect(): open the path again, and check that it is the same object. */
	auto_fd fd = file_open_nosymlink(g->path, O_PATH | O_DIRECTORY);
	if (fd < 0 || fstat(fd, &st) != 0) {
		return fail_rootfs(s->config->plan, err, "cannot open", "/");
	}
	if (st.st_dev != g->dev || st.st_ino != g->ino) {
		errno = ESTALE;
		return fail_rootfs(s->config->plan, err,
		                   "while the sandbox was built, another process replaced", "/");
	}
	auto_fd tree = mount_clone(fd, "");
	return take_tree(s->config->plan, &tree, &s->rootfs, err);
}

static bool is_own(const struct stage *s, const char *name)
{
	bool own = strcmp(name, s->config->plan->home + 1) == 0;

	for (size_t i = 0; i < VIEW_ROWS && !own; i++) {
		own = (VIEW[i].claim & VIEW_ROOTFS) != 0 && strcmp(name, view_name(&VIEW[i])) == 0;
	}
	return own;
}

/* True if a grant is to be mounted in this directory and the directory has no mount point for
 * it. */
static bool leads_to_grant(const struct parts *p, const char *name)
{
	char at[PATH_MAX];
	struct stat st;
	size_t len = strlen(name);

	for (size_t i = 0; i < p->stage->config->n_sources; i++) {
		const char *target = p->stage->config->sources[i].grant.target + 1;
		if (strncmp(target, name, len) != 0 || target[len] != '/') {
			continue;
		}
		if (snprintf(at, sizeof(at), PLACE "/%s", target) < (int)sizeof(at) &&
		    fstatat(p->root, at, &st, AT_SYMLINK_NOFOLLOW) != 0) {
			return true;
		}
	}
	return false;
}

static int part_link(const struct parts *p, const char *from, const char *name,
                     struct ssb_error *err)
{
	char to[PATH_MAX];
	ssize_t n = readlinkat(p->root, from, to, sizeof(to) - 1);

	if (n < 0) {
		return fail_rootfs(p->stage->config->plan, err, "cannot read the link", name);
	}
	to[n] = '\0';
	return symlinkat(to, p->root, name) != 0
	               ? fail_rootfs(p->stage->config->plan, err, "cannot link", name)
	               : 0;
}

static int part_mount(const struct parts *p, const char *from, const char *name, bool dir,
                      struct ssb_error *err)
{
	auto_fd tree = mount_clone(p->root, from);

	if (tree < 0 || root_make_place(p->root, name, dir) != 0 ||
	    mount_attach(tree, p->root, name) != 0) {
		return fail_rootfs(p->stage->config->plan, err, "cannot mount", name);
	}
	return 0;
}

static int parts_of(struct parts *p, const char *name, struct ssb_error *err);

static int collect_part(struct parts *p, const char *name, struct ssb_error *err)
{
	char from[PATH_MAX];
	struct stat st, ours;

	if (is_own(p->stage, name)) {
		return 0;
	}
	snprintf(from, sizeof(from), PLACE "/%s", name);
	if (fstatat(p->root, from, &st, AT_SYMLINK_NOFOLLOW) != 0) {
		return errno == ENOENT
		               ? 0
		               : fail_rootfs(p->stage->config->plan, err, "cannot examine", name);
	}
	if (fstatat(p->root, name, &ours, AT_SYMLINK_NOFOLLOW) == 0) {
		bool both = S_ISDIR(st.st_mode) && S_ISDIR(ours.st_mode);
		return both ? parts_of(p, name, err) : 0;
	}
	if (S_ISDIR(st.st_mode) && leads_to_grant(p, name)) {
		return root_make_place(p->root, name, true) != 0
		               ? fail_rootfs(p->stage->config->plan, err, "cannot make", name)
		               : parts_of(p, name, err);
	}
	if (++p->n > MAX_ROOTFS_PARTS) {
		errno = 0;
		return fail_rootfs(
		        p->stage->config->plan, err,
		        "the root file system has more than 1024 entries at its top, in "
		        "/etc and in /var; remove some. The first one beyond the limit is",
		        name);
	}
	return S_ISLNK(st.st_mode) ? part_link(p, from, name, err)
	       : S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)
	               ? part_mount(p, from, name, S_ISDIR(st.st_mode), err)
	               : 0;
}

/* Handles each entry of the directory `name` ("" is the top). Enters only directories in which the
 * sandbox has files or mount points of its own. */
static int parts_of(struct parts *p, const char *name, struct ssb_error *err)
{
	char from[PATH_MAX], below[PATH_MAX];

	snprintf(from, sizeof(from), PLACE "/%s", name);
	auto_dir d = entries_open(p->root, from);
	if (d == NULL) {
		return errno == EACCES
		               ? 0
		               : fail_rootfs(p->stage->config->plan, err, "cannot list", name);
	}
	for (const struct dirent *e; (e = entries_of(d)) != NULL;) {
		int n = snprintf(below, sizeof(below), "%s%s%s", name, *name != '\0' ? "/" : "",
		                 e->d_name);
		if (n >= (int)(sizeof(below) - sizeof(PLACE)) || collect_part(p, below, err) != 0) {
			errno = ENAMETOOLONG;
			return err->code != SSB_OK ? -1
			                           : fail_rootfs(p->stage->config->plan, err,
			                                         "a path is too long in", name);
		}
	}
	return 0;
}

int rootfs_attach(struct stage *s, int root_fd, struct ssb_error *err)
{
	struct parts parts = { s, root_fd, 0 };

	if (s->config->plan->rootfs.path == NULL) {
		return 0;
	}
	if (root_overlay(root_fd, s->empty, &s->rootfs) != 0) {
		return fail_rootfs(
		        s->config->plan, err,
		        "the kernel cannot make a read-only overlay (needs Linux 5.11) of", "/");
	}
	if (root_make_place(root_fd, PLACE, true) != 0 ||
	    mount_attach(s->rootfs, root_fd, PLACE) != 0) {
		return fail_rootfs(s->config->plan, err, "cannot mount", "/");
	}
	if (parts_of(&parts, "", err) != 0) {
		return -1;
	}
	if (umount2("/" PLACE, MNT_DETACH) != 0 || unlinkat(root_fd, PLACE, AT_REMOVEDIR) != 0) {
		return fail_rootfs(s->config->plan, err, "cannot unmount", "/");
	}
	return 0;
}

int rootfs_way(const struct stage *s, const struct grant *g, int root_fd, struct ssb_error *err)
{
	char part[PATH_MAX];

	assert(g->target[0] == '/');
	for (size_t i = 1; s->config->plan->rootfs.path != NULL; i++) {
		if (g->target[i] != '/' && g->target[i] != '\0') {
			continue;
		}
		snprintf(part, sizeof(part), "%.*s", (int)i, g->target);
		auto_fd at = file_openat2(root_fd, part + 1, O_PATH, PLAIN);
		if (at < 0 && errno == ENOENT) {
			return 0; /* the rest of the path is made later */
		}
		if (at < 0) {
			return ssb_fail(err, SSB_E_LAYER, errno, "mounts",
			                "in the root file system, '%.120s' is a symlink, or a file "
			                "is on the way to it, so '%.120s' (%.40s) cannot be shown "
			                "there; use real directories instead",
			                part, g->path, g->where);
		}
		if (g->target[i] == '\0') {
			return 0;
		}
	}
	return 0;
}
