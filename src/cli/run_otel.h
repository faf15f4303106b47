/* run_otel.h - `run --otel`: sends the record to the owner's OpenTelemetry collector when the run
 * has ended (otel/otel.h). A failure of the export never affects the run. */
#ifndef CLI_RUN_OTEL_H
#define CLI_RUN_OTEL_H

#include "otel/otel_config.h"
#include "sandbox/sandbox.h"

struct run_otel {
	bool on;
	int record; /* fd of the record; -1 until the record exists */
	const struct owner *owner;
	struct otel_config config;
};

#define RUN_OTEL_NONE                                                                              \
	{                                                                                          \
		.record = -1                                                                       \
	}

/* Borrows q->owner. If the owner's environment variables are wrong, it prints a warning and nothing
 * is exported. */
void run_otel_begin(struct run_otel *o, struct run_request *q);
/* Must be called after the run is over and its result is printed. */
void run_otel_end(struct run_otel *o);

#endif
