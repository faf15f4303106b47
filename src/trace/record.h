/* record.h - the lines of a run's record: JSON Lines, each chained by SHA-256
 * to the one before (skillsandbox-trace(5)).
 *
 * Lines are collected and written many at a time. What cannot be written is
 * never written in part: after a failure the file ends with the last whole
 * line, and nothing follows it. */
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

/* How a line ends: the key, the hash in hexadecimal, quote, brace, newline. */
#define RECORD_HASH_KEY  ",\"hash\":\""
#define RECORD_HASH_HEX  (2 * (size_t)SHA256_BYTES)
#define RECORD_HASH_TAIL (sizeof(RECORD_HASH_KEY) - 1 + RECORD_HASH_HEX + sizeof("\"}\n") - 1)

/* Wall clock and monotonic microseconds; tests give their own. */
typedef void record_clock(struct timespec *ret_wall, uint64_t *ret_mono_us);

struct record {
	int fd;              /* borrowed; -1 until there is a file */
	const char *path;    /* borrowed: for messages */
	record_clock *clock; /* CLOCK_REALTIME and CLOCK_MONOTONIC */
	struct buf out;      /* whole lines that are not written yet, then the one under way */
	struct json json;    /* the line under way */
	size_t line;         /* where it begins in out */
	uint64_t seq;        /* of the next line */
	uint64_t bytes;      /* of all lines so far */
	uint64_t written;    /* of them in the file */
	uint64_t begun_us;
	uint64_t ago_us;  /* how long before now the next line happened */
	uint64_t mono_us; /* of the last line, since the begin */
	int64_t wall_us;
	struct stamp stamp;
	uint8_t hash[SHA256_BYTES]; /* of the last line */
	struct ssb_error failure;   /* the first; SSB_OK until then */
};

void record_init(struct record *r);
void record_done(struct record *r);

/* Begins a line: the members that follow go to what is returned, and
 * record_end() finishes it. False: it was too long, and is taken back. */
struct json *record_begin(struct record *r, const char *kind);
/* The same, at the time of the last line: for the signature, whose own time
 * nothing vouches for. */
struct json *record_begin_same(struct record *r, const char *kind);
bool record_end(struct record *r);
/* Goes on with a chain whose lines are kept elsewhere: the next one is number
 * `seq`, behind the one with this hash, at this time. It is begun with
 * record_begin_same(), and is in r->out when it is ended. */
void record_resume(struct record *r, uint64_t seq, const uint8_t hash[SHA256_BYTES],
                   int64_t wall_us, uint64_t mono_us);
/* The time of the line that was begun last. */
const char *record_time(const struct record *r);

/* Out of memory into the file; fails with the first failure for ever. */
int record_flush(struct record *r);
/* And on the disk. */
int record_sync(struct record *r);

#endif
