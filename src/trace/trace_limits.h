/* trace_limits.h - bounds that belong to the form of the trace itself; what a
 * skill can make large is in base/limits.h. */
#ifndef TRACE_TRACE_LIMITS_H
#define TRACE_TRACE_LIMITS_H

#include <stddef.h>

#define TRACE_SCHEMA_VERSION 1

/* The record, trace.jsonl */
#define TRACE_LINE_BYTES ((size_t)64 * 1024) /* of one line, with its newline */
#define TRACE_MAX_LINES  200000              /* further events are counted, not written */
#define TRACE_MAX_BYTES  ((size_t)128 << 20)
/* Of both, kept for the counted repeats and the lines that are no events; the rest is
 * divided by room.c. */
#define TRACE_RESERVE_LINES (FOLD_ENTRIES + 64)
#define TRACE_RESERVE_BYTES ((size_t)2 << 20)
/* The most that a line has beside message and data, or a repeat all in all. */
#define TRACE_LINE_FRAME  256
#define TRACE_REPEAT_LINE 384
/* Lines that are written at once, and how long one may wait for others. */
#define RECORD_BUFFER   ((size_t)256 * 1024)
#define RECORD_WAIT_MS  100
#define TRACE_MAX_ARGS  256                 /* of one exec */
#define TRACE_ARG_BYTES 8192                /* of all of them */
#define TRACE_ENV_BYTES ((size_t)48 * 1024) /* of the names of variables in their line */

/* Attempts that are remembered to count their repeats: sets of so many. */
#define FOLD_WAYS    8
#define FOLD_SETS    512
#define FOLD_ENTRIES (FOLD_SETS * FOLD_WAYS)

/* The line of a skill's files */
#define FILES_LIST_BYTES ((size_t)48 * 1024) /* of the list in it */
#define FILES_WAIT_MS    1500                /* for the digests, at the end of the run */

/* The document, trace.json */
#define DOCUMENT_BUFFER      ((size_t)64 * 1024)
#define DOCUMENT_EVENT_BYTES ((size_t)32 << 20) /* of MAX_TRACE_EVENTS together */
/* Kept in memory for policy_violations, and their bytes as JSON. */
#define TRACE_MAX_VIOLATIONS  1200
#define TRACE_VIOLATION_BYTES ((size_t)426 * 1024)
/* Room for everything after the events but the violations. */
#define TRACE_TAIL_BYTES ((size_t)16 * 1024)

#endif
