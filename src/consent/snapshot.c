/* snapshot.c - a copy of the approved bytes: state_dir/snapshots/<tree>.
 *
 * The copy is written under another name, and each byte is checked against the digests as it is
 * written. Then the copy is synced to the disk and renamed: a snapshot is complete or does not
 * exist. Its files are read-only, so that even its owner does not change it by accident. A skill
 * can reach it only as its own /skill, read-only.
 *
 * A snapshot that was changed later (a name, a size, a mode, a link, an owner) is not used. It is
 * made again, and the new snapshot replaces the changed one in one step. */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/own.h"
#include "consent/lock.h"
#include "os/entries.h"
#include "os/file.h"
#include "os/tree.h"
#include "policy/path.h"

#define DIR_NAME   "snapshots"
#define SWEPT_NAME "snapshots.swept" /* an empty file; its time is the time of the last sweep */
#define HEX_BYTES  (2 * (size_t)SHA256_BYTES)
#define COPY_BYTES ((size_t)128 * 1024)
#define BENEATH    (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)
#define WHERE      "snapshot"
#define DIR_MODE   0555

/* A snapshot without an approval is kept for this long after its last use: a run may still use
 * it. */
#define IDLE_SECONDS (24 * 3600)

struct copying {
	int from;
	int to;
	char *chunk;
	const struct skill_file *file;
	struct ssb_error *err;
};

char *snapshot_path(const struct owner *o, const struct skill_files *p)
{
	char name[sizeof(DIR_NAME "/") + HEX_BYTES] = DIR_NAME "/";

	hex_encode(p->tree, sizeof(p->tree), name + strlen(name));
	return path_join(o->state_dir, name);
}

/* ---- one file ------------------------------------------------------------------- */

static int fail_changed(const struct copying *c)
{
	return ssb_fail(c->err, SSB_E_POLICY, 0, "skill",
	                "'%.200s' changed while it was copied; look at the skill again",
	                c->file->path);
}

/* Makes the directories above the last part of a path. Returns an fd of the last of them, or

 * -1. */
