/* records.h - the records of the owner's runs, for whoever speaks to the server; and
 * word of those that grow (records_live.c).
 *
 * A run is known by its id, by the first characters of it, or as "last", and is looked
 * for in the owner's state directory: no other word opens anything. Only runs of skills
 * that are served, and those that this server started, are there for its clients, unless
 * the owner opens all (record_owner.c). */
#ifndef SERVE_RECORDS_H
#define SERVE_RECORDS_H

#include "trace/reader.h"
#include "trace/run_facts.h"
#include "trace/runs.h"
#include "trace/verify.h"
#include "base/json.h"
#include "serve/serve.h"

struct records;

int records_new(struct serve *s, struct records **ret, struct ssb_error *err);
void records_free(struct records *r); /* accepts NULL */

/* One of this server's own: it may be told of, whatever becomes of its skill. */
void records_started(struct records *r, const char *id);

/* Calls `fn` for each run that may be told of and whose id begins so, the newest first,
 * with its record open, until it returns false. Runs are looked for among the newest
 * MAX_LISTED_RUNS whose id begins so. */
typedef bool record_each_fn(void *arg, const struct run_entry *e, int fd);
int records_each(const struct serve *s, const char *begin, record_each_fn *fn, void *arg,
                 struct ssb_error *err);

/* What a process that was forked to look at records needs of the server (an fd; -1: none),
 * and what it found out on the way: put behind `out` there, taken from the end of it
 * here. Returns what is left of `len`. */
int records_fd(const struct records *r); /* accepts NULL */
void records_note(const struct records *r, struct buf *out);
size_t records_take_note(struct records *r, const char *data, size_t len);

struct record {
	struct run_file file;
	uint64_t size; /* when it was opened */
	int64_t mtime;
};

#define RECORD_NONE                                                                                \
	{                                                                                          \
		.file = RUN_FILE_NONE                                                              \
	}

/* SSB_E_NOT_FOUND or SSB_E_USAGE with what to write; the text is visible. */
int record_open(const struct serve *s, const char *word, struct record *ret, struct ssb_error *err);
/* The same for a whole id alone. */
int record_open_id(const struct serve *s, const char *id, struct record *ret,
                   struct ssb_error *err);
void record_close(struct record *r);

/* "run":{...}, "verified":{"state":...}: whose run it is, and whether the record can be
 * believed. What is too large to be checked on the way says so. */
void record_json_run(const struct record *r, struct json *j);
void record_json_verified(const struct serve *s, const struct record *r, struct json *j);

/* Lines from the `from`th on. */
struct record_ask {
	uint64_t from;
	size_t limit;
	const struct json_doc *kinds_doc;
	const struct json_node *kinds; /* an array of words; NULL: all */
	bool violations;               /* those only */
	size_t room;                   /* bytes of JSON */
};

struct record_page {
	size_t n;           /* lines that were told */
	uint64_t next;      /* line to go on with */
	bool more;          /* there may be some, now */
	const char *broken; /* why reading stopped there; NULL: it did not */
};

/* Calls `line` for each that fits, as one JSON object, visible. */
typedef void record_line_fn(void *arg, const char *json, size_t len);
int record_lines(const struct serve *s, const struct record *r, const struct record_ask *ask,
                 record_line_fn *line, void *arg, struct record_page *ret, struct ssb_error *err);

/* A page of what the run wrote, as the record has it: both streams from one place in the
 * record to another. */
struct output_page {
	struct buf out[2];  /* of stdout and stderr; caps are the caller's */
	bool more[2];       /* there is more of it, or may be */
	uint64_t next;      /* from where; 0: there is no more of either */
	const char *broken; /* why reading stopped there; NULL: it did not */
};
extern const char *const OUTPUT_KINDS[2];
/* -1: no page begins at `from`. */
int record_output(const struct record *r, uint64_t from, struct output_page *page);

#endif
