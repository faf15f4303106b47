/* session_json.h - writes a session as JSON, for programs. Texts are written as the store contains
 * them: JSON escapes the characters that would end a string, but not those that could mislead a
 * reader. */
#ifndef REPORT_SESSION_JSON_H
#define REPORT_SESSION_JSON_H

#include <stdint.h>

#include "base/json.h"
#include "session/engine.h"

/* Writes id, times, state and totals, which both `list` and `show` print. */
void session_json_facts(struct json *j, const struct session *s);
/* Writes "budget", "limits", "thresholds" and "meters". */
void session_json_bounds(struct json *j, const struct session *s);
void session_json_time(struct json *j, const char *key, int64_t us); /* 0: null */

int64_t
session_age_us(const struct session *s); /* returns the age until now, or until the session ended */

#endif
