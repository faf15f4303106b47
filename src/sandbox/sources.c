/* sources.c - lists the host files that become mounts (grants, host mounts beneath them, covers)
 * and makes their idmapped trees. */
#include "sandbox/sources.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/clone.h"
#include "os/file.h"
#include "os/mount.h"
#include "policy/kernel_fs.h"
#include "policy/mounts.h"
#include "policy/path.h"
#include "sandbox/root.h"

#define HOLDER_STACK 4096

/* The process that keeps a user namespace alive until it is killed. It shares the supervisor's
 * memory, so it must not return from a system call: that could change the supervisor's errno. */
static int hold_namespace(void *unused)
{
	(void)unused;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	for (;;) {
		pause();
	}
	return 0;
}

/* Makes a user namespace that maps uid:gid of a file system to host_uid:host_gid. Returns an fd
 * that keeps it alive, or -1 with errno. The process that makes the namespace shares the
 * supervisor's memory, because copying the memory, and freeing the copy, would take longer than
 * everything else in this function. */
static int idmap_userns(uid_t uid, gid_t gid, uid_t host_uid, gid_t host_gid)
{
	alignas(16) char stack[HOLDER_STACK];
	char path[64], map[64];
	int pidfd = -1;
	int fd = -1;
	pid_t pid = clone(hold_namespace, stack + sizeof(stack),
	                  CLONE_NEWUSER | CLONE_VM | CLONE_PIDFD | SIGCHLD, NULL, &pidfd);

	if (pid < 0) {
		return -1;
	}
	snprintf(path, sizeof(path), "/proc/%d", pid);
	auto_fd proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(map, sizeof(map), "%u %u 1\n", uid, host_uid);
	if (proc >= 0 && clone_proc_write(proc, "uid_map", map) == 0) {
		snprintf(map, sizeof(map), "%u %u 1\n", gid, host_gid);
		if (clone_proc_write(proc, "gid_map", map) == 0) {
			fd = openat(proc, "ns/user", O_RDONLY | O_CLOEXEC);
		}
	}
	int saved = errno;
	clone_end(&pidfd);
	errno = saved;
	return fd;
}

static int source_fallback(const struct grant *g, struct mount_source *src, struct ssb_error *err)
{
	if (g->of_whole) {
		return ssb_fail(
		        err, SSB_E_LAYER, errno, "mounts",
		        "'%.160s' (%.60s) cannot be shown to the skill's own uid: its file "
		        "system does not support idmapped mounts (overlayfs in a container "
		        "does not); start skillsandbox as an unprivileged user, or name the "
		        "directories that are needed",
		        g->path, g->where);
	}
	if (g->access == ACCESS_WRITE) {
		return ssb_fail(
		        err, SSB_E_LAYER, errno, "mounts",
		        "'%.120s' (%.60s) cannot be written by the skill's own uid: its file "
		        "system, or one mounted beneath it, does not support idmapped mounts "
		        "(overlayfs, tmpfs before Linux 6.3); "
		        "start skillsandbox as an unprivileged user, or grant a directory on a "
		        "volume",
		        g->path, g->where);
	}
	src->tree = snapshot_tree(g->fd, g->path, err);
	src->ready = true;
	return src->tree < 0 ? -1 : 0;
}

/* Adds the host's mount at `point`, beneath the read grant `g`, as a source. If the mount cannot be
 * opened, it is left out: the skill could not read it anyway. A kernel file system must be granted
 * by name. If `g` merely contains one, as a grant of "/" does, it is masked. */
static int submount_add(struct stage_config *config, const struct grant *g, const char *point,
                        struct ssb_error *err)
{
	struct mount_source sub = { .submount = true, .tree = -1, .grant = *g };
	struct stat st;
	auto_fd fd = file_open_nosymlink(point, O_PATH);

