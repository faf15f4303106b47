/* digest_walk.c - a directory's files, their digests, and one digest of all.
 *
 * No symlink is followed: its text is what is digested. The digest of all is
 * the SHA-256 of one entry per file, in the order of their names as bytes:
 *
 *   <hex> <kind><name> NUL      kind: ' ' a file, '@' a symlink
 *
 * which is what `sha256sum -z` prints; a file that cannot be read has 64
 * hyphens. Directories, sockets, FIFOs and devices have no content. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/digest_cache.h"
#include "audit/digest_walk.h"
#include "audit/trace_limits.h"
#include "base/hex.h"
#include "base/json.h"
#include "base/own.h"

#define READ_BYTES ((size_t)128 * 1024)
#define HEX_BYTES  (2 * (size_t)SHA256_BYTES)

struct entry {
	size_t name; /* where it is in walk.names */
	char kind;   /* ' ', '@' */
	bool unreadable;
	uint8_t hash[SHA256_BYTES];
};

struct walk {
	const volatile sig_atomic_t *stop;
	struct digest_cache cache;
	struct buf names; /* NUL-terminated */
	struct entry *entries;
	size_t n;
	size_t size;
	uint64_t bytes; /* of the files, as far as they were digested */
	uint64_t read;
	uint64_t cached;
	bool incomplete;
	char path[PATH_MAX]; /* of what is looked at, from the directory on */
	char *chunk;
};

static struct entry *new_entry(struct walk *w, char kind)
{
	if (w->n == DIGEST_MAX_FILES) {
		w->incomplete = true;
		return NULL;
	}
	if (w->n == w->size) {
		size_t size = w->size < 64 ? 64 : w->size * 2;
		struct entry *more = reallocarray(w->entries, size, sizeof(*more));
		if (more == NULL) {
			w->incomplete = true;
			return NULL;
		}
		w->entries = more;
		w->size = size;
	}
	size_t at = w->names.len;
	buf_add(&w->names, w->path, strlen(w->path) + 1);
	if (w->names.failed) {
		w->incomplete = true;
		return NULL;
	}
	w->entries[w->n] = (struct entry){ .name = at, .kind = kind };
	return &w->entries[w->n++];
}

static bool stopped(struct walk *w)
{
	if (*w->stop != 0 || w->read > DIGEST_MAX_BYTES) {
		w->incomplete = true;
	}
	return w->incomplete;
}

static int hash_content(struct walk *w, int fd, uint8_t ret[SHA256_BYTES])
{
	struct sha256 s;

	sha256_init(&s);
	for (;;) {
		ssize_t n = read(fd, w->chunk, READ_BYTES);
		if (stopped(w)) {
			return -1;
		}
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n < 0) {
			return -1;
		}
		if (n == 0) {
			break;
		}
		w->read += (uint64_t)n;
		sha256_update(&s, w->chunk, (size_t)n);
	}
	sha256_final(&s, ret);
	return 0;
}

/* Reads it; only what did not change meanwhile is worth remembering. */
static int read_file(struct walk *w, int dir, const char *name, struct digest_record *r)
{
	struct stat before, after;
	/* A FIFO that took its place must not hold us up. */
	auto_fd fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &before) != 0 || !S_ISREG(before.st_mode)) {
		return -1;
	}
	*r = digest_record_of(&before);
	if (hash_content(w, fd, r->hash) != 0 || fstat(fd, &after) != 0) {
		return -1;
	}
	struct digest_record then = digest_record_of(&after);
	if (then.size == r->size && then.mtime_ns == r->mtime_ns && then.ctime_ns == r->ctime_ns) {
		digest_cache_add(&w->cache, r, true);
	}
	return 0;
}

static void add_file(struct walk *w, int dir, const char *name, const struct stat *st)
{
	struct digest_record r = digest_record_of(st);
	struct entry *e = new_entry(w, ' ');

	if (e == NULL) {
		return;
	}
	if (digest_cache_find(&w->cache, &r)) {
		digest_cache_add(&w->cache, &r, false);
		w->cached++;
	} else if (read_file(w, dir, name, &r) != 0) {
		e->unreadable = true;
		return;
	}
	memcpy(e->hash, r.hash, sizeof(e->hash));
	w->bytes += r.size;
}

static void add_symlink(struct walk *w, int dir, const char *name)
{
	char text[PATH_MAX];
	ssize_t n = readlinkat(dir, name, text, sizeof(text));
	struct entry *e = new_entry(w, '@');

	if (e == NULL) {
		return;
	}
	e->unreadable = n < 0;
	if (n >= 0) {
		sha256(text, (size_t)n, e->hash);
	}
}

static void walk_directory(struct walk *w, int parent, const char *name, size_t len, int depth);

