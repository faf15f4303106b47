/* otel.h - exports a finished run to the owner's OpenTelemetry collector.
 *
 * A separate process exports after the run has ended and its result was delivered. No process waits
 * for it, and the run does not depend on it. The process writes its result as a line into
 * <state_dir>/otel.log. It has low priority, limited memory, and one minute of time. */
#ifndef OTEL_OTEL_H
#define OTEL_OTEL_H

#include "otel/otel_config.h"
#include "policy/plan.h"

/* Starts the exporting process and returns at once. Borrows everything. */
void otel_start(int record_fd, const struct otel_config *c, const struct owner *owner);

#endif
