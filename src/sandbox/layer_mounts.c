/* layer_mounts.c - builds the new root from the view table.
 *
 * One tmpfs contains everything that does not come from the host: the directories of the root
 * and the four private places /tmp, /var/tmp, /dev/shm and $HOME. Each private place is a mount
 * of its own on the same tmpfs: so the rest of the tmpfs can be made read-only, and max_disk_mb
 * limits the size of all four together. System directories are read-only copies of the host's
 * mounts, or come from the owner's root file system (rootfs_mount.c). Files and directories of the
 * host are cloned as detached trees before the new root covers anything, and attached when the
 * new root is in place. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/file.h"
#include "os/mount.h"
#include "sandbox/stage.h"
#include "sandbox/root.h"

#define RO_ATTRS     (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
#define DEVICE_ATTRS (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC)
#define SEAL_TRIES   1000

struct mounted_view {
	int root; /* the new root, attached */
	int proc; /* detached */
	int pts;
	int empty; /* an empty directory that no process can change: /proc is mounted over it */
	/* indexed by the row of VIEW, for rows that come from the host: */
	mode_t modes[VIEW_ROWS]; /* 0: absent */
	/* fds of detached trees; not set if the object is a symlink or absent */
	int trees[VIEW_ROWS];
};

static int fail_mounts(struct ssb_error *err, const char *what, const char *name)
{
	return ssb_fail(err, SSB_E_LAYER, errno, "mounts", "%s '%s'", what, name);
}

/* Returns the attributes of /proc's mount. If root starts the run and cannot map another uid, the
 * skill is still root for the kernel: it owns the settings in /proc/sys and needs no capability to
 * write them. So in that case /proc is read-only. */
static uint64_t proc_attrs(const struct stage *s)
{
	bool root = s->config->outer_uid == 0 && !s->config->mapped_by_parent;

	return MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC |
	       (root ? MOUNT_ATTR_RDONLY : 0);
}

/* Clones the mounts of the host that the view shows, while the host's root is still visible. Also
 * makes /proc and /dev/pts. */
static int view_collect(struct mounted_view *v, int host, const struct stage *s,
                        struct ssb_error *err)
{
	bool whole = s->config->plan->rootfs.path == NULL;

	for (size_t i = 0; i < VIEW_ROWS; i++) {
		const char *name = view_name(&VIEW[i]);
		bool device = VIEW[i].shown == VIEW_DEVICE;
		struct stat st = { .st_mode = S_IFCHR };
		if (!device && (!whole || VIEW[i].shown != VIEW_HOST ||
		                fstatat(host, name, &st, AT_SYMLINK_NOFOLLOW) != 0)) {
			continue;
		}
		v->modes[i] = st.st_mode;
		if (S_ISLNK(st.st_mode)) {
			continue;
		}
		v->trees[i] = mount_clone(host, name);
		if (v->trees[i] < 0 ||
		    mount_restrict(v->trees[i], device ? DEVICE_ATTRS : RO_ATTRS, -1) != 0) {
			return fail_mounts(err, "cannot clone or restrict the mount", name);
		}
	}
	v->proc = mount_new("proc", NULL, proc_attrs(s));
	if (v->proc < 0) {
		return ssb_fail(
		        err, SSB_E_LAYER, errno, "mounts",
		        "cannot mount the sandbox's own /proc; in a container the outer /proc must "
		        "not be masked (docker: --security-opt systempaths=unconfined)");
	}
	static const struct mount_option pts[] = { { "newinstance", NULL },
		                                   { "ptmxmode", "0666" },
		                                   { "mode", "0620" },
		                                   { "max", MAX_TERMINALS },
		                                   { NULL, NULL } };
	v->pts = mount_new("devpts", pts, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	return v->pts < 0 ? fail_mounts(err, "cannot mount", "/dev/pts") : 0;
}

/* Makes the empty new root and mounts it over /tmp, where it stays until the pivot. */
static int view_root(struct mounted_view *v, const struct ssb_plan *plan, struct ssb_error *err)
{
	char size[32], inodes[32];
	snprintf(size, sizeof(size), "%llum", (unsigned long long)plan->res.max_disk_mb);
	snprintf(inodes, sizeof(inodes), "%llu",
	         (unsigned long long)(SCRATCH_INODES +
	                              SCRATCH_INODES_PER_MB * plan->res.max_disk_mb));
	const struct mount_option options[] = {
		{ "size", size }, { "nr_inodes", inodes }, { "mode", "0755" }, { NULL, NULL }
	};

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
		return fail_mounts(err, "cannot detach from the host's mounts", "/");
	}
	v->root = mount_new("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (v->root < 0) {
		return fail_mounts(err, "cannot mount", "tmpfs");
	}
	if (mount_attach(v->root, AT_FDCWD, "/tmp") != 0) {
		return fail_mounts(err, "cannot mount over", "/tmp");
	}
	return 0;
}

