/* pinned.c - every file of a skill, by its digest.
 *
 * Names are opened one by one beneath a held directory, and no symlink is followed; where
 * one leads is asked of the kernel, from the skill's directory on. What has no content
 * that could be pinned (a FIFO, a device, a socket) and what would cost more than it says
 * (a sparse file) is refused with its name: an approval is of all files or of none.
 *
 * The digest of all is the SHA-256 of one entry per file, in the order of their names as
 * bytes:
 *
 *   <kind><mode> <hex> <name> NUL     kind: 'f' a file, 'l' a symlink (of its text),
 *                                     'd' a directory with nothing in it
 *
 * What version control keeps at the top of a skill changes by itself ('git status' writes
 * .git/index) and is no part of the skill: it is neither pinned nor copied. A skill that is
 * too large to be copied runs from its own directory, where it would see it: of such a one
 * all is pinned. Which it is depends on the bytes of the rest alone.
 *
 * Hard links are files like others: what counts is what was read. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "trace/digest_cache.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/own.h"
#include "consent/lock.h"
#include "os/file.h"
#include "skill/skill.h"

#define READ_BYTES ((size_t)128 * 1024)
#define FILE_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
#define WHERE      "skill"

struct walk {
	struct skill_files *out;
	size_t room;
	size_t dirs;
	size_t names; /* bytes */
	int root;
	char *chunk;
	struct digest_cache *cache; /* NULL: everything is read */
	struct marks *marks;        /* NULL: none are wanted */
	int64_t waited;
	char path[MAX_PATH_BYTES]; /* of what is looked at, from the directory on */
	struct ssb_error *err;
};

static int refuse(const struct walk *w, const char *why)
{
	return ssb_fail(w->err, SSB_E_POLICY, 0, WHERE, "'%.200s' %s", w->path, why);
}

static void file_done(struct skill_file *f)
{
	free(f->path);
	free(f->link);
	*f = (struct skill_file){ 0 };
}

void skill_files_done(struct skill_files *p)
{
	for (size_t i = 0; i < p->n; i++) {
		file_done(&p->v[i]);
	}
	free(p->v);
	*p = (struct skill_files){ 0 };
}

static struct skill_file *add(struct walk *w, const struct stat *st, const char *link)
{
	struct skill_files *p = w->out;

	w->names += strlen(w->path) + (link != NULL ? strlen(link) : 0);
	if (p->n == MAX_PINNED_FILES || w->names > MAX_PINNED_PATHS) {
		(void)ssb_fail(
		        w->err, SSB_E_LIMIT, 0, WHERE,
		        "it has more files than can be approved: %d, with %lu bytes of names",
		        MAX_PINNED_FILES, MAX_PINNED_PATHS);
		return NULL;
	}
	if (p->n == w->room) {
		size_t room = w->room < 64 ? 64 : w->room * 2;
		struct skill_file *v = reallocarray(p->v, room, sizeof(*v));
		if (v == NULL) {
			(void)ssb_fail(w->err, SSB_E_NOMEM, 0, WHERE, "out of memory");
			return NULL;
		}
		p->v = v;
		w->room = room;
	}
	struct skill_file *f = &p->v[p->n];
	*f = (struct skill_file){ .path = strdup(w->path),
		                  .link = link != NULL ? strdup(link) : NULL,
		                  .mode = st->st_mode & 07777 };
	if (f->path == NULL || (link != NULL && f->link == NULL)) {
		file_done(f);
		(void)ssb_fail(w->err, SSB_E_NOMEM, 0, WHERE, "out of memory");
		return NULL;
	}
	p->n++;
	return f;
}

/* ---- marks ---------------------------------------------------------------------- */

/* Before its content is read: what comes after that must have another time. All that was
 * there before is old after some waiting; what is young then is being changed. */
static int mark(struct walk *w, const struct stat *st)
{
	int64_t ns = w->marks != NULL ? mark_young(st) : 0;
	struct timespec t = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

	if (ns > MAX_MARK_WAIT - w->waited) {
		return refuse(w, "changed while it was read; try again");
	}
	if (ns > 0) {
		w->waited += ns;
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
	}
	return w->marks == NULL || marks_add(w->marks, w->path[0] != '\0' ? w->path : ".", st) == 0
	               ? 0
	               : ssb_fail(w->err, SSB_E_NOMEM, 0, WHERE, "out of memory");
}

