/* risk.h - what could go wrong with a plan, for whoever decides about it. Pure.
 *
 *   low     nothing of what it does outlives it, and nothing leaves
 *   medium  something does
 *   high    what it can read can also leave, or a wall is missing */
#ifndef CONSENT_RISK_H
#define CONSENT_RISK_H

#include "base/json.h"
#include "policy/plan.h"

const char *risk_level(const struct ssb_plan *p);
/* "risk":{"level":"high","reasons":["..."]} */
void risk_json(struct json *j, const struct ssb_plan *p);
void risk_text(struct buf *out, const struct ssb_plan *p);

#endif
