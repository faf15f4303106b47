/* run_json.h - a run in short, for programs. */
#ifndef REPORT_RUN_JSON_H
#define REPORT_RUN_JSON_H

#include "trace/run_facts.h"
#include "base/json.h"

/* Writes one object. */
void run_json(struct json *j, const struct run_facts *f);

#endif
