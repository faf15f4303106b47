/* caches.c - measures, empties and removes caches. */
#include "sandbox/caches.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/entries.h"
#include "os/file.h"
#include "os/tree.h"
#include "policy/path.h"

/* Opens a cache, of which `at` is an O_PATH fd, for reading. The skill may have set its mode to 0,
 * so the mode is set to 0700 again. Returns a new fd, or -1. */
static int open_cache(int at)
{
	char path[64];
	struct stat st;

	if (at < 0 || fstat(at, &st) != 0) {
		return -1;
	}
	if (st.st_uid != geteuid() || !S_ISDIR(st.st_mode)) {
		errno = EPERM;
		return -1;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
	return chmod(path, 0700) != 0 ? -1 : openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static bool add_size(void *arg, const struct tree_entry *e)
{
	*(uint64_t *)arg += (uint64_t)e->st.st_blocks * 512;
	return true;
}

/* Returns the size of everything in the directory; *ret_whole is false if not all of it was seen.
 */
static uint64_t measure_tree(int dir, uint64_t most, bool *ret_whole)
{
	const struct tree_caps caps = { most / CACHE_BYTES_PER_FILE, MAX_CACHE_DEPTH };
	uint64_t bytes = 0;

	*ret_whole = tree_walk(dir, &caps, add_size, &bytes);
	return bytes;
}

static int warn_size(struct prepared *p, uint64_t limit_mb, bool emptied)
{
	uint64_t more = limit_mb * 2 < MAX_CACHE_MB ? limit_mb * 2 : MAX_CACHE_MB;
	auto_free char *text = NULL;

	if (asprintf(&text,
	             emptied ? "the cache was emptied, because it was larger than %llu MiB; to "
	                       "allow more: --cache=%lluM"
	                     : "the cache is larger than %llu MiB and could not be emptied; to "
	                       "allow more: --cache=%lluM, or to remove all caches: "
	                       "skillsandbox audit prune --caches",
	             (unsigned long long)limit_mb, (unsigned long long)more) < 0) {
		text = NULL;
		return -1;
	}
	return string_list_add_once(&p->warnings, text, 8UL * MAX_GRANTS);
}

/* Empties the cache if it is too large. Returns false if it is still too large, because another run
 * uses it or a file cannot be removed. */
static bool keep_small(const struct ssb_plan *plan, struct prepared *p)
{
	uint64_t most = plan->cache_mb << 20;
	bool whole = true;
	uint64_t bytes = measure_tree(p->cache_fd, most, &whole);

	if (bytes <= most && whole) {
		return true;
	}
	/* The lock may be lost in the attempt to make it exclusive, so it is taken again. */
	bool alone = flock(p->cache_fd, LOCK_EX | LOCK_NB) == 0;
	bool empty = alone && tree_empty(p->cache_fd) == 0;
	(void)flock(p->cache_fd, LOCK_SH | LOCK_NB);
	if (empty) {
		(void)warn_size(p, plan->cache_mb, true);
	}
	/* A file that another run is writing now may exist, but not be measurable yet. */
	return empty || (!alone && bytes <= most);
}

static const struct grant *find_cache(const struct ssb_plan *plan, const struct prepared *p)
{
	const struct grant *grants = prepared_grants(p, plan);

	for (size_t i = 0; i < plan->n_grants; i++) {
		if (grants[i].origin == ORIGIN_CACHE) {
			return &grants[i];
		}
	}
	return NULL;
}

int caches_begin(const struct ssb_plan *plan, struct prepared *p, struct ssb_error *err)
{
	const struct grant *g = find_cache(plan, p);
	struct stat st;

	if (g == NULL) {
		return 0;
	}
	int fd = open_cache(g->fd);
	if (fd < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "cache", "open '%.200s'", g->path);
	}
	p->cache_fd = fd;
	p->has_cache = true;
	/* Another process may have removed the cache after the plan opened it. */
	if (flock(fd, LOCK_SH | LOCK_NB) != 0 || fstat(fd, &st) != 0 || st.st_nlink == 0) {
		return ssb_fail(err, SSB_E_SYS, 0, "cache",
		                "another process is removing this cache now; try again");
	}
	(void)futimens(fd, NULL); /* the time of its last use, for caches_prune() */
	if (!keep_small(plan, p)) {
		return ssb_fail(err, SSB_E_LIMIT, 0, "cache",
		                "the cache is larger than %llu MiB, and it cannot be emptied while "
		                "another run uses it; wait for that run, or allow more: "
		                "--cache=%lluM",
		                (unsigned long long)plan->cache_mb,
		                (unsigned long long)plan->cache_mb * 2);
	}
	return 0;
}

void caches_end(const struct ssb_plan *plan, struct prepared *p)
{
	if (p->has_cache && !keep_small(plan, p)) {
		(void)warn_size(p, plan->cache_mb, false);
	}
}

/* Removes one cache, or counts it. */
static void prune_one(int dir, const char *name, int64_t before, bool dry, struct caches_sum *sum)
{
	auto_fd at = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	auto_fd fd = open_cache(at);
	bool whole = true;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0) {
		sum->failed += errno != ENOENT;
		return;
	}
	if (st.st_mtim.tv_sec >= before) {
		return;
	}
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		sum->busy++;
		return;
	}
	uint64_t bytes = measure_tree(fd, (uint64_t)MAX_CACHE_MB << 20, &whole);
	if (!dry && tree_remove(dir, name) != 0) {
		sum->failed++;
		return;
	}
	sum->removed++;
	sum->bytes += bytes;
}

void caches_prune(const char *state_dir, int64_t before, bool dry, struct caches_sum *ret)
{
	auto_free char *path = path_join(state_dir, CACHES_DIR);
	auto_fd dir = path != NULL ? file_open_nosymlink(path, O_RDONLY | O_DIRECTORY) : -1;
	auto_dir names = dir >= 0 ? entries_open(dir, ".") : NULL;

	*ret = (struct caches_sum){ .failed = names == NULL && !file_is_missing(errno) };
	for (const struct dirent *e; names != NULL && (e = entries_of(names)) != NULL;) {
		prune_one(dir, e->d_name, before, dry, ret);
	}
}
