/* trace_limits.h - caps that belong to the form of the trace. Caps on what a skill can make large
 * are in base/limits.h. */
#ifndef TRACE_TRACE_LIMITS_H
#define TRACE_TRACE_LIMITS_H

#include <stddef.h>

#define TRACE_SCHEMA_VERSION 1

/* The record, trace.jsonl */
#define TRACE_LINE_BYTES ((size_t)64 * 1024) /* of one line, with its newline */
#define TRACE_MAX_LINES  200000              /* further events are counted, not written */
#define TRACE_MAX_BYTES  ((size_t)128 << 20)
/* The part of both that is reserved for the counted repeats and the lines that are not events;
 * room.c divides the rest. */
#define TRACE_RESERVE_LINES (FOLD_ENTRIES + 64)
#define TRACE_RESERVE_BYTES ((size_t)2 << 20)
/* The most that a line has besides message and data, and the size of a whole repeat. */
#define TRACE_LINE_FRAME  256
#define TRACE_REPEAT_LINE 384
/* Lines are written together; a line waits for others no longer than this. */
#define RECORD_BUFFER   ((size_t)256 * 1024)
#define RECORD_WAIT_MS  100
#define TRACE_MAX_ARGS  256                 /* of one exec */
#define TRACE_ARG_BYTES 8192                /* of all arguments together */
#define TRACE_ENV_BYTES ((size_t)48 * 1024) /* of the names in the line of the environment */

/* Attempts that are remembered to count their repeats, in sets of FOLD_WAYS. */
#define FOLD_WAYS    8
#define FOLD_SETS    512
#define FOLD_ENTRIES (FOLD_SETS * FOLD_WAYS)

/* The line of a skill's files */
#define FILES_LIST_BYTES ((size_t)48 * 1024) /* of the list of files */
#define FILES_WAIT_MS    1500                /* for the digests, at the end of the run */

/* The document, trace.json */
#define DOCUMENT_BUFFER      ((size_t)64 * 1024)
#define DOCUMENT_EVENT_BYTES ((size_t)32 << 20) /* of all MAX_TRACE_EVENTS */
/* Violations that are kept in memory for policy_violations, and their bytes as JSON. */
#define TRACE_MAX_VIOLATIONS  1200
#define TRACE_VIOLATION_BYTES ((size_t)426 * 1024)
/* Room for everything after the events except the violations. */
#define TRACE_TAIL_BYTES ((size_t)16 * 1024)

#endif
