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
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/digest_cache.h"
#include "trace/digest_walk.h"
#include "trace/trace_limits.h"
#include "base/hex.h"
#include "base/json.h"
#include "base/own.h"
#include "base/string_list.h"
#include "os/file.h"

#define READ_BYTES ((size_t)128 * 1024)
#define HEX_BYTES  (2 * (size_t)SHA256_BYTES)
/* A FIFO that took a file's place must not hold us up. */
#define OPEN_FILE (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
#define PLAIN     (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS)

struct entry {
	size_t name; /* where it is in walk.names */
	char kind;   /* ' ', '@' */
	bool unreadable;
	uint8_t hash[SHA256_BYTES];
};

/* What is small comes first: see walk_all(). */
enum pass { PASS_SMALL, PASS_LARGE, PASSES };

struct walk {
	const volatile sig_atomic_t *stop;
	int root;
	enum pass pass;
	struct string_list queue[PASSES]; /* paths of directories, and of large files */
	size_t queued;                    /* bytes of both */
	struct digest_cache cache;
	struct buf names; /* NUL-terminated */
	struct entry *entries;
	size_t n;
	size_t size;
	uint64_t bytes; /* of the files, as far as they were digested */
	uint64_t read;
	uint64_t cached;
	bool full; /* no place for one more */
	bool incomplete;
	char path[PATH_MAX]; /* of what is looked at, from the directory on */
	char *chunk;
};

static struct entry *new_entry(struct walk *w, char kind)
{
	size_t at = w->names.len;

	if (w->n == w->size && w->n < DIGEST_MAX_FILES) {
		size_t size = w->size < 64 ? 64 : w->size * 2;
		struct entry *more = reallocarray(w->entries, size, sizeof(*more));
		w->entries = more != NULL ? more : w->entries;
		w->size = more != NULL ? size : w->size;
	}
	buf_add(&w->names, w->path, strlen(w->path) + 1);
	if (w->n == w->size || w->n == DIGEST_MAX_FILES || w->names.failed) {
		w->full = true;
		return NULL;
	}
	w->entries[w->n] = (struct entry){ .name = at, .kind = kind };
	return &w->entries[w->n++];
}

/* What cannot be read or is too deep does not end the walk: the rest is still told. */
static bool stopped(struct walk *w)
{
	if (*w->stop != 0 || w->read > DIGEST_MAX_BYTES || w->full) {
		w->incomplete = true;
		return true;
	}
	return false;
}

