/* digest_cache.h - the known digests of a directory's files, from the last run:
 * <state_dir>/digests/<device>-<inode>, a header and records sorted by device and inode. A file
 * that does not look like that is treated as empty. */
#ifndef SKILL_DIGEST_CACHE_H
#define SKILL_DIGEST_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/sha256.h"

/* A file as it was when it was read. The cache file has exactly this layout. */
struct digest_record {
	uint64_t dev;
	uint64_t ino;
	uint64_t size;
	int64_t mtime_ns;
	int64_t ctime_ns;
	uint8_t hash[SHA256_BYTES];
};

struct digest_cache {
	struct digest_record *known; /* sorted; from the last run */
	size_t n_known;
	struct digest_record *now; /* from this run */
	size_t n_now;
	size_t size;
	bool changed;
	char name[64];
};

struct digest_record digest_record_of(const struct stat *st);

/* The caller must give `cache` to digest_cache_done() in every case. */
void digest_cache_load(struct digest_cache *c, int state_fd, const struct stat *dir);
void digest_cache_done(struct digest_cache *c);

/* Finds the hash of a file that has not changed. Returns false if the file must be read. */
bool digest_cache_find(const struct digest_cache *c, struct digest_record *inout);
/* Remembers the record for the next run; `fresh`: the file was read just now. */
void digest_cache_add(struct digest_cache *c, const struct digest_record *r, bool fresh);
/* Writes the cache file if anything is new. `partial`: records of files that were not looked at
 * are kept. */
void digest_cache_store(struct digest_cache *c, int state_fd, bool partial);

/* Removes the cache files that no run has used since `before`; `dry`: only counts them. Returns
 * the number. */
size_t digest_cache_prune(const char *state_dir, time_t before, bool dry);

#endif