	if (fd < 0 || fstat(fd, &st) != 0) {
		return 0;
	}
	sub.mask = kernel_fs_of(fd) != KERNEL_FS_NONE;
	if (config->n_sources == MAX_GRANTS) {
		return ssb_fail(err, SSB_E_LIMIT, 0, "mounts",
		                "the plan has more than %d grants and mounts beneath them; grant "
		                "fewer directories",
		                MAX_GRANTS);
	}
	sub.grant.path = strdup(point);
	if (asprintf(&sub.grant.target, "%s%s", g->target, point + strlen(g->path)) < 0) {
		sub.grant.target = NULL;
	}
	sub.grant.is_dir = S_ISDIR(st.st_mode);
	sub.grant.dev = st.st_dev;
	sub.grant.ino = st.st_ino;
	sub.grant.uid = st.st_uid;
	sub.grant.gid = st.st_gid;
	sub.grant.fd = steal_fd(&fd);
	config->sources[config->n_sources++] = sub;
	if (sub.grant.path == NULL || sub.grant.target == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "mounts", "out of memory");
	}
	return 0;
}

/* Returns the innermost grant whose host path contains `path`, or NULL. The plan's grants are
 * sorted with parents first. */
static const struct grant *grant_above(const struct ssb_plan *plan, const char *path)
{
	const struct grant *found = NULL;

	for (size_t i = 0; i < plan->n_grants; i++) {
		const struct grant *g = &plan->grants[i];
		found = path_beneath(path, g->path) != NULL ? g : found;
	}
	return found;
}

/* True if a cover hides the mount at `point`: the mount lies in a covered place, and `g` does
 * not. */
static bool is_covered(const struct ssb_plan *plan, const struct grant *g, const char *point)
{
	for (size_t i = 0; i < plan->n_covers; i++) {
		const char *place = plan->covers[i].path;
		if (path_beneath(point, place) != NULL && path_beneath(g->path, place) == NULL) {
			return true;
		}
	}
	return false;
}

static int submounts_add(struct stage_config *config, struct ssb_error *err)
{
	struct mounts mounts;
	int failed = 0;

	if (mounts_load(&mounts) != 0) {
		return ssb_fail(err, SSB_E_LAYER, errno, "mounts",
		                "cannot read /proc/self/mountinfo");
	}
	for (size_t i = 0; i < mounts.n && failed == 0; i++) {
		const char *point = mounts.v[i].point;
		const struct grant *g = grant_above(config->plan, point);
		/* Only read grants of directories need this: other grants are mounted together with
		 * the host's mounts beneath them. */
		if (g != NULL && g->access == ACCESS_READ && g->is_dir && g->kind == GRANT_FILES &&
		    strcmp(g->path, point) != 0 && !is_covered(config->plan, g, point)) {
			failed = submount_add(config, g, point, err);
		}
	}
	mounts_done(&mounts);
	return failed;
}

static void covers_add(struct stage_config *config)
{
	for (size_t i = 0; i < config->plan->n_covers; i++) {
		const struct cover *c = &config->plan->covers[i];
		config->sources[config->n_sources++] = (struct mount_source){
			.mask = true,
			.tree = -1,
			.grant = { .path = c->path,
			           .target = c->target,
			           .where = (char *)(uintptr_t)c->where,
			           .is_dir = c->is_dir,
			           .fd = -1,
			           .parent_fd = -1 },
		};
	}
}

/* Sorts a source after the one that contains its target. */
static int compare_sources(const void *x, const void *y)
{
	const struct mount_source *a = x;
	const struct mount_source *b = y;
	int d = path_order(a->grant.target, b->grant.target);

	return d != 0 ? d : (int)a->mask - (int)b->mask;
}