static int open_parent(int root, const char *path, const char **ret_name)
{
	auto_fd dir = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char part[NAME_MAX + 1];

	for (const char *end = strchr(path, '/'); dir >= 0 && end != NULL;
	     end = strchr(path, '/')) {
		size_t n = (size_t)(end - path);
		if (n >= sizeof(part)) {
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(part, path, n);
		part[n] = '\0';
		if (mkdirat(dir, part, 0700) != 0 && errno != EEXIST) {
			return -1;
		}
		int next = openat(dir, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		own_close(&dir);
		dir = next;
		path = end + 1;
	}
	*ret_name = path;
	return steal_fd(&dir);
}

/* Copies a file, and hashes each byte as it is written, so that the copy is exactly what was
 * approved. */
static int copy_bytes(const struct copying *c, int in, int out)
{
	uint8_t hash[SHA256_BYTES];
	uint64_t done = 0;
	struct sha256 s;

	sha256_init(&s);
	for (;;) {
		ssize_t n = read(in, c->chunk, COPY_BYTES);
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n < 0) {
			return ssb_fail(c->err, SSB_E_SYS, errno, WHERE, "read '%.200s'",
			                c->file->path);
		}
		done += (uint64_t)n;
		if (n == 0 || done > c->file->size) {
			break;
		}
		sha256_update(&s, c->chunk, (size_t)n);
		if (file_write_all(out, c->chunk, (size_t)n) != 0) {
			return ssb_fail(c->err, SSB_E_SYS, errno, WHERE, "write '%.200s'",
			                c->file->path);
		}
	}
	sha256_final(&s, hash);
	return done == c->file->size && memcmp(hash, c->file->sha256, sizeof(hash)) == 0
	               ? 0
	               : fail_changed(c);
}

static int copy_regular(const struct copying *c, int parent, const char *name)
{
	auto_fd in =
	        file_openat2(c->from, c->file->path, O_RDONLY | O_NONBLOCK | O_NOCTTY, BENEATH);
	struct stat st;

	if (in < 0 || fstat(in, &st) != 0 || !S_ISREG(st.st_mode)) {
		return fail_changed(c);
	}
	auto_fd out =
	        openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (out < 0) {
		return ssb_fail(c->err, SSB_E_SYS, errno, WHERE, "make '%.200s'", c->file->path);
	}
	if (copy_bytes(c, in, out) != 0) {
		return -1;
	}
	return fchmod(out, skill_file_mode(c->file)) == 0
	               ? 0
	               : ssb_fail(c->err, SSB_E_SYS, errno, WHERE, "'%.200s'", c->file->path);
}

static int copy_one(const struct copying *c)
{
	const char *name = NULL;
	auto_fd parent = open_parent(c->to, c->file->path, &name);

	if (parent < 0 || (c->file->link != NULL && symlinkat(c->file->link, parent, name) != 0)) {
		return ssb_fail(c->err, SSB_E_SYS, errno, WHERE, "make '%.200s'", c->file->path);
	}
	if (c->file->dir) {
		return mkdirat(parent, name, 0700) == 0 ? 0
		                                        : ssb_fail(c->err, SSB_E_SYS, errno, WHERE,
		                                                   "make '%.200s'", c->file->path);
	}
	return c->file->link != NULL ? 0 : copy_regular(c, parent, name);
}

/* ---- directories ---------------------------------------------------------------- */

/* Makes the directory and all directories beneath it read-only. Takes fd_in. */
static int protect_tree(int fd_in, int depth)
{
	auto_fd fd = fd_in;
	auto_dir dir = depth < MAX_SKILL_DEPTH + 2 ? entries_open(fd, ".") : NULL;
	int failed = 0;

	if (dir == NULL) {
		return -1;
	}
	for (const struct dirent *d; failed == 0 && (d = entries_of(dir)) != NULL;) {
		int sub = openat(fd, d->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		failed = sub >= 0 ? protect_tree(sub, depth + 1) : 0;
	}
	return failed == 0 ? fchmod(fd, DIR_MODE) : failed;
}

static int fill_copy(const char *dir, const struct skill_files *p, int to, struct ssb_error *err)
{
	auto_free char *chunk = malloc(COPY_BYTES);
	auto_fd from = file_open_nosymlink(dir, O_PATH | O_DIRECTORY);
	struct copying c = { .from = from, .to = to, .chunk = chunk, .err = err };

	if (chunk == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, WHERE, "out of memory");
	}
	if (from < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, WHERE, "'%.200s'", dir);
	}
	for (size_t i = 0; i < p->n; i++) {
		c.file = &p->v[i];
		if (copy_one(&c) != 0) {
			return -1;
		}
	}
	int again = openat(to, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (again < 0 || protect_tree(again, 0) != 0 || syncfs(to) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, WHERE,
		                "cannot protect the copy of the skill");
	}
	return 0;
}

/* ---- the directory of all snapshots --------------------------------------------- */

static int open_all(const struct owner *o, struct ssb_error *err)
{
	auto_free char *path = path_join(o->state_dir, DIR_NAME);
	auto_fd at = path != NULL ? file_mkdirs(path) : -1;
	int fd = at >= 0 ? openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	return fd >= 0 ? fd : ssb_fail(err, SSB_E_SYS, errno, WHERE, "%s/" DIR_NAME, o->state_dir);
}

/* ---- is it as it was made? ------------------------------------------------------- */

struct check {
	const struct skill_files *p;
	size_t found;
	bool good;
};

static int by_path(const void *key, const void *file)
{
	return strcmp(key, ((const struct skill_file *)file)->path);
}

static int by_parent(const void *key, const void *file)
{
	const char *path = ((const struct skill_file *)file)->path;
	size_t n = strlen(key);
	int order = strncmp(key, path, n);

	return order != 0 ? order : path[n] == '/' ? 0 : '/' < (unsigned char)path[n] ? -1 : 1;
}

static const struct skill_file *find_file(const struct skill_files *p, const char *path,
                                          int (*order)(const void *, const void *))
{
	return p->n == 0 ? NULL : bsearch(path, p->v, p->n, sizeof(*p->v), order);
}

