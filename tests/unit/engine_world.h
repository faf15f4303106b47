/* engine_world.h - a session in memory that is made from a policy (there is no store), and checks
 * of the engine's decisions. */
#ifndef TESTS_ENGINE_WORLD_H
#define TESTS_ENGINE_WORLD_H

#include <stdio.h>
#include <string.h>

#include "unit.h"
#include "base/own.h"
#include "session/engine.h"

#define USD(x) ((micros)((x)*1000000 + 0.5))
#define T0     1000000000000LL /* when the session began, in microseconds */
#define SECOND 1000000LL

/* The session `s` of the test, and its policy `p`. */
static struct world {
	struct session s;
	struct session_policy p;
} w;

/* Makes a session with the policy in `text`, which replaces the previous session. check() decides
 * at a time one second after the beginning of the session. */
static inline void begin(const char *text)
{
	struct ssb_diags *diags = ssb_diags_new();
	struct ssb_error err = { 0 };

	session_policy_done(&w.p);
	w = (struct world){ .s = { .id = "s", .created_us = T0 } };
	if (session_policy_parse("p.yaml", text, strlen(text), &w.p, diags, &err) < 0) {
		fail_msg("%s: %s", err.where, err.text);
	}
	ssb_diags_free(diags);
	w.s.policy = &w.p;
}

static inline struct verdict check(double usd)
{
	return engine_check(&w.s, USD(usd), T0 + SECOND);
}

static inline void expect(struct verdict v, bool allowed, enum session_act act, const char *code)
{
	if (v.allowed != allowed || v.act != act || strcmp(session_code_name(v.code), code) != 0) {
		fail_msg("%s %s %s: %s", v.allowed ? "allowed" : "refused", session_act_name(v.act),
		         session_code_name(v.code), v.reason);
	}
	assert_true(v.reason[0] != '\0' && strlen(v.reason) < SESSION_REASON);
}

#endif
