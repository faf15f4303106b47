/* snapshot_tree.c - copies a directory to a private tmpfs, up to a limit, for file systems that
 * cannot be idmapped. The copy contains files, directories and symlinks; sockets, FIFOs and devices
 * are left out. Every uid can read the copy, but it is mounted (read-only) into only one
 * sandbox. */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/entries.h"
#include "os/mount.h"
#include "sandbox/sources.h"

#define MAX_SNAPSHOT_DEPTH 64

struct snapshot {
	uint64_t bytes;
	unsigned files;
	const char *name;
};

static int fail_snapshot(struct ssb_error *err, const struct snapshot *s, const char *what)
{
	return ssb_fail(err, SSB_E_LAYER, errno, "mounts",
	                "'%.160s' cannot be idmapped, and copying it failed: %s", s->name, what);
}

static int count_file(struct snapshot *s, uint64_t bytes, struct ssb_error *err)
{
	s->files++;
	s->bytes += bytes;
	if (s->files > MAX_SNAPSHOT_FILES || s->bytes > MAX_SNAPSHOT_BYTES) {
		errno = EFBIG;
		return fail_snapshot(err, s,
		                     "it is too large; start skillsandbox as an unprivileged user");
	}
	return 0;
}

static int copy_file(struct snapshot *s, int from_dir, const char *name, int to_dir,
                     struct ssb_error *err)
{
	struct stat st;
	/* O_NONBLOCK: if the regular file was replaced by a FIFO, the open must not block. */
	auto_fd from = openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (from < 0 || fstat(from, &st) != 0) {
		return fail_snapshot(err, s, "cannot open a file");
	}
	if (!S_ISREG(st.st_mode)) {
		return 0;
	}
	if (count_file(s, (uint64_t)st.st_size, err) != 0) {
		return -1;
	}
	/* O_EXCL and O_NOFOLLOW: root writes here. If the directory lists a name twice, the first
	 * copy may be a symlink, which must not be followed. */
	auto_fd to =
	        openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0) {
		return fail_snapshot(err, s, "cannot create a file");
	}
	/* Copy at most as many bytes as were counted for the limit, even if the file grows
	 * meanwhile. */
	for (off_t left = st.st_size; left > 0;) {
		ssize_t n = sendfile(to, from, NULL, (size_t)left);
		if (n < 0) {
			return fail_snapshot(err, s, "cannot copy a file");
		}
		if (n == 0) {
			break;
		}
		left -= n;
	}
	return fchmod(to, 0444 | ((st.st_mode & 0100) != 0 ? 0111 : 0)) != 0
	               ? fail_snapshot(err, s, "chmod")
	               : 0;
}

static int copy_link(struct snapshot *s, int from_dir, const char *name, int to_dir,
                     struct ssb_error *err)
{
	char to[PATH_MAX];
	ssize_t n = readlinkat(from_dir, name, to, sizeof(to) - 1);

	if (n < 0) {
		return fail_snapshot(err, s, "readlink");
	}
	to[n] = '\0';
	if (count_file(s, (uint64_t)n, err) != 0) {
		return -1;
	}
	return symlinkat(to, to_dir, name) != 0 ? fail_snapshot(err, s, "symlink") : 0;
}

static int copy_dir(struct snapshot *s, int from, int to, unsigned depth, struct ssb_error *err)
{
	auto_dir dir = entries_open(from, ".");

	if (dir == NULL || depth > MAX_SNAPSHOT_DEPTH) {
		return fail_snapshot(err, s, "cannot read a directory");
	}
	for (const struct dirent *e; (e = entries_of(dir)) != NULL;) {
		struct stat st;
		int r = 0;

		if (fstatat(from, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
			continue; /* removed meanwhile */
		}
		if (S_ISREG(st.st_mode)) {
			r = copy_file(s, from, e->d_name, to, err);
		} else if (S_ISLNK(st.st_mode)) {
			r = copy_link(s, from, e->d_name, to, err);
		} else if (S_ISDIR(st.st_mode)) {
			auto_fd sub = openat(from, e->d_name,
			                     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			if (sub < 0 || mkdirat(to, e->d_name, 0755) != 0 ||
			    fchmodat(to, e->d_name, 0755, 0) != 0 || count_file(s, 0, err) != 0) {
				return fail_snapshot(err, s, "cannot copy a directory");
			}
			auto_fd sub_to = openat(to, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			r = sub_to < 0 ? fail_snapshot(err, s, "cannot open a directory")
			               : copy_dir(s, sub, sub_to, depth + 1, err);
		}
		if (r != 0) {
			return -1;
		}
	}
	return 0;
}

int snapshot_tree(int fd, const char *name, struct ssb_error *err)
{
	static const struct mount_option options[] = { { "mode", "0755" }, { NULL, NULL } };
	struct snapshot s = { .name = name };
	struct stat st;
	auto_fd tree = mount_new("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);

	assert(fd >= 0 && name != NULL);
	if (tree < 0 || fstat(fd, &st) != 0) {
		return fail_snapshot(err, &s, "tmpfs");
	}
	if (!S_ISDIR(st.st_mode)) {
		errno = EOPNOTSUPP;
		return fail_snapshot(err, &s,
		                     "only a directory can be copied; grant the file's directory");
	}
	if (copy_dir(&s, fd, tree, 0, err) != 0) {
		return -1;
	}
	if (mount_restrict(tree, MOUNT_ATTR_RDONLY, -1) != 0) {
		return fail_snapshot(err, &s, "read-only");
	}
	return steal_fd(&tree);
}
