/* otel_config.c - reads the OTEL_* variables of the owner's environment. */
#include "otel/otel_config.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/number.h"
#include "base/own.h"
#include "policy/owner.h"
#include "wire/http1_head.h"

#define ALNUM "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static int fail_url(const char *var, const char *why, struct ssb_error *err)
{
	return ssb_fail(err, SSB_E_USAGE, 0, var, "%s; write http://HOST:4318 or https://HOST",
	                why);
}

/* Reads a name, an address or [2001:db8::1]. Returns the rest of the text, or NULL if there is no
 * host. */
static const char *parse_host(struct otlp_target *t, const char *p)
{
	bool v6 = *p == '[';
	const char *begin = p + (v6 ? 1 : 0);
	size_t n = strspn(begin, v6 ? "0123456789abcdefABCDEF:.%" ALNUM : ALNUM ".-_");

	if (n == 0 || n >= sizeof(t->host) || (v6 && begin[n] != ']')) {
		return NULL;
	}
	memcpy(t->host, begin, n);
	t->host[n] = '\0';
	return begin + n + (v6 ? 1 : 0);
}

static const char *parse_port(struct otlp_target *t, const char *p)
{
	snprintf(t->port, sizeof(t->port), "%s", t->tls ? "443" : "80");
	if (*p != ':') {
		return p;
	}
	uint64_t port = 0;
	const char *rest = number_read(p + 1, UINT16_MAX, &port);
	if (rest == NULL || port == 0) {
		return NULL;
	}
	snprintf(t->port, sizeof(t->port), "%u", (unsigned)port);
	return rest;
}

static bool is_printable(const char *s)
{
	for (; *s != '\0'; s++) {
		if (*s <= ' ' || *s > '~') {
			return false;
		}
	}
	return true;
}

int otlp_target_parse(struct otlp_target *ret, const char *url, const char *append, const char *var,
                      struct ssb_error *err)
{
	struct otlp_target t = *ret;
	const char *p = url;

	t.tls = strncasecmp(url, "https://", 8) == 0;
	if (!t.tls && strncasecmp(url, "http://", 7) != 0) {
		return fail_url(var, "does not begin with http:// or https://", err);
	}
	p += t.tls ? 8 : 7;
	if (strlen(url) + strlen(append) >= sizeof(t.path) || !is_printable(url)) {
		return fail_url(var, "is too long, or has characters that a URL cannot have", err);
	}
	if (memchr(p, '@', strcspn(p, "/?#")) != NULL) {
		return ssb_fail(err, SSB_E_USAGE, 0, var,
		                "has a user name; put credentials into OTEL_EXPORTER_OTLP_HEADERS");
	}
	p = parse_host(&t, p);
	p = p != NULL ? parse_port(&t, p) : NULL;
	if (p == NULL || (*p != '\0' && *p != '/' && *p != '?') || strchr(p, '#') != NULL) {
		return fail_url(var, "has no host, an invalid port, or invalid text after the port",
		                err);
	}
	size_t path = strcspn(p, "?");
	size_t keep = path;
	while (append[0] != '\0' && keep > 0 && p[keep - 1] == '/') {
		keep--;
	}
	snprintf(t.path, sizeof(t.path), "%.*s%s%s", (int)keep, p,
	         append[0] == '\0' && keep == 0 ? "/" : append, p + path);
	*ret = t;
	return 0;
}

/* Copies `url` without the path that belongs to one signal. */
static int strip_signal(const char *url, char ret[OTLP_MAX_URL], struct ssb_error *err)
{
	static const char *const ENDINGS[] = { "/v1/logs", "/v1/traces" };
	const char *host = strstr(url, "://");
	size_t path = strcspn(url, "?#");
	size_t keep = path;

	host = host != NULL ? host + 3 : url;
	size_t begin = (size_t)(host - url) + strcspn(host, "/");
	if (strlen(url) >= OTLP_MAX_URL) {
		return fail_url("otel", "is too long", err);
	}
	while (keep > 0 && url[keep - 1] == '/') {
		keep--;
	}
	for (size_t i = 0; i < ARRAY_LEN(ENDINGS); i++) {
		size_t n = strlen(ENDINGS[i]);
		if (keep >= begin + n && strncmp(url + keep - n, ENDINGS[i], n) == 0) {
			keep -= n;
			break;
		}
	}
	snprintf(ret, OTLP_MAX_URL, "%.*s%s", (int)keep, url, url + path);
	return 0;
}

