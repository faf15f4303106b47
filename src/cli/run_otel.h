/* run_otel.h - `run --otel`: sends the record to the owner's OpenTelemetry collector when the run
 * has ended (otel/otel.h). An error there never affects the run. */
#ifndef CLI_RUN_OTEL_H
#define CLI_RUN_OTEL_H

#include "otel/otel_config.h"
#include "sandbox/sandbox.h"

struct run_otel {
	bool on;
	int record; /* the record, held open: -1 until there is one */
	const struct owner *owner;
	struct otel_config config;
};

#define RUN_OTEL_NONE                                                                              \
	{                                                                                          \
		.record = -1                                                                       \
	}

/* Borrows q->owner. If the owner's variables are wrong it warns, and nothing is exported. */
void run_otel_begin(struct run_otel *o, struct run_request *q);
/* Must be called when the run is over and its result printed. */
void run_otel_end(struct run_otel *o);

#endif
