/* otlp_limits.h - size and time limits of the export to a collector. */
#ifndef OTEL_OTLP_LIMITS_H
#define OTEL_OTLP_LIMITS_H

#include <stddef.h>

#define OTLP_MAX_TEXT    8192              /* bytes of one text */
#define OTLP_MAX_ARRAY   256               /* elements of one attribute */
#define OTLP_MAX_EVENTS  128               /* events of a span; further ones are only counted */
#define OTLP_BATCH       512               /* log records of one request */
#define OTLP_BATCH_BYTES ((size_t)1 << 20) /* bytes of a batch; one large record may exceed it */
#define OTLP_MAX_REQUEST ((size_t)4 << 20)

/* The owner's environment */
#define OTLP_MAX_URL        2048
#define OTLP_MAX_VALUE      16384 /* bytes of one variable */
#define OTLP_MAX_PAIRS      64    /* headers, or attributes of the resource */
#define OTLP_MAX_STATE      512   /* TRACESTATE */
#define OTLP_MAX_TIMEOUT_MS 60000

/* A server's answer */
#define OTLP_MAX_REPLY ((size_t)64 * 1024) /* head and body */

/* The process */
#define OTLP_TIMEOUT_MS     10000 /* limit for one request, if the owner sets none */
#define OTLP_TOTAL_MS       60000
#define OTLP_HARD_SECONDS   75 /* after this time an alarm ends the process */
#define OTLP_BACKOFF_MS     500
#define OTLP_BACKOFF_MAX_MS 8000
#define OTLP_MAX_REFUSED    3 /* after so many refused batches, no more are sent */
#define OTLP_MEMORY         ((size_t)256 << 20)
#define OTEL_LOG_BYTES      (256 * 1024) /* a longer file becomes otel.log.1 */

#endif
