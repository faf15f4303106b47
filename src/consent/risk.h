/* risk.h - what could go wrong with a plan, for the person who decides about it. Pure.
 *
 *   low     nothing that the skill does outlives it, and nothing leaves
 *   medium  something outlives it or leaves
 *   high    what it can read can also leave, or a layer of the sandbox is missing */
#ifndef CONSENT_RISK_H
#define CONSENT_RISK_H

#include "base/json.h"
#include "policy/plan.h"

/* Returns "low", "medium" or "high": the level of the worst reason. */
const char *risk_level(const struct ssb_plan *p);
/* Writes a member of an open object: "risk":{"level":"high","reasons":["..."]} */
void risk_json(struct json *j, const struct ssb_plan *p);
void risk_text(struct buf *out, const struct ssb_plan *p);

#endif
