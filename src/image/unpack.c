/* unpack.c - the writer: executes the steps that a layer's reader sends. A hostile image may have
 * taken over the reader. So the kernel resolves every name as if the directory were the root
 * (RESOLVE_IN_ROOT), so that no symlink leads out of it, and only plain files, directories and
 * symlinks are opened or made. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "image/layer.h"
#include "os/file.h"
#include "os/tree.h"

#define IN_ROOT (RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS)

static int fail_unpack(struct ssb_error *err, const char *what, const char *name)
{
	return ssb_fail(err, SSB_E_SYS, errno, "image", "%s '%.200s'", what, name);
}

static int refuse_entry(struct ssb_error *err, const char *why, const char *name)
{
	return ssb_fail(err, SSB_E_MANIFEST, 0, "image", "the image contains '%.200s', %s", name,
	                why);
}

/* True for "a/b": no empty part, no "." and no "..". */
static bool is_clean(const char *name)
{
	unsigned depth = 0;

	do {
		size_t n = strcspn(name, "/");
		if (n == 0 || n > NAME_MAX || (n == 1 && name[0] == '.') ||
		    (n == 2 && name[0] == '.' && name[1] == '.') || ++depth > MAX_IMAGE_DEPTH) {
			return false;
		}
		name += n;
	} while (*name++ == '/');
	return true;
}

/* Opens the directory that contains `name`. Makes it and its parents if they are missing, as far as
 * left->files allows (NULL: makes none). Returns a new fd, or -1 with errno. */
static int parent_of(int root_fd, const char *name, struct unpack_left *left)
{
	const char *slash = strrchr(name, '/');
	char part[PATH_MAX] = ".";

	if (slash != NULL) {
		snprintf(part, sizeof(part), "%.*s", (int)(slash - name), name);
	}
	int fd = file_openat2(root_fd, part, O_PATH | O_DIRECTORY, IN_ROOT);
	if (fd >= 0 || errno != ENOENT || left == NULL) {
		return fd;
	}
	auto_fd up = parent_of(root_fd, part, left);
	const char *base = strrchr(part, '/');
	if (up < 0 || left->files == 0 ||
	    (mkdirat(up, base != NULL ? base + 1 : part, 0755) != 0)) {
		return -1;
	}
	left->files--;
	return file_openat2(root_fd, part, O_PATH | O_DIRECTORY, IN_ROOT);
}

/* True if the directory is nested so deeply that it could not be removed again. Because of symlinks
 * it can be nested more deeply than its name says. */
static bool is_deep(int root_fd, int fd)
{
	char root[PATH_MAX], at[PATH_MAX];
	unsigned depth = 0;
	ssize_t n = file_path(root_fd, root, sizeof(root));
	ssize_t m = file_path(fd, at, sizeof(at));

	if (n < 0 || m < n) {
		return true; /* the path is longer than PATH_MAX */
	}
	for (ssize_t i = n; i < m; i++) {
		depth += at[i] == '/';
	}
	return depth > MAX_IMAGE_DEPTH;
}

static const char *base_of(const char *name)
{
	const char *slash = strrchr(name, '/');

	return slash != NULL ? slash + 1 : name;
}