static bool same_link(const struct tree_entry *e, const char *link)
{
	char text[MAX_PATH_BYTES];
	ssize_t n = readlinkat(e->dir, e->name, text, sizeof(text));

	return n >= 0 && (size_t)n == strlen(link) && memcmp(text, link, (size_t)n) == 0;
}

static bool is_unchanged(const struct skill_file *f, const struct tree_entry *e)
{
	const mode_t mode = e->st.st_mode & 07777;

	if (f->dir || f->link != NULL) {
		return f->dir ? S_ISDIR(e->st.st_mode) && mode == DIR_MODE
		              : S_ISLNK(e->st.st_mode) && same_link(e, f->link);
	}
	return S_ISREG(e->st.st_mode) && mode == skill_file_mode(f) &&
	       (uint64_t)e->st.st_size == f->size;
}

/* Checks one entry of a copy. A directory that is not in the list is good only if it contains a
 * file that is in the list. */
static bool check_one(void *arg, const struct tree_entry *e)
{
	struct check *c = arg;
	const struct skill_file *f = find_file(c->p, e->path, by_path);
	bool good = e->st.st_uid == geteuid();

	if (f != NULL) {
		good = good && is_unchanged(f, e);
		c->found++;
	} else {
		good = good && S_ISDIR(e->st.st_mode) && (e->st.st_mode & 07777) == DIR_MODE &&
		       find_file(c->p, e->path, by_parent) != NULL;
	}
	c->good = c->good && good;
	return c->good;
}

/* Returns true if the copy is unchanged. A directory of another user is not accepted, whatever it
 * contains. */
static bool is_whole(int all, const char *name, const struct skill_files *p)
{
	const struct tree_caps caps = { .entries = (size_t)MAX_PINNED_FILES + MAX_PINNED_DIRS,
		                        .depth = MAX_SKILL_DEPTH + 2 };
	auto_fd fd = openat(all, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct check c = { .p = p, .good = true };
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
	       (st.st_mode & 07777) == DIR_MODE && tree_walk(fd, &caps, check_one, &c) && c.good &&
	       c.found == p->n;
}

/* Marks the copy as used until `seconds` from now, by setting its time (see snapshot_sweep()).
 * Never shortens the time that another run has set. */
static bool touch_copy(int all, const char *name, uint64_t seconds)
{
	auto_fd fd = openat(all, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_nsec = 0 } };
	const time_t now = time(NULL);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0) {
		return false;
	}
	times[1].tv_sec = now + (time_t)seconds;
	return (st.st_mtim.tv_sec > times[1].tv_sec &&
	        st.st_mtim.tv_sec <= now + MAX_RUNTIME_SECONDS) ||
	       futimens(fd, times) == 0;
}

/* ---- making a snapshot ----------------------------------------------------------- */

/* Gives the copy its final name, and replaces a damaged copy there. If another process has
 * made the same snapshot meanwhile, the snapshot of that process stays, because it may be in
 * use. */
static int put_in_place(int all, const char *part, const char *name, const struct skill_files *p,
                        struct ssb_error *err)
{
	if (renameat(all, part, all, name) == 0 || is_whole(all, name, p) ||
	    renameat2(all, part, all, name, RENAME_EXCHANGE) == 0) {
		return 0;
	}
	return ssb_fail(err, SSB_E_SYS, errno, WHERE, "cannot put the copy in place");
}

static int make_copy(int all, const char *dir, const struct skill_files *p, const char *name,
                     struct ssb_error *err)
{
	char part[HEX_BYTES + 32];

	snprintf(part, sizeof(part), ".new-%d-%.16s", (int)getpid(), name);
	(void)tree_remove(all, part);
	auto_fd to = mkdirat(all, part, 0700) == 0
	                     ? openat(all, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
	                     : -1;
	if (to < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, WHERE, "cannot make a copy of the skill");
	}
	int failed = fill_copy(dir, p, to, err);
	failed = failed == 0 ? put_in_place(all, part, name, p, err) : failed;
	/* At the name `part` there is now a failed copy, a damaged one or a duplicate. */
	(void)tree_remove(all, part);
	return failed;
}

