/* run_json.h - writes the short form of a run, for programs. */
#ifndef REPORT_RUN_JSON_H
#define REPORT_RUN_JSON_H

#include "trace/run_facts.h"
#include "base/json.h"

/* Writes the facts of a run as one JSON object. */
void run_json(struct json *j, const struct run_facts *f);

#endif
