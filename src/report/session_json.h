/* session_json.h - a session, for programs. Texts are as the store holds them: JSON escapes what
 * ends a string, not what misleads a reader. */
#ifndef REPORT_SESSION_JSON_H
#define REPORT_SESSION_JSON_H

#include <stdint.h>

#include "base/json.h"
#include "session/engine.h"

/* Writes id, times, state and totals: the members that list and show have in common. */
void session_json_facts(struct json *j, const struct session *s);
/* Writes "budget", "limits", "thresholds" and "meters". */
void session_json_bounds(struct json *j, const struct session *s);
void session_json_time(struct json *j, const char *key, int64_t us); /* 0: null */

int64_t session_age_us(const struct session *s); /* until now, or until it ended */

#endif
