/* records_priv.h - declarations that records.c, record_pages.c and records_live.c share. */
#ifndef SERVE_RECORDS_PRIV_H
#define SERVE_RECORDS_PRIV_H

#include "base/limits.h"
#include "serve/records.h"

struct records_live;

/* Facts that one errand found and the next one can use.
 * records_note() brings them to the server. */
struct records_memo {
	/* The last record that was verified, and the record's size and time then. The result is
	 * used again, because clients read the pages of one record one after the other, and each
	 * page says whether the record was verified. */
	char checked_id[RUN_ID_SIZE];
	uint64_t checked_size;
	int64_t checked_mtime;
	struct verify_result checked;
	/* The record and the line at which the last page of lines ended. */
	char page_id[RUN_ID_SIZE];
	uint64_t page_line;
	uint64_t page_offset;
	char live_id[RUN_ID_SIZE]; /* the last record that was opened, if its run is running */
};

struct records {
	struct serve *serve;
	struct records_memo memo;
	struct records_live *live;
	/* Runs that this server started; the oldest one is overwritten. */
	char started[MAX_STARTED][RUN_ID_SIZE];
	size_t n_started;
};

/* Returns true if clients may see the run whose record is `fd`. */
bool records_visible(const struct serve *s, int fd, const char *id);

/* records_live.c */
int records_live_new(struct serve *s, struct records_live **ret, struct ssb_error *err);
void records_live_free(struct records_live *l); /* accepts NULL */
/* Watches a running run, to which clients may subscribe. */
void records_live_follow(struct records_live *l, const char *id);
/* Returns an O_RDONLY fd of the record of a run, found by its whole id; -1 with errno. */
int records_live_open(const struct records_live *l, const char *id);
int records_live_fd(const struct records_live *l); /* fd of the directory of the runs; -1: none */

#endif