/* ---- a file --------------------------------------------------------------------- */

/* Holes cost the author nothing and whoever copies them everything. A few of a page are in
 * what linkers write; where blocks are compressed there are none. */
static bool is_sparse(int fd, const struct stat *st)
{
	uint64_t there = (uint64_t)st->st_blocks * 512 + MAX_PINNED_HOLES;

	return there < (uint64_t)st->st_size && lseek(fd, 0, SEEK_HOLE) < st->st_size;
}

/* What there was when it was opened, and not a byte more. */
static int hash_content(struct walk *w, int fd, uint64_t size, uint8_t ret[SHA256_BYTES])
{
	struct sha256 s;
	uint64_t done = 0;

	sha256_init(&s);
	for (;;) {
		ssize_t n = read(fd, w->chunk, READ_BYTES);
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n < 0) {
			return ssb_fail(w->err, SSB_E_SYS, errno, WHERE, "read '%.200s'", w->path);
		}
		done += (uint64_t)n;
		if (n == 0 || done > size) {
			break;
		}
		sha256_update(&s, w->chunk, (size_t)n);
	}
	if (done != size) {
		return refuse(w, "changed while it was read; try again");
	}
	sha256_final(&s, ret);
	return 0;
}

static bool same_record(const struct digest_record *a, const struct digest_record *b)
{
	return a->size == b->size && a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

static int hash_file(struct walk *w, int fd, struct digest_record *r)
{
	struct stat after;

	if (lseek(fd, 0, SEEK_SET) != 0 || hash_content(w, fd, r->size, r->hash) != 0 ||
	    fstat(fd, &after) != 0) {
		return ssb_fail(w->err, SSB_E_SYS, errno, WHERE, "read '%.200s'", w->path);
	}
	struct digest_record then = digest_record_of(&after);
	if (!same_record(r, &then)) {
		return refuse(w, "changed while it was read; try again");
	}
	if (w->cache != NULL) {
		digest_cache_add(w->cache, r, true);
	}
	return 0;
}

static int take_file(struct walk *w, int dir, const char *name)
{
	struct stat st;
	auto_fd fd = openat(dir, name, FILE_FLAGS);

	if (fd < 0 || fstat(fd, &st) != 0) {
		return ssb_fail(w->err, SSB_E_SYS, errno, WHERE, "'%.200s'", w->path);
	}
	if (!S_ISREG(st.st_mode)) {
		return refuse(w, "changed while it was read; try again");
	}
	struct digest_record r = digest_record_of(&st);
	if (r.size > MAX_PINNED_BYTES - w->out->bytes) {
		return ssb_fail(w->err, SSB_E_LIMIT, 0, WHERE,
		                "its files are larger together than can be approved: %lu MiB",
		                MAX_PINNED_BYTES >> 20);
	}
	if (is_sparse(fd, &st)) {
		return refuse(w, "is a sparse file; a skill with such a file cannot be approved");
	}
	if (w->marks != NULL && mark_has_writer(fd)) {
		return refuse(w, "is open for writing; what it holds is not certain");
	}
	if (mark(w, &st) != 0) {
		return -1;
	}
	if (w->cache != NULL && digest_cache_find(w->cache, &r)) {
		digest_cache_add(w->cache, &r, false);
	} else if (hash_file(w, fd, &r) != 0) {
		return -1;
	}
	struct skill_file *f = add(w, &st, NULL);
	if (f == NULL) {
		return -1;
	}
	memcpy(f->sha256, r.hash, sizeof(f->sha256));
	f->size = r.size;
	w->out->bytes += r.size;
	return 0;
}

/* The kernel walks it as it would for the skill, and stops where it leaves. */
static bool stays_inside(const struct walk *w)
{
	auto_fd fd =
	        file_openat2(w->root, w->path, O_PATH, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);

	return fd >= 0 || errno == ENOENT;
}

static int take_symlink(struct walk *w, int dir, const char *name, struct stat *st)
{
	char text[MAX_PATH_BYTES];

	if (mark(w, st) != 0) {
		return -1;
	}
	ssize_t n = readlinkat(dir, name, text, sizeof(text) - 1);
	if (n < 0) {
		return ssb_fail(w->err, SSB_E_SYS, errno, WHERE, "'%.200s'", w->path);
	}
	text[n] = '\0';
	if (!stays_inside(w)) {
		return refuse(w, "is a symlink that leads out of the skill's directory; such a "
		                 "skill cannot be approved");
	}
	st->st_mode = S_IFLNK | 0777; /* no file system means anything else by it */
	struct skill_file *f = add(w, st, text);
	if (f == NULL) {
		return -1;
	}
	sha256(text, (size_t)n, f->sha256);
	return 0;
}

/* That it is there is all that there is to it. */
static int take_empty(struct walk *w)
{
	const struct stat st = { .st_mode = S_IFDIR | PINNED_DIR_MODE };
	struct skill_file *f = add(w, &st, NULL);

	if (f == NULL) {
		return -1;
	}
	f->dir = true;
	sha256("", 0, f->sha256);
	return 0;
}

/* ---- directories ---------------------------------------------------------------- */

static int take_directory(struct walk *w, int parent, const char *name, size_t len, int depth);

static const char *no_content(mode_t mode)
{
	return S_ISFIFO(mode)   ? "is a FIFO; a skill with one cannot be approved"
	       : S_ISSOCK(mode) ? "is a socket; a skill with one cannot be approved"
	                        : "is a device; a skill with one cannot be approved";
}

static int take_name(struct walk *w, int dir, const char *name, size_t len, int depth)
{
	struct stat st;
	size_t n = strlen(name);

	if (len + n + 2 > sizeof(w->path)) {
		return ssb_fail(w->err, SSB_E_LIMIT, 0, WHERE, "a path in it is too long");
	}
	if (len > 0) {
		w->path[len++] = '/';
	}
	memcpy(w->path + len, name, n + 1);
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
		return ssb_fail(w->err, SSB_E_SYS, errno, WHERE, "'%.200s'", w->path);
	}
	if (S_ISREG(st.st_mode)) {
		return take_file(w, dir, name);
	}
	if (S_ISLNK(st.st_mode)) {
		return take_symlink(w, dir, name, &st);
	}
	if (S_ISDIR(st.st_mode)) {
		return take_directory(w, dir, name, len + n, depth + 1);
	}
	return refuse(w, no_content(st.st_mode));
}

