/* layers.h - what became of each layer of the sandbox, as the trace tells it. */
#ifndef TRACE_LAYERS_H
#define TRACE_LAYERS_H

#include "base/json.h"
#include "policy/plan.h"

enum layer_state { LAYER_NOT_APPLIED, LAYER_ON, LAYER_OFF_BEST_EFFORT };

struct layer_report {
	enum layer_state state;
	char detail[120]; /* "cgroup v1: memory, pids, cpu", "ABI 7" */
};

/* The object {name: {state, detail}}; without reports it is empty. */
void layers_write(struct json *j, const struct layer_report layers[LAYER_COUNT]);

#endif