int root_make_file(int root, const char *name, const char *text)
{
	auto_fd fd = openat(root, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	return fd < 0 ? -1 : file_write_all(fd, text, strlen(text));
}

/* Writes the sandbox's own files in /etc: accounts and name resolution. */
static int view_etc(int root, const struct stage *s, struct ssb_error *err)
{
	char passwd[PATH_MAX + 256], group[128];
	snprintf(passwd, sizeof(passwd),
	         "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n"
	         "skill:x:%u:%u:skill:%s:/bin/sh\n"
	         "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
	         s->config->uid, s->config->gid, s->config->plan->home);
	snprintf(group, sizeof(group), "root:x:0:\nskill:x:%u:\nnogroup:x:65534:\n",
	         s->config->gid);
	const struct {
		const char *name, *text;
	} files[] = {
		{ "etc/passwd", passwd },
		{ "etc/group", group },
		{ "etc/hostname", "sandbox\n" },
		{ "etc/hosts", SANDBOX_HOSTS },
		/* A host name can have IPv4 and IPv6 addresses. These files put IPv4 first for
		 * programs that use only the first address, because most local services listen on
		 * IPv4. */
		{ "etc/host.conf", "multi on\n" },
		{ "etc/gai.conf",
		  "precedence ::/0 40\nprecedence 2002::/16 30\nprecedence ::/96 20\n"
		  "precedence ::ffff:0:0/96 10\nprecedence ::1/128 5\n" },
		{ "etc/resolv.conf", s->config->plan->n_egress == 0
		                             ? "# no network egress is granted\n"
		                               "nameserver 127.0.0.1\n"
		                     : s->config->egress->v6 ? "nameserver " EGRESS_DNS4
		                                               "\nnameserver " EGRESS_DNS6 "\n"
		                                             : "nameserver " EGRESS_DNS4 "\n" },
		{ "etc/nsswitch.conf",
		  "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
		  "services: files\nprotocols: files\nnetworks: files\n" },
	};

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		if (root_make_file(root, files[i].name, files[i].text) != 0) {
			return fail_mounts(err, "cannot write", files[i].name);
		}
	}
	return 0;
}

static int view_worker(int root, const struct ssb_plan *plan, struct ssb_error *err)
{
	if (worker_named(plan) && (mkdirat(root, "run/skillsandbox", 0755) != 0 ||
	                           root_make_file(root, SKILL_WORKER + 1, WORKER_TEXT) != 0)) {
		return fail_mounts(err, "cannot write", SKILL_WORKER);
	}
	return 0;
}

/* Makes a mount point, with its parents if they are missing. */
static int make_point(int root, const char *name, bool dir)
{
	int failed = dir ? mkdirat(root, name, 0755) : mknodat(root, name, S_IFREG | 0644, 0);
	return failed != 0 && errno == ENOENT ? root_make_place(root, name, dir) : failed;
}

static int view_from_host(const struct mounted_view *v, int host, size_t row, struct ssb_error *err)
{
	const char *name = view_name(&VIEW[row]);
	mode_t mode = v->modes[row];

	if (mode == 0) {
		return 0;
	}
	if (S_ISLNK(mode)) {
		char to[PATH_MAX];
		ssize_t n = readlinkat(host, name, to, sizeof(to) - 1);
		if (n < 0) {
			return fail_mounts(err, "cannot read the link", name);
		}
		to[n] = '\0';
		return symlinkat(to, v->root, name) != 0 ? fail_mounts(err, "cannot link", name)
		                                         : 0;
	}
	return make_point(v->root, name, S_ISDIR(mode)) != 0 ||
	                       mount_attach(v->trees[row], v->root, name) != 0
	               ? fail_mounts(err, "cannot mount", name)
	               : 0;
}

/* Mounts a directory of the tmpfs over itself, so that it stays writable when the root becomes
 * read-only. */
static int view_private(int root, const char *name, mode_t mode, struct ssb_error *err)
{
	if (fchmodat(root, name, mode, 0) != 0) {
		return fail_mounts(err, "cannot change", name);
	}
	auto_fd tree = mount_clone(root, name);
	if (tree < 0 || mount_attach(tree, root, name) != 0) {
		return fail_mounts(err, "cannot mount", name);
	}
	return 0;
}

