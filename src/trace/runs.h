/* runs.h - finds the runs in the owner's state directory, by the names that a person uses for them.
 *
 * A record is runs/ID/trace.jsonl. While the run has no directory yet (or if it crashed before),
 * the record is runs/ID.trace.jsonl. Below the state directory no symlink is followed, and only
 * regular files are opened. */
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
	int64_t mtime; /* of the record, in nanoseconds; set by runs_stat() */
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

/* Fills `ret` from `name`, the name of a file or directory in the directory of the runs. Returns
 * false if it is not the name of a run. */
bool run_entry_from_name(struct run_entry *ret, const char *name);

/* Lists all runs, ordered by id. If there was never a run, the list is empty. Fails if there are
 * more than MAX_RUNS. */
int runs_open(struct runs *ret, const char *state_dir, struct ssb_error *err);
/* Like runs_open(), but if there are more than MAX_RUNS, lists MAX_RUNS of them and sets `cut`.
 * This is enough for removing old runs: a run that is not among the newest N runs of this list is
 * not among the newest N runs of all either. */
int runs_open_some(struct runs *ret, const char *state_dir, struct ssb_error *err);
void runs_done(struct runs *r);
/* Sets mtime and size, drops entries without a record, and sorts the newest first. */
void runs_stat(struct runs *r);
/* Returns a new O_RDONLY fd of the record, or -1 with errno. */
int runs_record(const struct runs *r, const struct run_entry *e);
/* Opens the directory of the runs, and makes it if necessary. Returns a new O_PATH fd, or -1 with
 * errno. */
int runs_directory(const char *state_dir);
/* Watches the directory of the runs for `events` (IN_CREATE, ...). Returns a new non-blocking
 * inotify fd, or -1 with errno. */
int runs_news(int dir_fd, uint32_t events);
struct inotify_event;
typedef void runs_news_fn(void *arg, const struct inotify_event *e);
/* Reads all pending events from `fd` and calls `fn` for each. */
void runs_news_take(int fd, runs_news_fn *fn, void *arg);
/* Removes a run and its files. Returns -1 with errno; EBUSY if it is still running. */
int runs_remove(const struct runs *r, const struct run_entry *e);

/* An open record. */
struct run_file {
	int fd;
	char id[RUN_ID_SIZE]; /* "" if the person named a file */
	char path[PATH_MAX];  /* for people */
};

#define RUN_FILE_NONE                                                                              \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/* Opens the record that a person named. `word` is a file if it contains a slash or a dot. Otherwise
 * it is "last" (the run written to most recently), an id, or the beginning of exactly one id. */
int run_file_open(struct run_file *ret, const char *state_dir, const char *word,
                  struct ssb_error *err);
int run_file_open_path(struct run_file *ret, const char *path, struct ssb_error *err);
void run_file_done(struct run_file *r);
/* Returns whether the run's supervisor is running, because it keeps a lock on the record. */
bool run_file_live(int fd);

bool runs_id_valid(const char *id, size_t len);

#endif