static int take_entries(struct walk *w, DIR *dir, size_t len, int depth)
{
	bool empty = true;
	int failed = 0;

	errno = 0;
	for (const struct dirent *d = readdir(dir); d != NULL && failed == 0; d = readdir(dir)) {
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0) {
			empty = false;
			failed = len == 0 && skill_is_foreign(d->d_name, strlen(d->d_name))
			                 ? 0
			                 : take_name(w, dirfd(dir), d->d_name, len, depth);
		}
		errno = 0;
	}
	w->path[len] = '\0';
	if (failed == 0 && errno != 0) {
		return ssb_fail(w->err, SSB_E_SYS, errno, WHERE, "list '%.200s'", w->path);
	}
	return failed == 0 && empty && len > 0 ? take_empty(w) : failed;
}

static int take_directory(struct walk *w, int parent, const char *name, size_t len, int depth)
{
	if (depth >= MAX_PINNED_DEPTH || ++w->dirs > MAX_PINNED_DIRS) {
		return ssb_fail(w->err, SSB_E_LIMIT, 0, WHERE,
		                "it has more directories than can be approved: %d deep, %d in all",
		                MAX_PINNED_DEPTH, MAX_PINNED_DIRS);
	}
	auto_fd fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) != 0) {
		return ssb_fail(w->err, SSB_E_SYS, errno, WHERE, "'%.200s'",
		                len > 0 ? w->path : ".");
	}
	if (mark(w, &st) != 0) {
		return -1;
	}
	DIR *dir = fdopendir(fd);
	if (dir == NULL) {
		return ssb_fail(w->err, SSB_E_NOMEM, errno, WHERE, "out of memory");
	}
	(void)steal_fd(&fd);
	int failed = take_entries(w, dir, len, depth);
	(void)closedir(dir);
	return failed;
}

