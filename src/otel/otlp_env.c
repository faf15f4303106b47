#include "otel/otlp_env.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "otel/otlp_url.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/own.h"
#include "policy/owner.h"

/* A variable that is set to nothing is not set. */
static const char *env(const struct owner *o, const char *name)
{
	const char *v = owner_getenv(o, name);

	return v != NULL && v[0] != '\0' ? v : NULL;
}

/* The variable of one signal, or else that of all. */
struct asked {
	const char *value; /* NULL: neither is set */
	char var[64];
	bool own; /* the signal's */
};

static struct asked ask(const struct owner *o, const char *signal, const char *what)
{
	struct asked a = { .own = true };

	snprintf(a.var, sizeof(a.var), "OTEL_EXPORTER_OTLP_%s_%s", signal, what);
	a.value = env(o, a.var);
	if (a.value == NULL) {
		snprintf(a.var, sizeof(a.var), "OTEL_EXPORTER_OTLP_%s", what);
		a.value = env(o, a.var);
		a.own = false;
	}
	return a;
}

static void note(struct otel_config *c, const char *var, const char *why)
{
	if (c->note[0] == '\0') {
		snprintf(c->note, sizeof(c->note), "%s %s", var, why);
	}
}

static int load_protocol(struct otlp_target *t, const struct owner *o, const char *signal,
                         struct ssb_error *err)
{
	struct asked a = ask(o, signal, "PROTOCOL");

	t->format = &OTLP_PROTO;
	if (a.value == NULL || strcmp(a.value, "http/protobuf") == 0) {
		return 0;
	}
	t->format = &OTLP_JSON;
	if (strcmp(a.value, "http/json") == 0) {
		return 0;
	}
	return ssb_fail(err, SSB_E_USAGE, 0, a.var,
	                "'%.40s' is not spoken here; set http/protobuf or http/json, and the "
	                "endpoint for it (port 4318)",
	                a.value);
}

static void load_timeout(struct otlp_target *t, struct otel_config *c, const struct owner *o,
                         const char *signal)
{
	struct asked a = ask(o, signal, "TIMEOUT");
	size_t digits = a.value != NULL ? strspn(a.value, "0123456789") : 0;

	t->timeout_ms = OTLP_TIMEOUT_MS;
	if (a.value == NULL) {
		return;
	}
	if (digits == 0 || digits > 9 || a.value[digits] != '\0') {
		note(c, a.var, "is no number of milliseconds; 10000 is taken");
		return;
	}
	t->timeout_ms = strtoull(a.value, NULL, 10);
	if (t->timeout_ms == 0 || t->timeout_ms > OTLP_MAX_TIMEOUT_MS) {
		t->timeout_ms = OTLP_MAX_TIMEOUT_MS;
	}
}

/* How it is sent; where to is known. */
static int load_manner(struct otlp_target *t, struct otel_config *c, const struct owner *o,
                       const char *signal, struct ssb_error *err)
{
	struct asked headers = ask(o, signal, "HEADERS");
	struct asked compression = ask(o, signal, "COMPRESSION");

	if (compression.value != NULL && strcmp(compression.value, "none") != 0) {
		note(c, compression.var, "asks for compression; it is sent uncompressed");
	}
	load_timeout(t, c, o, signal);
	t->ca = ask(o, signal, "CERTIFICATE").value;
	t->cert = ask(o, signal, "CLIENT_CERTIFICATE").value;
	t->key = ask(o, signal, "CLIENT_KEY").value;
	if (load_protocol(t, o, signal, err) != 0) {
		return -1;
	}
	return headers.value == NULL
	               ? 0
	               : otlp_pairs_parse(&t->headers, headers.value, true, headers.var, err);
}

static int load_target(struct otlp_target *t, struct otel_config *c, const struct owner *o,
                       const char *signal, struct ssb_error *err)
{
	bool traces = strcmp(signal, "TRACES") == 0;
	const char *exporter = env(o, traces ? "OTEL_TRACES_EXPORTER" : "OTEL_LOGS_EXPORTER");
	struct asked url = ask(o, signal, "ENDPOINT");
	const char *append = traces ? "/v1/traces" : "/v1/logs";

	t->on = exporter == NULL || strcmp(exporter, "none") != 0;
	if (!t->on) {
		return 0;
	}
	return otlp_url_parse(t, url.value != NULL ? url.value : "http://localhost:4318",
	                      url.own ? "" : append, url.var, err) == 0
	               ? load_manner(t, c, o, signal, err)
	               : -1;
}

static bool is_zero(const uint8_t *p, size_t n)
{
	uint8_t all = 0;

	for (size_t i = 0; i < n; i++) {
		all |= p[i];
	}
	return all == 0;
}