static size_t depth_of(const char *path)
{
	size_t n = path[0] != '\0';

	for (; *path != '\0'; path++) {
		n += *path == '/';
	}
	return n;
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

/* Reads an open file; only what did not change meanwhile is worth remembering. */
static int read_file(struct walk *w, int fd, struct digest_record *r)
{
	struct stat before, after;

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

/* Puts the current path at the end of a queue. */
static void queue_path(struct walk *w, enum pass pass)
{
	w->queued += strlen(w->path) + 1;
	if (w->queued > DIGEST_PATH_BYTES ||
	    string_list_add(&w->queue[pass], w->path, DIGEST_MAX_FILES) != 0) {
		w->incomplete = true;
	}
}

static void put_file(struct walk *w, struct digest_record *r, int fd)
{
	struct entry *e = new_entry(w, ' ');

	if (e == NULL) {
		return;
	}
	if (digest_cache_find(&w->cache, r)) {
		digest_cache_add(&w->cache, r, false);
		w->cached++;
	} else if (read_file(w, fd, r) != 0) {
		e->unreadable = true;
		return;
	}
	memcpy(e->hash, r->hash, sizeof(e->hash));
	w->bytes += r->size;
}

static void add_file(struct walk *w, int dir, const char *name, const struct stat *st)
{
	struct digest_record r = digest_record_of(st);
	auto_fd fd = -1;

	if (!digest_cache_find(&w->cache, &r)) {
		if (w->pass == PASS_SMALL && st->st_size > DIGEST_SMALL_BYTES) {
			queue_path(w, PASS_LARGE);
			return;
		}
		fd = file_openat2(dir, name, OPEN_FILE, PLAIN);
	}
	put_file(w, &r, fd);
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

/* One name of a directory whose path has `len` bytes. */
static void visit_name(struct walk *w, int dir, const char *name, size_t len)
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
		queue_path(w, w->pass);
	}
}

static int by_string(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorts the names, and keeps the first `most`. */
static void keep_first(struct walk *w, struct string_list *names, size_t most)
{
	if (names->n > 0) {
		qsort((void *)names->v, names->n, sizeof(*names->v), by_string);
	}
	while (names->n > most) {
		free(names->v[--names->n]);
		names->v[names->n] = NULL;
		w->incomplete = true;
	}
}

/* The names of a directory, sorted: its own order decides nothing, also where it has more names
 * than are kept. False: it is a large one, and this is the pass of the small ones. */
static bool read_names(struct walk *w, DIR *dir, struct string_list *names)
{
	for (const struct dirent *d = readdir(dir); d != NULL && !stopped(w); d = readdir(dir)) {
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0) {
			continue;
		}
		if (w->pass == PASS_SMALL && names->n == DIGEST_SMALL_NAMES) {
			return false;
		}
		if (names->n == 2 * (size_t)DIGEST_MAX_FILES) {
			keep_first(w, names, DIGEST_MAX_FILES);
		}
		if (string_list_add(names, d->d_name, SIZE_MAX) != 0) {
			w->incomplete = true;
			break;
		}
	}
	keep_first(w, names, DIGEST_MAX_FILES);
	return true;
}

/* Files come before directories: those wait in the queue. Takes `fd`. */
static void visit_directory(struct walk *w, int fd)
{
	AUTO(string_list_done) struct string_list names = { 0 };
	size_t len = strlen(w->path);
	DIR *dir = depth_of(w->path) < DIGEST_MAX_DEPTH ? fdopendir(fd) : NULL;

	if (dir == NULL) {
		own_close(&fd);
		w->incomplete = true;
		return;
	}
	if (read_names(w, dir, &names)) {
		for (size_t i = 0; i < names.n && !stopped(w); i++) {
			visit_name(w, dirfd(dir), names.v[i], len);
		}
	} else {
		queue_path(w, PASS_LARGE);
	}
	(void)closedir(dir);
}

/* A path of the queue: a directory, or a large file. */
static void visit_path(struct walk *w, const char *path)
{
	struct stat st;
	auto_fd fd = file_openat2(w->root, path[0] != '\0' ? path : ".", OPEN_FILE, PLAIN);

	memcpy(w->path, path, strlen(path) + 1);
	if (fd < 0 || fstat(fd, &st) != 0) {
		w->incomplete = true;
		return;
	}
	if (S_ISDIR(st.st_mode)) {
		visit_directory(w, steal_fd(&fd));
	} else {
		struct digest_record r = digest_record_of(&st);
		put_file(w, &r, fd);
	}
}

/* Breadth first, so that the top level and what is near it never wait for what is deep; and what
 * is small before what is large, so that no one directory or file takes the place of the rest. */
static void walk_all(struct walk *w)
{
	queue_path(w, PASS_SMALL);
	for (w->pass = PASS_SMALL; w->pass < PASSES; w->pass++) {
		for (size_t i = 0; i < w->queue[w->pass].n && !stopped(w); i++) {
			visit_path(w, w->queue[w->pass].v[i]);
		}
	}
}

static int by_name(const void *a, const void *b, void *names)
{
	const struct entry *x = a;
	const struct entry *y = b;

	return strcmp((char *)names + x->name, (char *)names + y->name);
}

static int by_depth(const void *a, const void *b, void *names)
{
	const struct entry *x = a;
	const struct entry *y = b;
	size_t p = depth_of((char *)names + x->name);
	size_t q = depth_of((char *)names + y->name);

	return p != q ? (p < q ? -1 : 1) : by_name(a, b, names);
}

static void sort_entries(struct walk *w, int (*order)(const void *, const void *, void *))
{
	if (w->n > 0) {
		qsort_r(w->entries, w->n, sizeof(*w->entries), order, w->names.data);
	}
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

	sort_entries(w, by_name);
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
	/* A list that is cut shows the top level. */
	sort_entries(w, by_depth);
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
		w->root = dir_fd;
		walk_all(w);
		put_members(w, out);
		digest_cache_store(&w->cache, state_fd, w->incomplete);
		digest_cache_done(&w->cache);
		string_list_done(&w->queue[PASS_SMALL]);
		string_list_done(&w->queue[PASS_LARGE]);
		buf_done(&w->names);
		free(w->entries);
	}
	free(chunk);
	free(w);
}