/* No copy will be kept, and all of it can be seen. */
static int take_left_out(struct walk *w)
{
	struct stat st;

	for (size_t i = 0; i < N_SKILL_FOREIGN; i++) {
		if (fstatat(w->root, SKILL_FOREIGN[i], &st, AT_SYMLINK_NOFOLLOW) != 0) {
			if (errno != ENOENT) {
				return ssb_fail(w->err, SSB_E_SYS, errno, WHERE, "'%s'",
				                SKILL_FOREIGN[i]);
			}
		} else if (take_name(w, w->root, SKILL_FOREIGN[i], 0, 0) != 0) {
			return -1;
		}
	}
	return 0;
}

/* ---- all ------------------------------------------------------------------------ */

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct skill_file *)a)->path, ((const struct skill_file *)b)->path);
}

void skill_files_digest(const struct skill_files *p, uint8_t ret[SHA256_BYTES])
{
	struct sha256 s;
	char head[2 * SHA256_BYTES + 16];
	char hex[2 * SHA256_BYTES + 1];

	sha256_init(&s);
	for (size_t i = 0; i < p->n; i++) {
		const struct skill_file *f = &p->v[i];
		hex_encode(f->sha256, sizeof(f->sha256), hex);
		int n = snprintf(head, sizeof(head), "%c%04o %s ",
		                 f->dir            ? 'd'
		                 : f->link != NULL ? 'l'
		                                   : 'f',
		                 f->mode & 07777, hex);
		sha256_update(&s, head, (size_t)n);
		sha256_update(&s, f->path, strlen(f->path) + 1);
	}
	sha256_final(&s, ret);
}

static int walk_from(struct walk *w, int root)
{
	AUTO(skill_files_done) struct skill_files p = { 0 };
	auto_free char *chunk = malloc(READ_BYTES);
	struct skill_files *ret = w->out;

	if (chunk == NULL) {
		return ssb_fail(w->err, SSB_E_NOMEM, 0, WHERE, "out of memory");
	}
	w->out = &p; /* cppcheck-suppress autoVariables ; nobody uses w after this */
	w->chunk = chunk;
	w->root = root;
	if (take_directory(w, root, ".", 0, 0) != 0 ||
	    (p.bytes > SNAPSHOT_BYTES && take_left_out(w) != 0)) {
		return -1;
	}
	if (p.n > 0) {
		qsort(p.v, p.n, sizeof(*p.v), by_path);
	}
	skill_files_digest(&p, p.tree);
	*ret = p;
	p = (struct skill_files){ 0 };
	return 0;
}

static int walk_all(struct walk *w, const char *dir)
{
	auto_fd root = file_open_nosymlink(dir, O_PATH | O_DIRECTORY);

	if (root < 0) {
		return ssb_fail(w->err, errno == ENOENT ? SSB_E_NOT_FOUND : SSB_E_SYS, errno, WHERE,
		                "'%.200s'", dir);
	}
	return walk_from(w, root);
}

int lock_files_read(const char *dir, struct skill_files *ret, struct ssb_error *err)
{
	auto_free struct walk *w = calloc(1, sizeof(*w));

	if (w == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, WHERE, "out of memory");
	}
	w->out = ret;
	w->err = err;
	return walk_all(w, dir);
}

int lock_files_mark(int dir, struct skill_files *ret, struct marks *marks, struct ssb_error *err)
{
	auto_free struct walk *w = calloc(1, sizeof(*w));

	if (w == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, WHERE, "out of memory");
	}
	w->out = ret;
	w->err = err;
	w->marks = marks;
	int failed = walk_from(w, dir);
	marks_sort(marks);
	return failed;
}

int lock_files_look(const struct owner *o, const char *dir, struct skill_files *ret,
                    struct ssb_error *err)
{
	auto_free struct walk *w = calloc(1, sizeof(*w));
	auto_fd state = open(o->state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct digest_cache cache = { 0 };
	struct stat st;

	if (w == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, WHERE, "out of memory");
	}
	w->out = ret;
	w->err = err;
	if (state < 0 || stat(dir, &st) != 0) {
		return walk_all(w, dir);
	}
	digest_cache_load(&cache, state, &st);
	w->cache = &cache;
	int failed = walk_all(w, dir);
	digest_cache_store(&cache, state, true);
	digest_cache_done(&cache);
	return failed;
}