/* Sampled, and a random trace id. Others have no meaning yet, and are not passed on. */
#define PARENT_FLAGS 0x03

/* "00-<trace id>-<span id>-<flags>"; later versions may have more behind. */
static bool parse_parent(struct otel_config *c, const char *s)
{
	uint8_t version = 0;
	size_t len = strlen(s);

	if (len < 55 || s[2] != '-' || s[35] != '-' || s[52] != '-' ||
	    hex_decode(s, 2, &version, 1) != 0 || version == 0xff ||
	    (len > 55 && (version == 0 || s[55] != '-')) ||
	    hex_decode(s + 3, 32, c->trace_id, sizeof(c->trace_id)) != 0 ||
	    hex_decode(s + 36, 16, c->parent_id, sizeof(c->parent_id)) != 0 ||
	    hex_decode(s + 53, 2, &c->flags, 1) != 0) {
		return false;
	}
	c->flags &= PARENT_FLAGS;
	return !is_zero(c->trace_id, sizeof(c->trace_id)) &&
	       !is_zero(c->parent_id, sizeof(c->parent_id));
}

static void load_parent(struct otel_config *c, const struct owner *o)
{
	const char *parent = env(o, "TRACEPARENT");
	const char *state = env(o, "TRACESTATE");

	c->flags = 1;
	if (parent == NULL) {
		return;
	}
	c->has_parent = parse_parent(c, parent);
	if (!c->has_parent) {
		c->flags = 1;
		note(c, "TRACEPARENT", "is not valid, and is not used");
	} else if (state != NULL && strlen(state) <= OTLP_MAX_STATE) {
		c->state = state;
	}
}

static void load_resource(struct otel_config *c, const struct owner *o)
{
	struct ssb_error err = { 0 };
	const char *text = env(o, "OTEL_RESOURCE_ATTRIBUTES");

	c->service = env(o, "OTEL_SERVICE_NAME");
	if (text != NULL && otlp_pairs_parse(&c->resource, text, false, "", &err) != 0) {
		note(c, "OTEL_RESOURCE_ATTRIBUTES", "cannot be read, and is not used");
	}
	for (size_t i = 0; c->service == NULL && i < c->resource.n; i++) {
		if (strcmp(c->resource.v[i].name, "service.name") == 0) {
			c->service = c->resource.v[i].value;
		}
	}
	if (c->service == NULL) {
		c->service = "skillsandbox";
	}
}

int otel_config_load(struct otel_config *ret, const struct owner *owner, struct ssb_error *err)
{
	const char *disabled = env(owner, "OTEL_SDK_DISABLED");
	struct otel_config c = { 0 };

	if (disabled != NULL && strcasecmp(disabled, "true") == 0) {
		*ret = c;
		return 0;
	}
	if (load_target(&c.traces, &c, owner, "TRACES", err) != 0 ||
	    load_target(&c.logs, &c, owner, "LOGS", err) != 0) {
		otel_config_done(&c);
		return -1;
	}
	load_resource(&c, owner);
	load_parent(&c, owner);
	/* The caller's trace is not kept: nothing of it is, as a sampler would have
	 * it. What was decided is told all the same. */
	c.traces.on = c.traces.on && (c.flags & 1) != 0;
	*ret = c;
	return 0;
}

int otel_config_at(struct otel_config *ret, const struct owner *owner, const char *url,
                   struct ssb_error *err)
{
	struct otel_config c = { .flags = 1, .traces.on = true, .logs.on = true };
	char base[OTLP_MAX_URL];

	if (otlp_url_base(url, base, err) != 0 ||
	    otlp_url_parse(&c.traces, base, "/v1/traces", "otel", err) != 0 ||
	    otlp_url_parse(&c.logs, base, "/v1/logs", "otel", err) != 0 ||
	    load_manner(&c.traces, &c, owner, "TRACES", err) != 0 ||
	    load_manner(&c.logs, &c, owner, "LOGS", err) != 0) {
		otel_config_done(&c);
		return -1;
	}
	load_resource(&c, owner);
	*ret = c;
	return 0;
}

void otel_config_done(struct otel_config *c)
{
	otlp_pairs_done(&c->traces.headers);
	otlp_pairs_done(&c->logs.headers);
	otlp_pairs_done(&c->resource);
	*c = (struct otel_config){ 0 };
}

void otlp_target_where(const struct otlp_target *t, char ret[OTLP_WHERE_SIZE])
{
	bool v6 = strchr(t->host, ':') != NULL;

	snprintf(ret, OTLP_WHERE_SIZE, "%s://%s%s%s:%s", t->tls ? "https" : "http", v6 ? "[" : "",
	         t->host, v6 ? "]" : "", t->port);
}
