/* file.c - opens, reads and writes files whose path other users cannot redirect. */
#include "os/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "os/clock.h"

#define LOCK_PAUSE_US 250L
#define MAX_LINKS     40 /* symlinks in one path; the kernel has the same limit */
/* How often to repeat openat2() after EAGAIN. With RESOLVE_BENEATH or RESOLVE_IN_ROOT, a path with
 * ".." fails with EAGAIN if anything on the machine is renamed or mounted at that time. A file with
 * a lease fails with EAGAIN for up to 45 s. */
#define OPEN_TRIES 100

int file_openat2(int dir_fd, const char *path, int flags, uint64_t resolve)
{
	struct open_how how = { .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
		                .resolve = resolve };
	bool scoped = (resolve & (RESOLVE_BENEATH | RESOLVE_IN_ROOT)) != 0;
	long fd = -1;

	for (int tries = 0; tries < OPEN_TRIES; tries++) {
		fd = syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
		if (fd >= 0 || (errno != EINTR && (errno != EAGAIN || !scoped))) {
			break;
		}
	}
	return (int)fd;
}

int file_open_nosymlink(const char *path, int flags)
{
	return file_openat2(AT_FDCWD, path, flags, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

/* True for an absolute path that consists only of names: no "//", ".", ".." or final "/". */
static bool is_plain(const char *path)
{
	size_t n = 0;

	while (*path == '/') {
		n = strcspn(++path, "/");
		if (n == 0 || (n <= 2 && strspn(path, ".") == n)) {
			return false;
		}
		path += n;
	}
	return n > 0;
}

int file_open_real(const char *path, int flags)
{
	return is_plain(path) ? file_open_nosymlink(path, flags) : -1;
}

ssize_t file_path(int fd, char *out, size_t size)
{
	char link[32];

	assert(size > 0);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, out, size);
	if (n >= (ssize_t)size) {
		errno = ENAMETOOLONG;
		n = -1;
	}
	out[n > 0 ? n : 0] = '\0';
	return n;
}

bool file_system_full(int fd)
{
	const uint64_t little = 16384; /* a program may need several blocks at once */
	struct statfs fs;

	return fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_blocks > 0 &&
	       ((uint64_t)fs.f_bfree * (uint64_t)fs.f_bsize < little ||
	        (fs.f_files > 0 && fs.f_ffree == 0));
}

int file_lock(int fd, unsigned wait_ms)
{
	const struct timespec pause = { .tv_nsec = LOCK_PAUSE_US * 1000 };
	const uint64_t deadline = clock_us() + wait_ms * UINT64_C(1000);

	assert(fd >= 0);
	for (;;) {
		int rc = flock(fd, LOCK_EX | LOCK_NB);
		if (rc == 0 || (errno != EWOULDBLOCK && errno != EINTR) || clock_us() >= deadline) {
			return rc;
		}
		(void)nanosleep(&pause, NULL);
	}
}

void file_limit_raise(uint64_t most)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < most) {
		files.rlim_cur = files.rlim_max < most ? files.rlim_max : most;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
}

int file_read_all(int fd, struct buf *out)
{
	char chunk[8192];

	for (;;) {
		ssize_t n = read(fd, chunk, sizeof(chunk));
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n <= 0) {
			return (int)n;
		}
		buf_add(out, chunk, (size_t)n);
		if (out->failed) {
			errno = EFBIG;
			return -1;
		}
	}
}

int file_check_owned(int fd, uid_t uid, const char *what, const char *file, struct ssb_error *err)
{
	struct stat st;

	assert(fd >= 0 && what != NULL && file != NULL);
	if (fstat(fd, &st) < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, file, "cannot examine the %s", what);
	}
	if (!S_ISREG(st.st_mode)) {
		return ssb_fail(err, SSB_E_POLICY, 0, file, "the %s is not a regular file", what);
	}
	if (st.st_uid != uid && st.st_uid != 0) {
		return ssb_fail(err, SSB_E_POLICY, 0, file,
		                "the %s belongs to uid %u; it must be yours or root's", what,
		                (unsigned)st.st_uid);
	}
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
		return ssb_fail(err, SSB_E_POLICY, 0, file,
		                "others can write the %s; run: chmod go-w '%s'", what, file);
	}
	return 0;
}

