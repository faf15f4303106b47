/* trace_limits.h - bounds that belong to the form of the trace itself; what a
 * skill can make large is in base/limits.h. */
#ifndef AUDIT_TRACE_LIMITS_H
#define AUDIT_TRACE_LIMITS_H

#include <stddef.h>

#define TRACE_SCHEMA_VERSION 1
/* Of MAX_TRACE_EVENTS, kept for how the run ended. */
#define TRACE_RESERVE 32
/* Kept in memory for policy_violations, and their bytes as JSON. */
#define TRACE_MAX_VIOLATIONS  1000
#define TRACE_VIOLATION_BYTES ((size_t)256 * 1024)
/* Room for everything after the events but the violations. */
#define TRACE_TAIL_BYTES ((size_t)16 * 1024)

#endif