int sources_init(struct stage_config *config, struct ssb_error *err)
{
	const struct ssb_plan *plan = config->plan;
	const struct grant *grants = prepared_grants(config->of_run, plan);
	bool reads = false;

	for (size_t i = 0; i < plan->n_grants; i++) {
		reads |= grants[i].access == ACCESS_READ && grants[i].is_dir;
	}
	size_t room = (reads ? MAX_GRANTS : plan->n_grants) + plan->n_covers;
	if (room == 0) {
		return 0;
	}
	/* malloc, not calloc: unused pages are never touched. */
	config->sources = malloc(room * sizeof(*config->sources));
	if (config->sources == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "start", "out of memory");
	}
	for (size_t i = 0; i < plan->n_grants; i++) {
		config->sources[config->n_sources++] =
		        (struct mount_source){ .grant = grants[i], .tree = -1, .nth = i };
	}
	if (reads && submounts_add(config, err) != 0) {
		return -1;
	}
	covers_add(config);
	qsort(config->sources, config->n_sources, sizeof(*config->sources), compare_sources);
	return 0;
}

void sources_close(struct stage_config *config)
{
	for (size_t i = 0; i < config->n_sources; i++) {
		own_close(&config->sources[i].tree);
	}
}

void sources_done(struct stage_config *config)
{
	sources_close(config);
	for (size_t i = 0; i < config->n_sources; i++) {
		if (config->sources[i].submount) {
			free(config->sources[i].grant.path);
			free(config->sources[i].grant.target);
			own_close(&config->sources[i].grant.fd);
		}
	}
	free(config->sources);
	config->sources = NULL;
	config->n_sources = 0;
}

/* Clones a tree without id mapping: for its files, the skill is neither owner nor group. It is used
 * for devices and kernel file systems, which have no owners to map, and for paths that only the
 * manifest asks for. */
static int source_as_is(struct mount_source *src, struct ssb_error *err)
{
	auto_fd tree = src->grant.kind == GRANT_FILES ? mount_clone_one(src->grant.fd)
	                                              : mount_clone(src->grant.fd, "");

	if (tree < 0 || mount_restrict(tree, grants_attrs(&src->grant), -1) != 0) {
		return ssb_fail(err, SSB_E_LAYER, errno, "mounts", "cannot mount '%.200s'",
		                src->grant.path);
	}
	src->tree = steal_fd(&tree);
	return 0;
}

int sources_idmap(struct stage_config *config, uid_t host_uid, gid_t host_gid,
                  struct ssb_error *err)
{
	auto_fd userns = -1;
	uid_t uid = (uid_t)-1;
	gid_t gid = (gid_t)-1;

	for (size_t i = 0; i < config->n_sources; i++) {
		const struct grant *g = &config->sources[i].grant;

		if (config->sources[i].mask || g->scratch) {
			continue;
		}
		/* If only the manifest asks to read a path, and the owner neither named it nor
		 * approved the skill, the skill gets the permissions of "others" for it. So it
		 * cannot read files with mode 0600. */
		bool unasked = g->unasked && config->plan->approved == NULL;
		if (g->kind != GRANT_FILES || unasked) {
			if (source_as_is(&config->sources[i], err) != 0) {
				return -1;
			}
			continue;
		}
		if (userns < 0 || uid != g->uid || gid != g->gid) {
			own_close(&userns);
			uid = g->uid;
			gid = g->gid;
			userns = idmap_userns(uid, gid, host_uid, host_gid);
			if (userns < 0) {
				return ssb_fail(err, SSB_E_LAYER, errno, "userns",
				                "cannot make a user namespace for idmapped mounts");
			}
		}
		/* Clone only this mount of a read grant: a mount beneath it is a source of its own,
		 * and its file system may not support id mapping. */
		auto_fd tree =
		        g->access == ACCESS_READ ? mount_clone_one(g->fd) : mount_clone(g->fd, "");
		if (tree < 0 && !g->of_whole) {
			return ssb_fail(err, SSB_E_LAYER, errno, "mounts", "cannot mount '%.200s'",
			                g->path);
		}
		if (tree >= 0 && mount_restrict(tree, grants_attrs(g), userns) == 0) {
			config->sources[i].tree = steal_fd(&tree);
		} else if (g->of_whole && (tree < 0 || config->sources[i].submount)) {
			config->left_out++; /* it was removed meanwhile, or its file system cannot
			                       be mapped */
		} else if (source_fallback(g, &config->sources[i], err) != 0) {
			return -1;
		}
	}
	return 0;
}
