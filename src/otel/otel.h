/* otel.h - the export of a finished run to the owner's OpenTelemetry collector.
 *
 * A process of its own does it, when the run has ended and its result is
 * delivered: nobody waits for it, nothing of the run depends on it, and what
 * becomes of it is a line in <state_dir>/otel.log. It has low priority, a cap
 * on its memory, and a minute. */
#ifndef OTEL_OTEL_H
#define OTEL_OTEL_H

#include "otel/otlp_env.h"
#include "policy/plan.h"

/* Returns at once. record_fd is borrowed; `c` and `owner` too. */
void otel_start(int record_fd, const struct otel_config *c, const struct owner *owner);

#endif