int file_write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len > 0) {
		ssize_t n = write(fd, p, len);
		if (n < 0) {
			if (errno == EINTR) {
				continue;
			}
			return -1;
		}
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Opens the directory, or makes it if only the last part is missing, which is the usual case. */
static int file_mkdir_last(const char *path)
{
	const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
	int fd = open(path, flags);

	if (fd >= 0 || errno != ENOENT || (mkdir(path, 0700) != 0 && errno != EEXIST)) {
		return fd;
	}
	return open(path, flags);
}

int file_mkdirs(const char *path)
{
	auto_fd dir = file_mkdir_last(path);
	if (dir >= 0) {
		return steal_fd(&dir);
	}
	dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char part[256];
	bool made = false;

	while (dir >= 0) {
		path += strspn(path, "/");
		size_t n = strcspn(path, "/");
		if (n == 0) {
			return steal_fd(&dir);
		}
		if (n >= sizeof(part)) {
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(part, path, n);
		part[n] = '\0';
		path += n;
		int refused = mkdirat(dir, part, 0700) == 0 ? 0 : errno;
		if (refused == 0) {
			made = true;
		} else if (refused != EEXIST && refused != EROFS && refused != EACCES &&
		           refused != EPERM) {
			return -1;
		}
		/* A part that existed before may be a symlink that the owner made. From the first
		 * part on that this loop makes, symlinks are not followed: another process may have
		 * put one in the place of the new directory. */
		int next = openat(dir, part,
		                  O_PATH | O_DIRECTORY | O_CLOEXEC | (made ? O_NOFOLLOW : 0));
		if (next < 0) {
			/* If the directory does not exist, report why it could not be made. */
			errno = errno == ENOENT && refused != 0 ? refused : errno;
			return -1;
		}
		own_close(&dir);
		dir = next;
	}
	return -1;
}

int file_replace(const char *path, const void *data, size_t len, mode_t mode)
{
	auto_free char *part = NULL;

	if (asprintf(&part, "%s.XXXXXX", path) < 0) {
		part = NULL;
		errno = ENOMEM;
		return -1;
	}
	auto_fd fd = mkostemp(part, O_CLOEXEC);
	if (fd < 0) {
		return -1;
	}
	if (file_write_all(fd, data, len) != 0 || fchmod(fd, mode) != 0 || fsync(fd) != 0 ||
	    rename(part, path) != 0) {
		int e = errno;
		(void)unlink(part);
		errno = e;
		return -1;
	}
	return 0;
}

bool file_is_link_to(int dir_fd, const char *name, const char *to)
{
	char found[PATH_MAX];
	ssize_t n = readlinkat(dir_fd, name, found, sizeof(found));

	return n >= 0 && (size_t)n == strlen(to) && memcmp(found, to, (size_t)n) == 0;
}

size_t file_first_symlink(int dir_fd, const char *path)
{
	char part[PATH_MAX];
	struct stat st;

	for (size_t i = path[0] != '\0'; i > 0 && i < sizeof(part); i++) {
		if (path[i] != '/' && path[i] != '\0') {
			continue;
		}
		snprintf(part, sizeof(part), "%.*s", (int)i, path);
		if (fstatat(dir_fd, part, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode)) {
			return i;
		}
		if (path[i] == '\0') {
			break;
		}
	}
	return 0;
}

/* True if no skill can have made the symlink `link` in the directory `dir`. Neither path contains a
 * symlink before its last part. */
static bool is_no_skills(const char *dir, const char *link)
{
	struct stat st, of_dir;

	return strcmp(dir, "/") == 0 ||
	       (geteuid() != 0 && lstat(link, &st) == 0 && stat(dir, &of_dir) == 0 &&
	        st.st_uid == 0 && of_dir.st_uid == 0 &&
	        (of_dir.st_mode & (S_IWGRP | S_IWOTH)) == 0);
}

/* Appends the first `len` bytes of `left`, which are one name, to the path `at`. Returns false if
 * the path gets too long. */
static bool add_name(char at[PATH_MAX], const char *left, size_t len)
{
	size_t n = strcmp(at, "/") == 0 ? 0 : strlen(at);

	if (len == 0 || (len == 1 && left[0] == '.')) {
		return true;
	}
	if (len == 2 && memcmp(left, "..", 2) == 0) {
		char *slash = strrchr(at, '/');
		slash[slash == at] = '\0';
		return true;
	}
	int put = snprintf(at + n, PATH_MAX - n, "/%.*s", (int)len, left);
	return put > 0 && (size_t)put < PATH_MAX - n;
}

char *file_follow_fixed(const char *path)
{
	char at[PATH_MAX] = "/"; /* the part that is resolved already; contains no symlink */
	char dir[PATH_MAX], to[PATH_MAX];
	auto_free char *whole = strdup(path);
	const char *left = whole;
	unsigned links = 0;

	while (left != NULL && *(left += strspn(left, "/")) != '\0') {
		size_t len = strcspn(left, "/");
		memcpy(dir, at, sizeof(dir));
		if (!add_name(at, left, len)) {
			return strdup(path);
		}
		left += len;
		ssize_t n = readlink(at, to, sizeof(to) - 1);
		if (n <= 0) {
			continue;
		}
		to[n] = '\0';
		char *rest = NULL;
		if (links++ == MAX_LINKS || !is_no_skills(dir, at)) {
			return asprintf(&rest, "%s%s", at, left) < 0 ? NULL : rest;
		}
		if (asprintf(&rest, "%s%s", to, left) < 0) {
			return NULL;
		}
		free(whole);
		left = whole = rest;
		memcpy(at, to[0] == '/' ? "/" : dir, to[0] == '/' ? 2 : sizeof(at));
	}
	return left != NULL ? strdup(at) : NULL;
}

uid_t file_closed_by(int dir_fd, const char *path)
{
	char part[PATH_MAX];
	struct stat st;
	int saved = errno;
	uid_t owner = fstatat(dir_fd, "", &st, AT_EMPTY_PATH) == 0 ? st.st_uid : geteuid();

	for (size_t i = path[0] != '\0'; i > 0 && i < sizeof(part); i++) {
		if (path[i] != '/' && path[i] != '\0') {
			continue;
		}
		snprintf(part, sizeof(part), "%.*s", (int)i, path);
		if (fstatat(dir_fd, part, &st, 0) != 0) {
			break;
		}
		owner = st.st_uid;
		if (path[i] == '\0') {
			break;
		}
	}
	errno = saved;
	return owner;
}

int file_close_others(unsigned from, const int *keep, size_t n)
{
	for (;;) {
		unsigned next = ~0U; /* the lowest kept fd that is not below `from` */
		for (size_t i = 0; i < n; i++) {
			if (keep[i] >= 0 && (unsigned)keep[i] >= from && (unsigned)keep[i] < next) {
				next = (unsigned)keep[i];
			}
		}
		if (next == ~0U) {
			return close_range(from, ~0U, 0);
		}
		if (next > from && close_range(from, next - 1, 0) != 0) {
			return -1;
		}
		from = next + 1;
	}
}
