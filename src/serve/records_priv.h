/* records_priv.h - what is remembered between two questions about records. */
#ifndef SERVE_RECORDS_PRIV_H
#define SERVE_RECORDS_PRIV_H

#include "base/limits.h"
#include "serve/records.h"

struct live;

/* It outlives the process that looked: see records_note(). */
struct memo {
	/* The last one that was checked, as it was then: pages of one record come one
	 * after the other, and each says whether it can be believed. */
	char checked_id[RUN_ID_SIZE];
	uint64_t checked_size;
	int64_t checked_mtime;
	struct verify_result checked;
	/* Where the last page of lines ended. */
	char page_id[RUN_ID_SIZE];
	uint64_t page_line;
	uint64_t page_offset;
	char live_id[RUN_ID_SIZE]; /* of the last that was opened, if it lives */
};

struct records {
	struct serve *serve;
	struct memo memo;
	struct live *live;
	/* Those that this server started, the oldest overwritten. */
	char started[MAX_STARTED][RUN_ID_SIZE];
	size_t n_started;
};

/* record_owner.c */
/* The run may be told of. The record is open. */
bool record_told(const struct serve *s, int fd, const char *id);
/* "last", or the first characters of an id, among those that may. */
int record_find(const struct serve *s, const char *word, char ret_id[RUN_ID_SIZE],
                struct ssb_error *err);

/* records_live.c */
int records_live_new(struct serve *s, struct live **ret, struct ssb_error *err);
void records_live_free(struct live *l); /* accepts NULL */
/* It lives, and may be subscribed to. */
void records_live_follow(struct live *l, const char *id);
/* O_RDONLY fd of the record of a run, by its whole id; -1 with errno. */
int records_live_open(const struct live *l, const char *id);
int records_live_fd(const struct live *l); /* of the directory of the runs; -1: none */

#endif
