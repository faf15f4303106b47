/* files_priv.h - shared by the parts of skill/files.h: files_walk.c walks the directories,
 * files_content.c reads one entry. */
#ifndef SKILL_FILES_PRIV_H
#define SKILL_FILES_PRIV_H

#include <sys/stat.h>

#include "base/limits.h"
#include "base/string_list.h"
#include "skill/digest_cache.h"
#include "skill/files.h"

/* Bytes per read. malloc() would map a larger buffer anew each time. */
#define FILES_CHUNK ((size_t)64 * 1024)
/* O_NONBLOCK: a FIFO that replaced a file must not block the reader. */
#define FILES_OPEN    (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
#define FILES_BENEATH (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS)

/* What one use (enum files_use) reads, and its limits. */
struct files_rules {
	size_t files; /* entries; a directory that has entries does not count */
	size_t dirs;
	size_t path_bytes;   /* bytes of all paths and symlink texts together */
	uint64_t bytes;      /* bytes of all files together */
	uint64_t file_bytes; /* bytes of one file */
	uint64_t read;       /* bytes that are read; a file whose digest is cached is not read */
	bool whole;          /* the first failure ends the reading */
	bool pinned;         /* content that cannot be pinned is a failure */
	/* every directory is an entry, and an entry that cannot be served is kept with the
	 * reason */
	bool served;
	bool small_first; /* large directories and files come last */
	/* a file system that could block is a failure, and so is a second file system */
	bool local;
};

enum files_pass { PASS_SMALL, PASS_LARGE, PASSES };

struct files_walk {
	const struct files_rules *rules;
	const struct files_wish *wish;
	struct skill_files *out;
	size_t n_files;    /* entries; a directory that has entries does not count */
	size_t n_dirs;     /* directories, including the skill's own */
	size_t path_bytes; /* bytes of the paths in `out` and in the queues */
	uint64_t read;
	int root;
	dev_t dev; /* device of the root */
	enum files_pass pass;
	bool with_foreign; /* directories of version control at the top are read, too */
	struct string_list queue[PASSES]; /* paths of directories, and of large files */
	struct digest_cache cache;
	int64_t waited; /* ns that files_mark() has waited so far */
	bool failed;    /* not everything was read; err says why */
	bool full;      /* nothing more is read */
	struct ssb_error *err;
	char *chunk;
	char path[MAX_PATH_BYTES]; /* path of the current entry in the skill's directory */
};

/* Each of these functions records a failure, which means that not everything was read. Only the
 * first reason is kept. If rules->whole is set, the failure also ends the reading. */
void files_fail(struct files_walk *w, enum ssb_code code, int sys_errno, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
void files_fail_sys(struct files_walk *w, int error);
void files_fail_changed(struct files_walk *w);
/* Records a failure with the text "it has more WHAT than the limit of MOST UNIT", and ends the
 * reading for every use. */
void files_fail_limit(struct files_walk *w, const char *what, uint64_t most, const char *unit);
void files_fail_memory(struct files_walk *w);
/* True if the caller must stop reading. */
bool files_stopped(struct files_walk *w);

/* Both functions add the current path as an entry; files_add() also counts it in n_files. If there
 * is no room, they record the failure and return NULL. */
struct skill_file *files_add(struct files_walk *w, unsigned mode, const char *link);
struct skill_file *files_add_entry(struct files_walk *w, unsigned mode, const char *link);
/* Adds an entry that is not served; `why` is static. */
void files_add_left_out(struct files_walk *w, const char *why);
/* Appends the current path, of a directory or of a large file, to a queue. */
void files_queue(struct files_walk *w, enum files_pass pass);

/* If the caller wants marks, adds a mark of the current path. Must be called before the content is
 * read, so that a later change gets a later time. On failure, records it and returns false. */
bool files_mark(struct files_walk *w, const struct stat *st);

/* Reads the regular file at the current path, which is `name` in the directory `dir` and has the
 * attributes `st`. If `name` is NULL, the file is opened by its path. */
void files_take(struct files_walk *w, int dir, const char *name, struct stat *st);
void files_take_symlink(struct files_walk *w, int dir, const char *name, const struct stat *st);
void files_take_special(struct files_walk *w, mode_t mode);

#endif
