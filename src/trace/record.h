/* record.h - writes the lines of a run's record: JSON Lines, each chained by SHA-256 to the line
 * before (skillsandbox-trace(5)).
 *
 * Lines are collected and written many at a time. A line is never written in part: after a failure
 * the file ends with the last whole line, and nothing is written after it. */
#ifndef TRACE_RECORD_H
#define TRACE_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/stamp.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/sha256.h"
#include "skillsandbox.h"

/* The end of a line: the key "hash", the hash in hexadecimal, a quote, a brace and a newline. */
#define RECORD_HASH_KEY  ",\"hash\":\""
#define RECORD_HASH_HEX  (2 * (size_t)SHA256_BYTES)
#define RECORD_HASH_TAIL (sizeof(RECORD_HASH_KEY) - 1 + RECORD_HASH_HEX + sizeof("\"}\n") - 1)

/* Returns the times of the wall clock and of the monotonic clock. Tests supply their own
 * function. */
typedef void record_clock(struct timespec *ret_wall, uint64_t *ret_mono_us);

struct record {
	int fd;              /* borrowed; -1 until there is a file */
	const char *path;    /* borrowed: for messages */
	record_clock *clock; /* CLOCK_REALTIME and CLOCK_MONOTONIC */
	struct buf out;      /* whole lines that are not written yet, then the current line */
	struct json json;    /* the current line */
	size_t line;         /* where the current line begins in out */
	uint64_t seq;        /* number of the next line */
	uint64_t bytes;      /* size of all lines so far */
	uint64_t written;    /* bytes that are in the file */
	uint64_t begun_us;
	uint64_t ago_us;  /* how long ago the event of the next line happened */
	uint64_t mono_us; /* time of the last line, since the record's beginning */
	int64_t wall_us;
	struct stamp stamp;
	uint8_t hash[SHA256_BYTES]; /* of the last line */
	struct ssb_error failure;   /* the first failure; SSB_OK until then */
};

void record_init(struct record *r);
void record_done(struct record *r);

/* Begins a line. The caller writes its members into the returned JSON; record_end() finishes the
 * line. If the line is too long, record_end() removes it and returns false. */
struct json *record_begin(struct record *r, const char *kind);
/* Like record_begin(), but with the time of the last line. This is for the signature, because
 * nothing could prove the signature's own time. */
struct json *record_begin_same(struct record *r, const char *kind);
bool record_end(struct record *r);
/* Continues a chain whose earlier lines are stored elsewhere. The next line will have the number
 * `seq` and the times `wall_us` and `mono_us`. `hash` is the hash of the line before it, from which
 * its own hash will be computed. The caller must begin the line with record_begin_same(); after
 * record_end() the line is in r->out. */
void record_resume(struct record *r, uint64_t seq, const uint8_t hash[SHA256_BYTES],
                   int64_t wall_us, uint64_t mono_us);
/* Returns the time of the line that was begun last, as text. */
const char *record_time(const struct record *r);

/* Writes all whole lines into the file. After a failure, every later call fails, too, and
 * r->failure stays the first one. */
int record_flush(struct record *r);
/* Like record_flush(), and also syncs the file to the disk. */
int record_sync(struct record *r);

#endif
