/* digest_cache.c - reads, looks up and writes the cached digests of a directory. */
#include "skill/digest_cache.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/clock.h"
#include "os/entries.h"
#include "os/file.h"

#define MAGIC "ssbdgst1"

struct header {
	char magic[8];
	uint64_t count;
	uint8_t hash[SHA256_BYTES]; /* SHA-256 of the records, which reveals an incomplete write */
};

/* Two writes within one tick of the kernel's clock have the same ctime. So a file that was changed
 * so recently is not put into the cache. */
#define SETTLED_NS 2000000000LL

struct digest_record digest_record_of(const struct stat *st)
{
	return (struct digest_record){ .dev = st->st_dev,
		                       .ino = st->st_ino,
		                       .size = (uint64_t)st->st_size,
		                       .mtime_ns = clock_ns(&st->st_mtim),
		                       .ctime_ns = clock_ns(&st->st_ctim) };
}

static int by_inode(const void *a, const void *b)
{
	const struct digest_record *x = a;
	const struct digest_record *y = b;

	if (x->dev != y->dev) {
		return x->dev < y->dev ? -1 : 1;
	}
	return x->ino < y->ino ? -1 : x->ino > y->ino;
}

static bool read_exactly(int fd, void *to, size_t len)
{
	for (char *p = to; len > 0;) {
		ssize_t n = read(fd, p, len);
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n <= 0) {
			return false;
		}
		p += n;
		len -= (size_t)n;
	}
	return true;
}

static bool is_sorted(const struct digest_record *r, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		if (by_inode(&r[i - 1], &r[i]) > 0) {
			return false;
		}
	}
	return true;
}

void digest_cache_load(struct digest_cache *c, int state_fd, const struct stat *dir)
{
	struct header h;
	struct stat st;
	uint8_t hash[SHA256_BYTES];

	*c = (struct digest_cache){ 0 };
	snprintf(c->name, sizeof(c->name), "digests/%llx-%llx", (unsigned long long)dir->st_dev,
	         (unsigned long long)dir->st_ino);
	if (state_fd < 0) {
		return;
	}
	auto_fd fd = openat(state_fd, c->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    !read_exactly(fd, &h, sizeof(h)) || memcmp(h.magic, MAGIC, sizeof(h.magic)) != 0 ||
	    h.count > MAX_RECORDED_FILES ||
	    (uint64_t)st.st_size != sizeof(h) + h.count * sizeof(*c->known)) {
		return;
	}
	auto_free struct digest_record *known = calloc(h.count + 1, sizeof(*known));
	size_t bytes = h.count * sizeof(*known);
	if (known == NULL || !read_exactly(fd, known, bytes)) {
		return;
	}
	sha256(known, bytes, hash);
	if (memcmp(hash, h.hash, sizeof(hash)) == 0 && is_sorted(known, h.count)) {
		c->known = steal_ptr(&known);
		c->n_known = h.count;
		(void)futimens(fd, NULL); /* marks the file as used: see digest_cache_prune() */
	}
}

void digest_cache_done(struct digest_cache *c)
{
	free(c->known);
	free(c->now);
	*c = (struct digest_cache){ 0 };
}

bool digest_cache_find(const struct digest_cache *c, struct digest_record *inout)
{
	assert(c->n_known == 0 || c->known != NULL);

	const struct digest_record *r =
	        c->n_known == 0 ? NULL
	                        : bsearch(inout, c->known, c->n_known, sizeof(*c->known), by_inode);

	if (r == NULL || r->size != inout->size || r->mtime_ns != inout->mtime_ns ||
	    r->ctime_ns != inout->ctime_ns) {
		return false;
	}
	memcpy(inout->hash, r->hash, sizeof(inout->hash));
	return true;
}

static void append_record(struct digest_cache *c, const struct digest_record *r)
{
	if (c->n_now < MAX_RECORDED_FILES && ARRAY_MORE(c->now, c->n_now)) {
		c->now[c->n_now++] = *r;
	}
}

void digest_cache_add(struct digest_cache *c, const struct digest_record *r, bool fresh)
{
	if (fresh) {
		struct timespec now;
		(void)clock_gettime(CLOCK_REALTIME, &now);
		if (r->ctime_ns > clock_ns(&now) - SETTLED_NS) {
			return;
		}
		c->changed = true;
	}
	append_record(c, r);
}

static void sort_now(struct digest_cache *c)
{
	if (c->n_now > 0) {
		qsort(c->now, c->n_now, sizeof(*c->now), by_inode);
	}
}

static void keep_known(struct digest_cache *c)
{
	size_t seen = c->n_now;

	for (size_t i = 0; i < c->n_known; i++) {
		if (seen == 0 ||
		    bsearch(&c->known[i], c->now, seen, sizeof(*c->now), by_inode) == NULL) {
			append_record(c, &c->known[i]);
		}
	}
	sort_now(c);
}

void digest_cache_store(struct digest_cache *c, int state_fd, bool partial)
{
	char part[sizeof(c->name) + 32];

	if (!c->changed && (partial || c->n_now == c->n_known)) {
		return;
	}
	sort_now(c);
	if (partial) {
		keep_known(c);
	}
	struct header h = { .magic = MAGIC, .count = c->n_now };
	size_t bytes = c->n_now * sizeof(*c->now);
	sha256(c->now != NULL ? (const void *)c->now : "", bytes, h.hash);
	snprintf(part, sizeof(part), "%s.%d", c->name, (int)getpid());
	(void)mkdirat(state_fd, "digests", 0700);
	auto_fd fd =
	        openat(state_fd, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		return; /* the next run reads the files again */
	}
	if (file_write_all(fd, &h, sizeof(h)) != 0 || file_write_all(fd, c->now, bytes) != 0 ||
	    renameat(state_fd, part, state_fd, c->name) != 0) {
		(void)unlinkat(state_fd, part, 0);
	}
}

/* True for a cache file that was last used before `before`, and for an old file "DEV-INODE.PID"
 * that a killed run left behind. */
static bool is_old(int fd, const char *name, time_t before)
{
	struct stat st;

	return strspn(name, "0123456789abcdef-.") == strlen(name) && name[0] != '.' &&
	       fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	       st.st_mtim.tv_sec < before;
}

size_t digest_cache_prune(const char *state_dir, time_t before, bool dry)
{
	size_t n = 0;
	auto_fd state_fd = open(state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_dir dir = entries_open(state_fd, "digests");
	const struct dirent *e;

	while (dir != NULL && (e = readdir(dir)) != NULL) {
		n += is_old(dirfd(dir), e->d_name, before) &&
		     (dry || unlinkat(dirfd(dir), e->d_name, 0) == 0);
	}
	return n;
}