bool snapshot_fits(const struct skill_files *p)
{
	return p->bytes <= SNAPSHOT_BYTES;
}

int snapshot_make(const struct owner *o, const char *dir, const struct skill_files *p,
                  bool *ret_kept, struct ssb_error *err)
{
	char name[HEX_BYTES + 1];

	assert(dir[0] == '/' && (p->n == 0 || p->v != NULL));
	if (!snapshot_fits(p)) {
		*ret_kept = false;
		return 0;
	}
	auto_fd all = open_all(o, err);
	hex_encode(p->tree, sizeof(p->tree), name);
	if (all < 0 || (!is_whole(all, name, p) && make_copy(all, dir, p, name, err) != 0)) {
		return -1;
	}
	(void)touch_copy(all, name, 0);
	*ret_kept = true;
	return 0;
}

bool snapshot_there(const struct owner *o, const struct skill_files *p)
{
	char name[HEX_BYTES + 1];
	struct ssb_error none = { 0 };
	auto_fd all = open_all(o, &none);

	hex_encode(p->tree, sizeof(p->tree), name);
	return all >= 0 && is_whole(all, name, p) && touch_copy(all, name, 0);
}

void snapshot_hold(const struct owner *o, const struct skill_files *p, uint64_t seconds)
{
	char name[HEX_BYTES + 1];
	struct ssb_error none = { 0 };
	auto_fd all = open_all(o, &none);

	hex_encode(p->tree, sizeof(p->tree), name);
	if (all >= 0) {
		(void)touch_copy(all, name, seconds);
	}
}

/* ---- the sweep ------------------------------------------------------------------ */

static bool is_idle(int all, const char *name, const struct lock_list *locks)
{
	char hex[HEX_BYTES + 1];
	struct stat st;

	if (strncmp(name, ".new-", 5) != 0 &&
	    (strlen(name) != HEX_BYTES || strspn(name, "0123456789abcdef") != HEX_BYTES)) {
		return false; /* neither a snapshot nor a copy that is being made */
	}
	for (size_t i = 0; i < locks->n; i++) {
		hex_encode(locks->v[i].files.tree, SHA256_BYTES, hex);
		if (strcmp(hex, name) == 0) {
			return false;
		}
	}
	return fstatat(all, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
	       st.st_mtim.tv_sec < time(NULL) - IDLE_SECONDS;
}

int snapshot_sweep(const struct owner *o, struct ssb_error *err)
{
	AUTO(lock_list_done) struct lock_list locks = { 0 };
	auto_fd all = open_all(o, err);

	if (all < 0 || lock_list(o, &locks, err) != 0) {
		return -1;
	}
	/* A damaged approval names no snapshot. But an approval that cannot be read now may
	 * name any snapshot, so no snapshot is removed then. */
	for (size_t i = 0; i < locks.n_bad; i++) {
		if (locks.bad[i].why.code != SSB_E_POLICY) {
			*err = locks.bad[i].why;
			return -1;
		}
	}
	auto_dir dir = entries_open(all, ".");
	if (dir == NULL) {
		return ssb_fail(err, SSB_E_SYS, errno, WHERE, "list the copies");
	}
	for (const struct dirent *d; (d = entries_of(dir)) != NULL;) {
		if (is_idle(all, d->d_name, &locks)) {
			(void)tree_remove(all, d->d_name);
		}
	}
	return 0;
}

/* Called by other commands than approve and revoke, too, because the owner may never use these
 * again. */
void snapshot_tidy(const struct owner *o)
{
	auto_free char *path = path_join(o->state_dir, SWEPT_NAME);
	struct ssb_error none = { 0 };
	const time_t now = time(NULL);
	struct stat st;

	/* A time in the future does not count: it was set while the clock was wrong. */
	if (path == NULL || (lstat(path, &st) == 0 && st.st_mtim.tv_sec <= now &&
	                     st.st_mtim.tv_sec > now - IDLE_SECONDS)) {
		return;
	}
	/* If the time cannot be stored, there is no sweep: otherwise every run would sweep. */
	auto_fd fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd >= 0 && futimens(fd, NULL) == 0) {
		(void)snapshot_sweep(o, &none);
	}
}
