/* otlp_env.h - where the owner wants the telemetry of a run: the OTEL_*
 * variables of the owner's environment, and nothing else. No manifest, no
 * policy file and no skill has a say in it. */
#ifndef OTEL_OTLP_ENV_H
#define OTEL_OTLP_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "otel/otlp.h"
#include "otel/otlp_limits.h"
#include "policy/plan.h"
#include "skillsandbox.h"

#define OTLP_TRACE_ID 16
#define OTLP_SPAN_ID  8

struct otlp_pair {
	char *name;
	char *value;
};

struct otlp_pairs {
	struct otlp_pair v[OTLP_MAX_PAIRS];
	size_t n;
};

/* Where one signal goes. The headers may hold secrets: they are sent, and
 * shown to nobody. */
struct otlp_target {
	bool on;
	bool tls;
	char host[256]; /* without brackets */
	char port[6];
	char path[OTLP_MAX_URL]; /* with its query */
	const struct otlp_format *format;
	uint64_t timeout_ms;
	struct otlp_pairs headers;
	const char *ca; /* borrowed from the environment; NULL: the system's */
	const char *cert;
	const char *key;
};

struct otel_config {
	struct otlp_target traces;
	struct otlp_target logs;
	const char *service; /* borrowed */
	struct otlp_pairs resource;
	bool has_parent; /* TRACEPARENT */
	uint8_t trace_id[OTLP_TRACE_ID];
	uint8_t parent_id[OTLP_SPAN_ID];
	uint8_t flags;
	const char *state; /* TRACESTATE, borrowed; NULL: none */
	char note[200];    /* something that was asked for and left out; "" if nothing */
};

/* Borrows the owner's environment. Fails where a run could not be exported as
 * the owner wants; nothing is `on` where the owner wants no export. `ret` is to
 * be given to otel_config_done() where it succeeds. */
int otel_config_load(struct otel_config *ret, const struct owner *owner, struct ssb_error *err);
/* The same for a place that is named elsewhere: `url` is the base of both signals
 * (what follows it, /v1/logs or /v1/traces, may stand there already). The
 * environment says how: headers, protocol, time-out, certificates, the resource;
 * not where, whether, or within which trace. */
int otel_config_at(struct otel_config *ret, const struct owner *owner, const char *url,
                   struct ssb_error *err);
void otel_config_done(struct otel_config *c);

/* "https://host:4318" for people. */
#define OTLP_WHERE_SIZE 300
void otlp_target_where(const struct otlp_target *t, char ret[OTLP_WHERE_SIZE]);

#endif
