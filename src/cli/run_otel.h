/* run_otel.h - `run --otel`: the record goes to the owner's OpenTelemetry
 * collector when the run has ended (audit/otel.h). Whatever goes wrong there,
 * the run does not notice. */
#ifndef CLI_RUN_OTEL_H
#define CLI_RUN_OTEL_H

#include "audit/otlp_env.h"
#include "policy/plan.h"
#include "skillsandbox.h"

struct run_otel {
	bool on;
	int record; /* the record, held open: -1 until there is one */
	struct owner owner;
	struct otel_config config;
	ssb_record_fn *next; /* who else looks on */
	void *next_arg;
};

#define RUN_OTEL_NONE                                                                              \
	{                                                                                          \
		.record = -1                                                                       \
	}

/* After everybody else who wants to see the record of `plan`. Warns where the
 * owner's variables cannot be followed; then nothing is exported. */
void run_otel_begin(struct run_otel *o, struct ssb_plan *plan);
/* The run is over and its result told. */
void run_otel_end(struct run_otel *o);

#endif
