/* digest_cache.h - the digests of a directory's files from earlier runs, so that unchanged files
 * need not be read again.
 *
 * The cache of a directory is the file <state_dir>/digests/<device>-<inode>: a header, and records
 * sorted by device and inode. A file of another form counts as empty. */
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
	struct digest_record *known; /* sorted; the records of the last run */
	size_t n_known;
	struct digest_record *now; /* the records for the next run */
	size_t n_now;
	bool changed;
	char name[64];
};

struct digest_record digest_record_of(const struct stat *st);

/* Loads the cache of the directory with the attributes `dir`. If there is none, or state_fd is -1,
 * the cache is empty. The caller must pass `c` to digest_cache_done() in every case. */
void digest_cache_load(struct digest_cache *c, int state_fd, const struct stat *dir);
void digest_cache_done(struct digest_cache *c);

/* Searches the cache for the file that `inout` describes. If the file has not changed since, sets
 * inout->hash to its digest and returns true. Returns false if the file must be read. */
bool digest_cache_find(const struct digest_cache *c, struct digest_record *inout);
/* Adds a record for the next run. `fresh` is true if the file was read just now. */
void digest_cache_add(struct digest_cache *c, const struct digest_record *r, bool fresh);
/* Writes the cache file if a record is new. `partial` is true if not all files were examined; the
 * old records of the other files are then kept. */
void digest_cache_store(struct digest_cache *c, int state_fd, bool partial);

/* Removes the cache files that no run has used since `before`, or only counts these files if `dry`
 * is true. Returns their number. */
size_t digest_cache_prune(const char *state_dir, time_t before, bool dry);

#endif
