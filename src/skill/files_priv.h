/* files_priv.h - shared by the parts of skill/files.h: files_walk.c walks the directories,
 * files_content.c reads one entry. */
#ifndef SKILL_FILES_PRIV_H
#define SKILL_FILES_PRIV_H

#include <sys/stat.h>

#include "base/limits.h"
#include "base/string_list.h"
#include "skill/digest_cache.h"
#include "skill/files.h"

#define FILES_CHUNK ((size_t)64 * 1024) /* bytes per read; malloc() maps larger blocks anew */
/* O_NONBLOCK: a FIFO that replaced a file must not block the reader. */
#define FILES_OPEN    (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
#define FILES_BENEATH (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS)

/* What each use reads, and how much. */
struct files_rules {
	size_t files; /* entries, without directories that have any */
	size_t dirs;
	size_t path_bytes;   /* of all paths and symlink texts together */
	uint64_t bytes;      /* of all files together */
	uint64_t file_bytes; /* of one file */
	uint64_t read;       /* bytes that are read: files in the cache are not */
	bool whole;          /* the first failure ends the reading */
	bool pinned;         /* content that cannot be pinned is a failure */
	bool served; /* every directory is an entry, and an entry that cannot be served has a reason
	              */
	bool small_first; /* large directories and files come last */
	bool local; /* a file system that may not answer is a failure, and so is a second one */
};

enum files_pass { PASS_SMALL, PASS_LARGE, PASSES };

struct files_walk {
	const struct files_rules *rules;
	const struct files_wish *wish;
	struct skill_files *out;
	size_t room;       /* of out->v */
	size_t n_files;    /* entries, without directories that have any */
	size_t n_dirs;     /* directories, including the skill's own */
	size_t path_bytes; /* of entries and queues */
	uint64_t read;
	int root;
	dev_t dev; /* of the root */
	enum files_pass pass;
	bool with_foreign;                /* directories of version control at the top count, too */
	struct string_list queue[PASSES]; /* paths of directories, and of large files */
	struct digest_cache cache;
	int64_t waited; /* ns, for marks */
	bool failed;    /* not everything was read; err says why */
	bool full;      /* nothing more is read */
	struct ssb_error *err;
	char *chunk;
	char path[MAX_PATH_BYTES]; /* of the current entry, from the skill's directory on */
};

/* These record a failure: not everything was read. The first reason is kept. If the use wants
 * all files or none, the failure also ends the reading. */
void files_fail(struct files_walk *w, enum ssb_code code, int sys_errno, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
void files_fail_sys(struct files_walk *w, int error);
void files_fail_changed(struct files_walk *w);
/* Ends the reading for every use: "it has more WHAT than the limit of MOST UNIT". */
void files_fail_limit(struct files_walk *w, const char *what, uint64_t most, const char *unit);
void files_fail_memory(struct files_walk *w);
/* True if the caller must stop reading. */
bool files_stopped(struct files_walk *w);

/* Adds the current path as an entry that counts as a file. Returns NULL, and records the
 * failure, if there is no room. */
struct skill_file *files_add(struct files_walk *w, unsigned mode, const char *link);
struct skill_file *files_add_entry(struct files_walk *w, unsigned mode, const char *link);
/* Adds an entry that is not served; `why` is static. */
void files_add_left_out(struct files_walk *w, const char *why);
/* Puts the current path, of a directory or of a large file, at the end of a queue. */
void files_queue(struct files_walk *w, enum files_pass pass);

/* Marks the current path if marks are wanted. Must be called before the content is read, so that
 * a later change gets a later time. Returns false if the failure was recorded. */
bool files_mark(struct files_walk *w, const struct stat *st);

/* Reads the current path, which is `name` in the directory `dir`, with the attributes `st`. If
 * `name` is NULL, it is opened by its path. */
void files_take(struct files_walk *w, int dir, const char *name, struct stat *st);
void files_take_symlink(struct files_walk *w, int dir, const char *name, const struct stat *st);
void files_take_special(struct files_walk *w, mode_t mode);

#endif
