/* trace_limits.h - limits of the format of the trace. base/limits.h contains the limits of
 * everything that a skill can make large. */
#ifndef TRACE_TRACE_LIMITS_H
#define TRACE_TRACE_LIMITS_H

#include <stddef.h>

#define TRACE_SCHEMA_VERSION 1

/* The record, trace.jsonl */
#define TRACE_LINE_BYTES ((size_t)64 * 1024) /* bytes of one line, including its newline */
#define TRACE_MAX_LINES  200000              /* events that need more lines are only counted */
#define TRACE_MAX_BYTES  ((size_t)128 << 20)
/* The parts of TRACE_MAX_LINES and TRACE_MAX_BYTES that are reserved for the lines of repeats and
 * for the lines that are not events. room.c divides the rest. */
#define TRACE_RESERVE_LINES (FOLD_ENTRIES + 64)
#define TRACE_RESERVE_BYTES ((size_t)2 << 20)
/* TRACE_LINE_FRAME: the most bytes that a line has in addition to message and data.
 * TRACE_REPEAT_LINE: the most bytes of a line of repeats. */
#define TRACE_LINE_FRAME  256
#define TRACE_REPEAT_LINE 384
/* RECORD_BUFFER: bytes of the buffer in which lines wait to be written together. RECORD_WAIT_MS:
 * how long a line waits at most. */
#define RECORD_BUFFER   ((size_t)256 * 1024)
#define RECORD_WAIT_MS  100
#define TRACE_MAX_ARGS  256                 /* arguments of one exec */
#define TRACE_ARG_BYTES 8192                /* bytes of all arguments together */
#define TRACE_ENV_BYTES ((size_t)48 * 1024) /* bytes of names in the line about the environment */

/* The most attempts whose repeats can be counted at a time. The table is divided into sets of
 * FOLD_WAYS entries. */
#define FOLD_WAYS    8
#define FOLD_SETS    512
#define FOLD_ENTRIES (FOLD_SETS * FOLD_WAYS)

/* The line of a skill's files */
#define FILES_LIST_BYTES ((size_t)48 * 1024) /* bytes of the list of files */
#define FILES_WAIT_MS    1500                /* how long the end of the run waits for the digests */

/* The document, trace.json */
#define DOCUMENT_BUFFER      ((size_t)64 * 1024)
#define DOCUMENT_EVENT_BYTES ((size_t)32 << 20) /* bytes of all MAX_TRACE_EVENTS */
/* The most violations that are kept in memory for policy_violations, and the most bytes of their
 * JSON. */
#define TRACE_MAX_VIOLATIONS  1200
#define TRACE_VIOLATION_BYTES ((size_t)426 * 1024)
/* Bytes for everything after the events, except the violations. */
#define TRACE_TAIL_BYTES ((size_t)16 * 1024)

#endif