/* One name of a directory whose path has `len` bytes. */
static void walk_name(struct walk *w, int dir, const char *name, size_t len, int depth)
{
	struct stat st;
	size_t n = strlen(name);

	if (len + n + 2 > sizeof(w->path) || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
		w->incomplete = w->incomplete || len + n + 2 > sizeof(w->path);
		return; /* gone meanwhile */
	}
	if (len > 0) {
		w->path[len++] = '/';
	}
	memcpy(w->path + len, name, n + 1);
	if (S_ISREG(st.st_mode)) {
		add_file(w, dir, name, &st);
	} else if (S_ISLNK(st.st_mode)) {
		add_symlink(w, dir, name);
	} else if (S_ISDIR(st.st_mode)) {
		walk_directory(w, dir, name, len + n, depth + 1);
	}
}

static void walk_directory(struct walk *w, int parent, const char *name, size_t len, int depth)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd >= 0 && depth < DIGEST_MAX_DEPTH ? fdopendir(fd) : NULL;

	if (dir == NULL) {
		own_close(&fd);
		w->incomplete = true;
		return;
	}
	for (const struct dirent *d = readdir(dir); d != NULL && !stopped(w); d = readdir(dir)) {
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0) {
			walk_name(w, dirfd(dir), d->d_name, len, depth);
		}
	}
	(void)closedir(dir);
}

static int by_name(const void *a, const void *b, void *names)
{
	const struct entry *x = a;
	const struct entry *y = b;

	return strcmp((char *)names + x->name, (char *)names + y->name);
}

void digest_put(struct json *j, const char *key, const uint8_t hash[SHA256_BYTES])
{
	char text[sizeof("sha256:") + HEX_BYTES] = "sha256:";

	hex_encode(hash, SHA256_BYTES, text + strlen("sha256:"));
	json_kstr(j, key, text);
}

static void put_all(const struct walk *w, struct json *j)
{
	struct sha256 s;
	uint8_t hash[SHA256_BYTES];
	char hex[HEX_BYTES + 2];

	if (w->incomplete) {
		json_kstr(j, "files_digest", NULL);
		return;
	}
	sha256_init(&s);
	for (size_t i = 0; i < w->n; i++) {
		const struct entry *e = &w->entries[i];
		const char *name = w->names.data + e->name;
		memset(hex, '-', HEX_BYTES);
		if (!e->unreadable) {
			hex_encode(e->hash, sizeof(e->hash), hex);
		}
		hex[HEX_BYTES] = ' ';
		hex[HEX_BYTES + 1] = e->kind;
		sha256_update(&s, hex, HEX_BYTES + 2);
		sha256_update(&s, name, strlen(name) + 1);
	}
	sha256_final(&s, hash);
	digest_put(j, "files_digest", hash);
}

static void put_list(const struct walk *w, struct json *j)
{
	char hex[HEX_BYTES + 1];
	bool cut = false;

	json_key(j, "files");
	json_open(j, '[');
	for (size_t i = 0; i < w->n && !cut; i++) {
		const struct entry *e = &w->entries[i];
		const char *name = w->names.data + e->name;
		/* Every byte of the name may be escaped. */
		if (j->out->len + 6 * strlen(name) + HEX_BYTES + 32 > DIGEST_LIST_BYTES) {
			cut = true;
			break;
		}
		hex_encode(e->hash, sizeof(e->hash), hex);
		json_open(j, '[');
		json_str(j, name);
		json_str(j, e->unreadable ? NULL : hex);
		if (e->kind == '@') {
			json_str(j, "symlink");
		}
		json_close(j, ']');
	}
	json_close(j, ']');
	if (cut) {
		json_kbool(j, "files_cut", true);
	}
}

static void put_members(struct walk *w, struct buf *out)
{
	struct json j;

	if (w->n > 0) {
		qsort_r(w->entries, w->n, sizeof(*w->entries), by_name, w->names.data);
	}
	/* Members without the braces around them. */
	json_init(&j, out, false);
	j.depth = 1;
	put_all(w, &j);
	json_kuint(&j, "count", w->n);
	json_kuint(&j, "bytes", w->bytes);
	json_kuint(&j, "cached", w->cached);
	if (w->incomplete) {
		json_kbool(&j, "incomplete", true);
	}
	put_list(w, &j);
}

void digest_walk(int dir_fd, int state_fd, const volatile sig_atomic_t *stop, struct buf *out)
{
	struct stat st;
	struct walk *w = calloc(1, sizeof(*w));
	char *chunk = malloc(READ_BYTES);

	if (w != NULL && chunk != NULL && fstat(dir_fd, &st) == 0) {
		w->stop = stop;
		w->chunk = chunk;
		buf_init(&w->names, DIGEST_PATH_BYTES);
		digest_cache_load(&w->cache, state_fd, &st);
		walk_directory(w, dir_fd, ".", 0, 0);
		put_members(w, out);
		digest_cache_store(&w->cache, state_fd, w->incomplete);
		digest_cache_done(&w->cache);
		buf_done(&w->names);
		free(w->entries);
	}
	free(chunk);
	free(w);
}
