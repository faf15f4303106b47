/* layers.h - the real state of each layer of the sandbox, as the trace reports it. */
#ifndef TRACE_LAYERS_H
#define TRACE_LAYERS_H

#include "base/json.h"
#include "policy/plan.h"

enum layer_state {
	LAYER_NOT_APPLIED,
	LAYER_ON,
	LAYER_OFF_BEST_EFFORT,
	LAYER_OTHER, /* a state that this version does not know */
};

struct layer_report {
	enum layer_state state;
	char detail[120]; /* for people: "cgroup v1: memory, pids, cpu", "ABI 7" */
};

/* Converts the text of a line that was read. Returns LAYER_ON for NULL. */
enum layer_state layers_state_from(const char *name);
/* Writes the object {name: {state, detail}}; it is empty if `layers` is NULL. */
void layers_write(struct json *j, const struct layer_report layers[LAYER_COUNT]);

#endif
