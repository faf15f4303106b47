/* otel_config.h - reads the owner's settings for telemetry from the OTEL_* variables of the owner's
 * environment. No manifest, no policy file and no skill can change these settings. */
#ifndef OTEL_OTEL_CONFIG_H
#define OTEL_OTEL_CONFIG_H

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

/* Parses "a=b,c=d", with percent-encoded values. If `headers` is true, fails if a pair cannot be
 * sent as an HTTP header. The error never repeats the text, which may be a secret. */
int otlp_pairs_parse(struct otlp_pairs *ret, const char *text, bool headers, const char *var,
                     struct ssb_error *err);
void otlp_pairs_done(struct otlp_pairs *p); /* wipes the values */

/* The destination of one signal. The headers may contain secrets, so they are sent but never
 * shown. */
struct otlp_target {
	bool on;
	bool tls;
	char host[256]; /* without brackets */
	char port[6];
	char path[OTLP_MAX_URL]; /* including the query */
	const struct otlp_format *format;
	uint64_t timeout_ms;
	struct otlp_pairs headers;
	const char *ca; /* borrowed from the environment; NULL: use the system's certificates */
	const char *cert;
	const char *key;
};

/* Sets TLS, host, port and path from a URL, and adds `append` to the path. Fails for other schemes
 * than http and https, and for URLs with a user name or a fragment. The error does not repeat the
 * URL. */
int otlp_target_parse(struct otlp_target *ret, const char *url, const char *append, const char *var,
                      struct ssb_error *err);

/* Writes the destination for people, as in "https://host:4318". */
#define OTLP_WHERE_SIZE 300
void otlp_target_where(const struct otlp_target *t, char ret[OTLP_WHERE_SIZE]);

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
	char note[200];    /* the first setting that was ignored, and why; "": all were used */
};

/* Reads the settings, and borrows the owner's environment. Fails if a run could not be exported as
 * the owner wants. If the owner wants no export, it succeeds and no target is `on`. After success
 * the caller must call otel_config_done(). */
int otel_config_load(struct otel_config *ret, const struct owner *owner, struct ssb_error *err);
/* Like otel_config_load(), but for the collector at `url`, the base of both signals (it
 * may already end in /v1/logs or /v1/traces). The environment supplies headers, protocol,
 * time limit, certificates and resource. It decides neither the destination nor whether
 * to export, and the parent trace is not used. */
int otel_config_at(struct otel_config *ret, const struct owner *owner, const char *url,
                   struct ssb_error *err);
void otel_config_done(struct otel_config *c);

#endif
