/* runs.h - the runs in the owner's state directory, and what a person calls
 * them.
 *
 * A record is runs/ID/trace.jsonl, or runs/ID.trace.jsonl where the run has
 * not got its directory yet (or crashed before). Nothing below the state
 * directory is followed through a symlink, and nothing but a regular file is
 * ever opened. */
#ifndef TRACE_RUNS_H
#define TRACE_RUNS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "skillsandbox.h"

#define RUN_ID_SIZE 37

struct run_entry {
	char id[RUN_ID_SIZE];
	bool has_dir;
	bool has_flat;
	int64_t mtime; /* nanoseconds; of the record; by runs_stat() */
	uint64_t size;
};

struct runs {
	int fd; /* the directory of the runs; -1: there is none */
	struct run_entry *v;
	size_t n;
	bool cut; /* there are more than MAX_RUNS */
};

#define RUNS_NONE                                                                                  \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/* From a name in that directory; false: it is none of ours. */
bool run_entry_from_name(struct run_entry *ret, const char *name);

/* All runs by id, in order of the ids. Where nothing ever ran there are none. */
int runs_open(struct runs *ret, const char *state_dir, struct ssb_error *err);
/* The same, but MAX_RUNS of them where there are more, and `cut`: to remove
 * them. The newest of some are never older than those of all. */
int runs_open_some(struct runs *ret, const char *state_dir, struct ssb_error *err);
void runs_done(struct runs *r);
/* Fills mtime and size, drops those without a record, newest first. */
void runs_stat(struct runs *r);
/* O_RDONLY fd of the record, or -1 with errno. */
int runs_record(const struct runs *r, const struct run_entry *e);
/* The directory of the runs, which is made where nothing ever ran: an O_PATH fd, or -1 with
 * errno. */
int runs_directory(const char *state_dir);
/* News of the names in it (IN_CREATE, ...): an inotify fd that never waits, or -1 with errno. */
int runs_news(int dir_fd, uint32_t events);
struct inotify_event;
typedef void runs_news_fn(void *arg, const struct inotify_event *e);
/* Takes all that there are by now. */
void runs_news_take(int fd, runs_news_fn *fn, void *arg);
/* Removes a run and its files. -1 with errno; EBUSY where it lives. */
int runs_remove(const struct runs *r, const struct run_entry *e);

/* A record, opened. */
struct run_file {
	int fd;
	char id[RUN_ID_SIZE]; /* "" where a file was named */
	char path[PATH_MAX];  /* for people */
};

#define RUN_FILE_NONE                                                                              \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/* `word` is a file if it has a slash or a dot in it; otherwise "last" (the
 * run written to most recently), an id, or its first characters where only
 * one run has them. */
int run_file_open(struct run_file *ret, const char *state_dir, const char *word,
                  struct ssb_error *err);
int run_file_open_path(struct run_file *ret, const char *path, struct ssb_error *err);
void run_file_done(struct run_file *r);
/* Its supervisor is alive: it holds a lock on the record. */
bool run_file_live(int fd);

bool runs_id_valid(const char *id, size_t len);

#endif
