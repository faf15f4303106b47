/* records.h - the records of the owner's runs, for whoever speaks to the server; and
 * word of those that grow (records_live.c).
 *
 * A run is known by its id, by the first characters of it, or as "last", and is looked
 * for in the owner's state directory: no other word opens anything. */
#ifndef SERVE_RECORDS_H
#define SERVE_RECORDS_H

#include "audit/reader.h"
#include "audit/run_facts.h"
#include "audit/runs.h"
#include "audit/verify.h"
#include "base/json.h"
#include "serve/serve.h"

struct records;

int records_new(struct serve *s, struct records **ret, struct ssb_error *err);
void records_free(struct records *r); /* accepts NULL */

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

/* What the run wrote to `kind` ("stdout", "stderr"), as far as the record and `room`
 * have it; false: there was more. */
bool record_output(const struct record *r, const char *kind, struct buf *out);

#endif