static int make_dir(int parent, const char *base, const char *name, struct ssb_error *err)
{
	struct stat st;

	if (fstatat(parent, base, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (S_ISDIR(st.st_mode)) {
			return 0;
		}
		if (unlinkat(parent, base, 0) != 0) {
			return fail_unpack(err, "cannot replace", name);
		}
	}
	return mkdirat(parent, base, 0755) != 0 ? fail_unpack(err, "cannot make", name) : 0;
}

static int copy_bytes(int from, int to, uint64_t size)
{
	char chunk[16 * 1024];

	while (size > 0) {
		size_t n = size < sizeof(chunk) ? (size_t)size : sizeof(chunk);
		ssize_t got = read(from, chunk, n);
		if (got <= 0) {
			if (got < 0 && errno == EINTR) {
				continue;
			}
			errno = got == 0 ? EIO : errno;
			return -1;
		}
		if (file_write_all(to, chunk, (size_t)got) != 0) {
			return -1;
		}
		size -= (uint64_t)got;
	}
	return 0;
}

static int make_file(int parent, const struct step *s, const char *base, const char *name, int from,
                     struct unpack_left *left, struct ssb_error *err)
{
	if (s->size > left->bytes) {
		return ssb_fail(
		        err, SSB_E_LIMIT, 0, "image",
		        "the image is larger than the limit of %llu MiB when it is unpacked",
		        (unsigned long long)(MAX_IMAGE_BYTES >> 20));
	}
	left->bytes -= s->size;
	auto_fd fd =
	        openat(parent, base, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || copy_bytes(from, fd, s->size) != 0 ||
	    fchmod(fd, s->executable != 0 ? 0755 : 0644) != 0) {
		return fail_unpack(err, "cannot write", name);
	}
	return 0;
}

static int make_hard(int root_fd, int parent, const char *base, const char *name, const char *to,
                     struct ssb_error *err)
{
	struct stat st;

	if (!is_clean(to)) {
		return refuse_entry(
		        err, "which is a hard link to a name that leads out of the image", name);
	}
	auto_fd dir = parent_of(root_fd, to, NULL);
	if (dir < 0 || fstatat(dir, base_of(to), &st, AT_SYMLINK_NOFOLLOW) != 0 ||
	    !S_ISREG(st.st_mode)) {
		return refuse_entry(
		        err, "which is a hard link to something that is not a file of the image",
		        name);
	}
	return linkat(dir, base_of(to), parent, base, 0) != 0
	               ? fail_unpack(err, "cannot link", name)
	               : 0;
}

static int take_away(int root_fd, const struct step *s, const char *name, struct ssb_error *err)
{
	if (s->kind == STEP_EMPTY) {
		auto_fd dir = file_openat2(root_fd, *name != '\0' ? name : ".",
		                           O_RDONLY | O_DIRECTORY, IN_ROOT);
		return dir >= 0 && tree_empty(dir) != 0 ? fail_unpack(err, "cannot empty", name)
		                                        : 0;
	}
	auto_fd parent = parent_of(root_fd, name, NULL);
	return parent >= 0 && tree_remove(parent, base_of(name)) != 0
	               ? fail_unpack(err, "cannot remove", name)
	               : 0;
}

static int too_many(struct ssb_error *err)
{
	return ssb_fail(err, SSB_E_LIMIT, 0, "image",
	                "the image has more files than the limit of %llu",
	                (unsigned long long)MAX_IMAGE_FILES);
}

static int make_one(int root_fd, const struct step *s, const char *name, const char *link, int from,
                    struct unpack_left *left, struct ssb_error *err)
{
	const char *base = base_of(name);
	auto_fd parent = parent_of(root_fd, name, left);

	if (parent < 0) {
		return left->files == 0 ? too_many(err)
		                        : fail_unpack(err, "cannot make the directory of", name);
	}
	if (is_deep(root_fd, parent)) {
		return refuse_entry(err, "which is nested too deeply", name);
	}
	if (s->kind == STEP_DIR) {
		return make_dir(parent, base, name, err);
	}
	if (s->kind == STEP_HARD && strcmp(name, link) == 0) {
		return 0;
	}
	if (tree_remove(parent, base) != 0) {
		return fail_unpack(err, "cannot replace", name);
	}
	if (s->kind == STEP_FILE) {
		return make_file(parent, s, base, name, from, left, err);
	}
	if (s->kind == STEP_HARD) {
		return make_hard(root_fd, parent, base, name, link, err);
	}
	return *link == '\0' ? refuse_entry(err, "which is a symlink with an empty target", name)
	       : symlinkat(link, parent, base) != 0 ? fail_unpack(err, "cannot link", name)
	                                            : 0;
}

int unpack_step(int root_fd, const struct step *step, const char *name, const char *link, int from,
                struct unpack_left *left, struct ssb_error *err)
{
	bool top = step->kind == STEP_EMPTY && *name == '\0';

	if (step->kind < STEP_DIR || step->kind > STEP_EMPTY || (!top && !is_clean(name))) {
		return refuse_entry(
		        err, "which is a name that leads out of the image, or is nested too deeply",
		        name);
	}
	if (step->kind == STEP_REMOVE || step->kind == STEP_EMPTY) {
		return take_away(root_fd, step, name, err);
	}
	if (left->files == 0) {
		return too_many(err);
	}
	left->files--;
	return make_one(root_fd, step, name, link, from, left, err);
}