/* Decodes percent escapes in place. Returns false for an incomplete escape or an escaped NUL. */
static bool percent_decode(char *s)
{
	char *to = s;

	for (; *s != '\0'; s++) {
		if (*s == '%') {
			int high = hex_digit(s[1]);
			int low = high >= 0 ? hex_digit(s[2]) : -1;
			if (low < 0 || (high == 0 && low == 0)) {
				return false;
			}
			*to++ = (char)(high << 4 | low);
			s += 2;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
	return true;
}

static char *copy_trimmed(const char *s, size_t len)
{
	while (len > 0 && (*s == ' ' || *s == '\t')) {
		s++;
		len--;
	}
	while (len > 0 && (s[len - 1] == ' ' || s[len - 1] == '\t')) {
		len--;
	}
	return strndup(s, len);
}

/* Returns whether a pair can be sent as a header. It must not contain a line end, and must not be
 * one of the headers that delimit the body, which only this program may set. */
static bool is_sendable(const struct otlp_pair *p)
{
	static const char *const OURS[] = { "host",         "content-length",
		                            "content-type", "transfer-encoding",
		                            "connection",   "content-encoding" };

	for (const char *s = p->name; *s != '\0'; s++) {
		if (!http1_is_token(*s)) {
			return false;
		}
	}
	for (const char *s = p->value; *s != '\0'; s++) {
		if (!http1_is_text(*s)) {
			return false;
		}
	}
	return !ARRAY_HAS(our, OURS, ARRAY_LEN(OURS), strcasecmp(p->name, *our) == 0);
}

static bool add_pair(struct otlp_pairs *ret, const char *text, size_t len, bool headers)
{
	const char *equals = memchr(text, '=', len);

	if (equals == NULL || ret->n == OTLP_MAX_PAIRS) {
		return false;
	}
	struct otlp_pair *p = &ret->v[ret->n];
	p->name = copy_trimmed(text, (size_t)(equals - text));
	p->value = copy_trimmed(equals + 1, len - (size_t)(equals + 1 - text));
	ret->n++;
	return p->name != NULL && p->value != NULL && p->name[0] != '\0' &&
	       percent_decode(p->value) && percent_decode(p->name) && (!headers || is_sendable(p));
}

int otlp_pairs_parse(struct otlp_pairs *ret, const char *text, bool headers, const char *var,
                     struct ssb_error *err)
{
	struct otlp_pairs pairs = { 0 };
	bool good = strlen(text) <= OTLP_MAX_VALUE;

	while (good && *text != '\0') {
		size_t len = strcspn(text, ",");
		if (strspn(text, " \t") < len) {
			good = add_pair(&pairs, text, len, headers);
		}
		text += len + (text[len] == ',' ? 1 : 0);
	}
	if (!good) {
		otlp_pairs_done(&pairs);
		return ssb_fail(err, SSB_E_USAGE, 0, var,
		                "is not a list NAME=VALUE,NAME=VALUE with percent-encoded "
		                "values%s",
		                headers ? ", or has a header that cannot be sent" : "");
	}
	*ret = pairs;
	return 0;
}

void otlp_pairs_done(struct otlp_pairs *p)
{
	for (size_t i = 0; i < p->n; i++) {
		if (p->v[i].value != NULL) {
			explicit_bzero(p->v[i].value, strlen(p->v[i].value));
		}
		free(p->v[i].name);
		free(p->v[i].value);
	}
	p->n = 0;
}

/* ---- the environment ------------------------------------------------------- */

/* Returns a variable of the owner; NULL if it is not set or empty. */
static const char *get_variable(const struct owner *o, const char *name)
{
	const char *v = owner_getenv(o, name);

	return v != NULL && v[0] != '\0' ? v : NULL;
}

/* The variable of one signal or, if it is not set, the variable for all signals. */
struct signal_variable {
	const char *value; /* NULL: neither is set */
	char var[64];
	bool own; /* `var` is the variable for this signal only */
};

static struct signal_variable get_signal_variable(const struct owner *o, const char *signal,
                                                  const char *what)
{
	struct signal_variable a = { .own = true };

	snprintf(a.var, sizeof(a.var), "OTEL_EXPORTER_OTLP_%s_%s", signal, what);
	a.value = get_variable(o, a.var);
	if (a.value == NULL) {
		snprintf(a.var, sizeof(a.var), "OTEL_EXPORTER_OTLP_%s", what);
		a.value = get_variable(o, a.var);
		a.own = false;
	}
	return a;
}

static void note_ignored(struct otel_config *c, const char *var, const char *why)
{
	if (c->note[0] == '\0') {
		snprintf(c->note, sizeof(c->note), "%s %s", var, why);
	}
}

static int load_protocol(struct otlp_target *t, const struct owner *o, const char *signal,
                         struct ssb_error *err)
{
	struct signal_variable a = get_signal_variable(o, signal, "PROTOCOL");

	t->format = &OTLP_PROTO;
	if (a.value == NULL || strcmp(a.value, "http/protobuf") == 0) {
		return 0;
	}
	t->format = &OTLP_JSON;
	if (strcmp(a.value, "http/json") == 0) {
		return 0;
	}
	return ssb_fail(err, SSB_E_USAGE, 0, a.var,
	                "'%.40s' is not supported; set http/protobuf or http/json, and the "
	                "endpoint for it (port 4318)",
	                a.value);
}

static void load_timeout(struct otlp_target *t, struct otel_config *c, const struct owner *o,
                         const char *signal)
{
	struct signal_variable a = get_signal_variable(o, signal, "TIMEOUT");

	t->timeout_ms = OTLP_TIMEOUT_MS;
	if (a.value == NULL) {
		return;
	}
	if (!number_parse(a.value, 0, 999999999, &t->timeout_ms)) {
		note_ignored(c, a.var,
		             "is not a number of milliseconds; the default of 10000 is used");
		return;
	}
	if (t->timeout_ms == 0 || t->timeout_ms > OTLP_MAX_TIMEOUT_MS) {
		t->timeout_ms = OTLP_MAX_TIMEOUT_MS;
	}
}

/* Reads all settings except the destination. */
static int load_options(struct otlp_target *t, struct otel_config *c, const struct owner *o,
                        const char *signal, struct ssb_error *err)
{
	struct signal_variable headers = get_signal_variable(o, signal, "HEADERS");
	struct signal_variable compression = get_signal_variable(o, signal, "COMPRESSION");

	if (compression.value != NULL && strcmp(compression.value, "none") != 0) {
		note_ignored(c, compression.var,
		             "asks for compression, which is not supported; the data is sent "
		             "uncompressed");
	}
	load_timeout(t, c, o, signal);
	t->ca = get_signal_variable(o, signal, "CERTIFICATE").value;
	t->cert = get_signal_variable(o, signal, "CLIENT_CERTIFICATE").value;
	t->key = get_signal_variable(o, signal, "CLIENT_KEY").value;
	if (load_protocol(t, o, signal, err) != 0) {
		return -1;
	}
	return headers.value == NULL
	               ? 0
	               : otlp_pairs_parse(&t->headers, headers.value, true, headers.var, err);
}

static int load_target(struct otlp_target *t, struct otel_config *c, const struct owner *o,
                       const char *signal, const char *path, struct ssb_error *err)
{
	struct signal_variable url = get_signal_variable(o, signal, "ENDPOINT");
	char var[32];

	/* OTEL_TRACES_EXPORTER, OTEL_LOGS_EXPORTER */
	snprintf(var, sizeof(var), "OTEL_%s_EXPORTER", signal);
	const char *exporter = get_variable(o, var);
	t->on = exporter == NULL || strcmp(exporter, "none") != 0;
	if (!t->on) {
		return 0;
	}
	return otlp_target_parse(t, url.value != NULL ? url.value : "http://localhost:4318",
	                         url.own ? "" : path, url.var, err) == 0
	               ? load_options(t, c, o, signal, err)
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

/* The flags "sampled" and "random trace id". Other flags have no meaning yet and are not passed
 * on. */
#define PARENT_FLAGS 0x03

/* Reads "00-<trace id>-<span id>-<flags>"; later versions may append more. */
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
	const char *parent = get_variable(o, "TRACEPARENT");
	const char *state = get_variable(o, "TRACESTATE");

	c->flags = 1;
	if (parent == NULL) {
		return;
	}
	c->has_parent = parse_parent(c, parent);
	if (!c->has_parent) {
		c->flags = 1;
		note_ignored(c, "TRACEPARENT", "is not valid and is ignored");
	} else if (state != NULL && strlen(state) <= OTLP_MAX_STATE) {
		c->state = state;
	}
}

static void load_resource(struct otel_config *c, const struct owner *o)
{
	struct ssb_error err = { 0 };
	const char *text = get_variable(o, "OTEL_RESOURCE_ATTRIBUTES");

	c->service = get_variable(o, "OTEL_SERVICE_NAME");
	if (text != NULL && otlp_pairs_parse(&c->resource, text, false, "", &err) != 0) {
		note_ignored(c, "OTEL_RESOURCE_ATTRIBUTES", "cannot be read and is ignored");
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
	const char *disabled = get_variable(owner, "OTEL_SDK_DISABLED");
	struct otel_config c = { 0 };

	if (disabled != NULL && strcasecmp(disabled, "true") == 0) {
		*ret = c;
		return 0;
	}
	if (load_target(&c.traces, &c, owner, "TRACES", "/v1/traces", err) != 0 ||
	    load_target(&c.logs, &c, owner, "LOGS", "/v1/logs", err) != 0) {
		otel_config_done(&c);
		return -1;
	}
	load_resource(&c, owner);
	load_parent(&c, owner);
	/* If the caller does not sample its trace, no spans are exported, as is usual. Decisions
	 * (log records) are still exported. */
	c.traces.on = c.traces.on && (c.flags & 1) != 0;
	*ret = c;
	return 0;
}

int otel_config_at(struct otel_config *ret, const struct owner *owner, const char *url,
                   struct ssb_error *err)
{
	struct otel_config c = { .flags = 1, .traces.on = true, .logs.on = true };
	char base[OTLP_MAX_URL] = "";

	if (strip_signal(url, base, err) != 0 ||
	    otlp_target_parse(&c.traces, base, "/v1/traces", "otel", err) != 0 ||
	    otlp_target_parse(&c.logs, base, "/v1/logs", "otel", err) != 0 ||
	    load_options(&c.traces, &c, owner, "TRACES", err) != 0 ||
	    load_options(&c.logs, &c, owner, "LOGS", err) != 0) {
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