static int view_mask(int root, int host, const char *name, struct ssb_error *err)
{
	struct stat st;

	if (fstatat(root, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
		return errno == ENOENT ? 0 : fail_mounts(err, "cannot mask", name);
	}
	auto_fd tree = mount_clone(host, "dev/null");
	if (tree < 0 || mount_restrict(tree, RO_ATTRS, -1) != 0 ||
	    mount_attach(tree, root, name) != 0) {
		return fail_mounts(err, "cannot mask", name);
	}
	return 0;
}

/* Makes one row of the view: a directory, a symlink, or a mount from the host. Rows of other kinds
 * are handled by view_etc() and view_kernel(). */
static int view_make(const struct mounted_view *v, int host, const struct view_row *r,
                     struct ssb_error *err)
{
	switch (r->shown) {
	case VIEW_DIR:
	case VIEW_PRIVATE:
	case VIEW_KERNEL:
		return r->path[1] != '\0' && mkdirat(v->root, view_name(r), 0755) != 0
		               ? fail_mounts(err, "cannot make", view_name(r))
		               : 0;
	case VIEW_LINK:
		return symlinkat(r->to, v->root, view_name(r)) != 0
		               ? fail_mounts(err, "cannot link", view_name(r))
		               : 0;
	case VIEW_HOST:
	case VIEW_DEVICE:
		return view_from_host(v, host, (size_t)(r - VIEW), err);
	default:
		return 0; /* view_etc() writes the files; view_kernel() handles the rest */
	}
}

static int view_kernel(struct mounted_view *v, int host, struct ssb_error *err)
{
	v->empty = openat(v->root, "proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (v->empty < 0 || mount_attach(v->proc, v->root, "proc") != 0 ||
	    mount_attach(v->pts, v->root, "dev/pts") != 0) {
		return fail_mounts(err, "cannot mount", "/proc and /dev/pts");
	}
	for (size_t i = 0; i < VIEW_ROWS; i++) {
		if (VIEW[i].shown == VIEW_MASKED &&
		    view_mask(v->root, host, view_name(&VIEW[i]), err) != 0) {
			return -1;
		}
	}
	return 0;
}

static int view_fill(struct mounted_view *v, int host, const struct stage *s, struct ssb_error *err)
{
	for (size_t i = 0; i < VIEW_ROWS; i++) {
		if (view_make(v, host, &VIEW[i], err) != 0) {
			return -1;
		}
	}
	if (view_etc(v->root, s, err) != 0 || view_worker(v->root, s->config->plan, err) != 0 ||
	    view_kernel(v, host, err) != 0) {
		return -1;
	}
	for (size_t i = 0; i < VIEW_ROWS; i++) {
		if (VIEW[i].shown == VIEW_PRIVATE &&
		    view_private(v->root, view_name(&VIEW[i]), 01777, err) != 0) {
			return -1;
		}
	}
	const char *home = s->config->plan->home + 1;
	return root_make_place(v->root, home, true) != 0 ? fail_mounts(err, "cannot make", home)
	                                                 : view_private(v->root, home, 0700, err);
}

/* Makes the root read-only. The call fails with EBUSY while a process follows a symlink of the
 * root, because the kernel then updates the symlink's access time, and so counts as a writer. The
 * skill's process may be doing that right now: try again. */
static int seal_root(void)
{
	static const struct timespec instant = { .tv_nsec = 100000 };
	int rc = mount_set_attrs(AT_FDCWD, "/", MOUNT_ATTR_RDONLY);

	for (int i = 0; rc != 0 && errno == EBUSY && i < SEAL_TRIES; i++) {
		(void)nanosleep(&instant, NULL);
		rc = mount_set_attrs(AT_FDCWD, "/", MOUNT_ATTR_RDONLY);
	}
	return rc;
}

int layer_seal_mounts(struct ssb_error *err)
{
	if (mount_drop_old_root() != 0) {
		return fail_mounts(err, "cannot detach the host's root", "/");
	}
	if (seal_root() != 0) {
		return fail_mounts(err, "cannot make the new root read-only:", "/");
	}
	return 0;
}

int layer_mounts(struct stage *s, struct ssb_error *err)
{
	struct mounted_view v = { .root = -1, .proc = -1, .pts = -1, .empty = -1 };
	auto_fd host = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	/* The fds in `v` are not closed here: init_confine() closes all fds at once. */
	if (host < 0 || view_collect(&v, host, s, err) != 0 || rootfs_collect(s, err) != 0 ||
	    grants_collect(s, err) != 0 || view_root(&v, s->config->plan, err) != 0 ||
	    view_fill(&v, host, s, err) != 0) {
		return host < 0 ? fail_mounts(err, "cannot open", "/") : -1;
	}
	s->empty = v.empty;
	if (mount_pivot(v.root) != 0) {
		return fail_mounts(err, "cannot change the root to", "tmpfs");
	}
	if (rootfs_attach(s, v.root, err) != 0 || grants_attach(s, v.root, err) != 0) {
		return -1;
	}
	s->scratch = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (s->scratch < 0) {
		return fail_mounts(err, "cannot open", "/tmp");
	}
	char left_out[48] = "";
	if (s->left_out > 0) {
		snprintf(left_out, sizeof(left_out), " (%zu mounts or entries of / left out)",
		         s->left_out);
	}
	snprintf(s->reports[LAYER_MOUNTS].detail, sizeof(s->reports[LAYER_MOUNTS].detail),
	         "new root%s; %zu granted%s, %llu MB of private tmpfs",
	         s->config->plan->rootfs.path != NULL ? " from --rootfs or --image" : "",
	         s->config->plan->n_grants, left_out,
	         (unsigned long long)s->config->plan->res.max_disk_mb);
	return 0;
}
