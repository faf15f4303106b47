/* files.h - every file of a skill's directory with its digest, and one digest of all of them.
 *
 * Approvals, records and the server all use these functions to read a skill's files, so that one
 * skill has one digest: the digest that the owner approved is the digest in the record of a run.
 *
 * The digest of all files is the SHA-256 of one entry for each file, symlink and empty directory,
 * in the order of their paths as bytes:
 *
 *   KIND MODE ' ' HEX ' ' PATH NUL
 *
 *   KIND   'f' a file, 'l' a symlink, 'd' a directory without entries
 *   MODE   four octal digits: the permissions to read and to execute, with the owner's right to
 *          read (mode & 0555 | 0400); 0555 for a symlink and for a directory. The copy that an
 *          approved skill runs from has exactly these permissions, so its digest is that of the
 *          original.
 *   HEX    SHA-256 of the file's bytes, of the symlink's text, or of nothing for a directory;
 *          64 hyphens if the file cannot be read
 *   PATH   relative to the skill's directory
 *
 * A directory that has entries needs none itself, because their paths contain its name. Owners,
 * times, extended attributes and hard links do not count. FIFOs, sockets and devices have no
 * content and no entry.
 *
 * The directory is hostile. It is read level by level, and the entries of a directory in the order
 * of their names, so that neither the order of a directory nor a deep tree decides what is
 * recorded. No symlink is followed, and every dimension has a limit (base/limits.h). */
#ifndef SKILL_FILES_H
#define SKILL_FILES_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sha256.h"
#include "os/marks.h"
#include "skillsandbox.h"

struct skill_file {
	char *path;    /* relative to the skill's directory: hostile bytes */
	char *link;    /* the text of a symlink; NULL: it is not a symlink */
	bool dir;      /* a directory */
	unsigned mode; /* permission bits */
	uint64_t size; /* in bytes; 0 unless it is a regular file */
	uint8_t sha256[SHA256_BYTES];
	/* why the file has no digest: "FIFO", "cannot be read"; NULL: it has a digest */
	const char *no_digest;
};

/* The modes that struct skill_file has for directories and symlinks, whatever the file system
 * reports. */
#define SKILL_DIR_MODE  0755
#define SKILL_LINK_MODE 0777

struct skill_files {
	struct skill_file *v; /* in the order of their paths */
	size_t n;
	uint64_t bytes;  /* sum of their sizes */
	size_t n_cached; /* files whose digest came from the cache */
	/* FILES_SERVE: number of entries that cannot be served; `v` has only the first ones */
	size_t n_left_out;
	uint8_t tree[SHA256_BYTES]; /* the digest of all files; set only if all were read */
};

enum files_use {
	/* To approve a skill or to check an approval: everything is read, or there is an error. An
	 * entry whose content cannot be pinned is an error: a FIFO, a device, a socket, a sparse
	 * file, a symlink that leads out of the directory, a file that changes. Directories of
	 * version control at the top (.git, .hg, .svn) are left out, unless the rest is too large
	 * to be copied (SNAPSHOT_BYTES): the skill then runs from its own directory and can see
	 * them. */
	FILES_APPROVE,
	/* For the record of a run: as much is read as the limits allow, small directories and files
	 * first. A file that cannot be read is kept without a digest. */
	FILES_RECORD,
	/* Like FILES_RECORD, for a small skill on a local file system, which the supervisor reads
	 * itself. The limits are small, and no other file system may be mounted in the directory.
	 * Everything is read, or there is an error. */
	FILES_RECORD_SMALL,
	/* For the server: regular files and every directory are read. Entries that cannot be served
	 * are kept without a digest, at most MAX_SKILL_LEFT of them. */
	FILES_SERVE,
};

struct files_wish {
	enum files_use use;
	int state_fd;        /* the state directory, for the cache (digest_cache.h); -1: no cache */
	bool names_only;     /* no digests: no file is opened */
	struct marks *marks; /* for FILES_APPROVE: gets a mark of everything that was read; NULL: no
	                        marks */
	const volatile sig_atomic_t
	        *stop; /* NULL, or a flag that ends the reading when it is not 0 */
};

/* Reads the directory `dir_fd` (borrowed, may be O_PATH). Returns 0 if everything was read.
 * Otherwise returns -1: `err` says why, and `out` has the entries that were read before, without a
 * tree digest. The caller must pass `out` to skill_files_done() in both cases. */
int skill_files_read(int dir_fd, const struct files_wish *wish, struct skill_files *out,
                     struct ssb_error *err);
void skill_files_done(struct skill_files *f);
void skill_file_done(struct skill_file *f);

/* Computes the digest of all files of `f`, which must be in the order of their paths. */
void skill_files_digest(const struct skill_files *f, uint8_t ret[SHA256_BYTES]);
/* Returns the permissions that are part of the entry's digest and of its approved copy. */
unsigned skill_file_mode(const struct skill_file *f);
/* True if the entry can be executed. */
bool skill_file_executable(const struct skill_file *f);

#endif
