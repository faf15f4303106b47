/* records_priv.h - what records.c, record_pages.c and records_live.c have in common. */
#ifndef SERVE_RECORDS_PRIV_H
#define SERVE_RECORDS_PRIV_H

#include "base/limits.h"
#include "serve/records.h"

struct records_live;

/* What one errand found out for the next one: records_note(). */
struct records_memo {
	/* The last record that was verified, and its state then: the pages of one record are read
	 * one after the other, and each says whether the record can be believed. */
	char checked_id[RUN_ID_SIZE];
	uint64_t checked_size;
	int64_t checked_mtime;
	struct verify_result checked;
	/* Where the last page of lines ended. */
	char page_id[RUN_ID_SIZE];
	uint64_t page_line;
	uint64_t page_offset;
	char live_id[RUN_ID_SIZE]; /* the last record that was opened, if its run is running */
};

struct records {
	struct serve *serve;
	struct records_memo memo;
	struct records_live *live;
	/* Started by this server; the oldest one is overwritten. */
	char started[MAX_STARTED][RUN_ID_SIZE];
	size_t n_started;
};

/* May clients see the run whose record is open? */
bool records_visible(const struct serve *s, int fd, const char *id);

/* records_live.c */
int records_live_new(struct serve *s, struct records_live **ret, struct ssb_error *err);
void records_live_free(struct records_live *l); /* accepts NULL */
/* The run is running, and clients may subscribe to it. */
void records_live_follow(struct records_live *l, const char *id);
/* O_RDONLY fd of the record of a run, by its whole id; -1 with errno. */
int records_live_open(const struct records_live *l, const char *id);
int records_live_fd(const struct records_live *l); /* of the directory of the runs; -1: none */

#endif
