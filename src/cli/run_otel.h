/* run_otel.h - `run --otel`: the record goes to the owner's OpenTelemetry
 * collector when the run has ended (otel/otel.h). Whatever goes wrong there,
 * the run does not notice. */
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

/* Borrows q->owner. Warns where the owner's variables cannot be followed; then nothing is
 * exported. */
void run_otel_begin(struct run_otel *o, struct run_request *q);
/* The run is over and its result told. */
void run_otel_end(struct run_otel *o);

#endif
