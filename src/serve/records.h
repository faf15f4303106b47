/* records.h - the records of runs, for the clients of the server, and news about records that grow
 * (records_live.c).
 *
 * A run is named by its id, by the first characters of its id, or by "last". Any other word is
 * refused. Runs are searched only in the owner's state directory. Clients see only the runs of
 * skills that are served and the runs that this server started, unless the owner shows all
 * (--all-runs). */
#ifndef SERVE_RECORDS_H
#define SERVE_RECORDS_H

#include "base/json.h"
#include "serve/serve.h"
#include "trace/reader.h"
#include "trace/run_facts.h"
#include "trace/runs.h"
#include "trace/verify.h"

struct records;

int records_new(struct serve *s, struct records **ret, struct ssb_error *err);
void records_free(struct records *r); /* accepts NULL */

/* Notes that this server started the run: clients may see it, even if its skill is removed. */
void records_started(struct records *r, const char *id);

/* Calls `fn` with an open record for each run that clients may see and whose id begins with
 * `begin`, the newest first, until `fn` returns false. Looks only at the newest MAX_LISTED_RUNS
 * runs. */
typedef bool records_each_fn(void *arg, const struct run_entry *e, int fd);
int records_each(const struct serve *s, const char *begin, records_each_fn *fn, void *arg,
                 struct ssb_error *err);

/* records_fd() returns the fd that an errand about records needs from the server; -1: there is
 * none. The errand appends the facts that it found to `out` with records_note(). In the server,
 * records_take_note() reads these facts from the end of the data, and returns the length of the
 * data before them. */
int records_fd(const struct records *r); /* accepts NULL */
void records_note(const struct records *r, struct buf *out);
size_t records_take_note(struct records *r, const char *data, size_t len);

struct served_record {
	struct run_file file;
	uint64_t size; /* when the record was opened */
	int64_t mtime;
};

#define SERVED_RECORD_NONE                                                                         \
	{                                                                                          \
		.file = RUN_FILE_NONE                                                              \
	}

/* Opens the record that the word names. The error is SSB_E_NOT_FOUND, or SSB_E_USAGE with a text
 * that says what to write. The text has only visible characters. */
int records_open(const struct serve *s, const char *word, struct served_record *ret,
                 struct ssb_error *err);
/* Like records_open(), but accepts only a whole id. */
int records_open_id(const struct serve *s, const char *id, struct served_record *ret,
                    struct ssb_error *err);
void records_close(struct served_record *r);

/* Writes "run":{...}: the facts about the run. */
void records_put_run(const struct served_record *r, struct json *j);
/* Writes "verified":{"state":...}: the result of verifying the record. */
void records_put_verified(const struct serve *s, const struct served_record *r, struct json *j);

struct records_ask {
	uint64_t from; /* number of the first line to read */
	size_t limit;  /* maximum number of lines */
	const struct json_doc *kinds_doc;
	const struct json_node *kinds; /* an array of words; NULL: all */
	bool violations;               /* only violations */
	size_t room;                   /* most bytes of JSON */
};

struct records_page {
	size_t n;           /* lines */
	uint64_t next;      /* number of the line after the page */
	bool more;          /* more lines may exist already */
	const char *broken; /* why reading stopped at this line; NULL: it did not stop */
};

/* Called with each line that fits on the page, as one JSON object. Hidden characters are visible
 * in it. */
typedef void records_line_fn(void *arg, const char *json, size_t len);
int records_lines(const struct serve *s, const struct served_record *r,
                  const struct records_ask *ask, records_line_fn *line, void *arg,
                  struct records_page *ret, struct ssb_error *err);

/* A page of the run's output: both streams, between two positions in the record. */
struct output_page {
	struct buf out[2];  /* stdout and stderr; the caller sets their limits */
	bool more[2];       /* the stream continues, or may continue, after the page */
	uint64_t next;      /* position of the next page; 0: there is none */
	const char *broken; /* why reading stopped at this place; NULL: it did not stop */
};
extern const char *const OUTPUT_KINDS[2];
/* Reads a page. Returns -1 if no page begins at `from`. */
int records_output(const struct served_record *r, uint64_t from, struct output_page *page);

#endif
