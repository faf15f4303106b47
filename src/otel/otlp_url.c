#include "otel/otlp_url.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/hex.h"
#include "base/own.h"
#include "wire/http1_head.h"

#define ALNUM "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static int bad_url(const char *var, const char *why, struct ssb_error *err)
{
	return ssb_fail(err, SSB_E_USAGE, 0, var, "%s; write http://HOST:4318 or https://HOST",
	                why);
}

/* [2001:db8::1] or a name or address; returns what follows, NULL: none. */
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
	size_t n = strspn(p + 1, "0123456789");
	long v = strtol(p + 1, NULL, 10);
	if (n == 0 || n > 5 || v < 1 || v > 65535) {
		return NULL;
	}
	snprintf(t->port, sizeof(t->port), "%ld", v);
	return p + 1 + n;
}

static bool printable(const char *s)
{
	for (; *s != '\0'; s++) {
		if (*s <= ' ' || *s > '~') {
			return false;
		}
	}
	return true;
}

int otlp_url_parse(struct otlp_target *ret, const char *url, const char *append, const char *var,
                   struct ssb_error *err)
{
	struct otlp_target t = *ret;
	const char *p = url;

	t.tls = strncasecmp(url, "https://", 8) == 0;
	if (!t.tls && strncasecmp(url, "http://", 7) != 0) {
		return bad_url(var, "no http:// or https:// at its begin", err);
	}
	p += t.tls ? 8 : 7;
	if (strlen(url) + strlen(append) >= sizeof(t.path) || !printable(url)) {
		return bad_url(var, "too long, or with characters that no URL has", err);
	}
	if (memchr(p, '@', strcspn(p, "/?#")) != NULL) {
		return ssb_fail(err, SSB_E_USAGE, 0, var,
		                "has a user name; put credentials into OTEL_EXPORTER_OTLP_HEADERS");
	}
	p = parse_host(&t, p);
	p = p != NULL ? parse_port(&t, p) : NULL;
	if (p == NULL || (*p != '\0' && *p != '/' && *p != '?') || strchr(p, '#') != NULL) {
		return bad_url(var, "no host, a bad port, or something behind them", err);
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

int otlp_url_base(const char *url, char ret[OTLP_MAX_URL], struct ssb_error *err)
{
	static const char *const ENDINGS[] = { "/v1/logs", "/v1/traces" };
	const char *host = strstr(url, "://");
	size_t path = strcspn(url, "?#");
	size_t keep = path;

	host = host != NULL ? host + 3 : url;
	size_t begin = (size_t)(host - url) + strcspn(host, "/");
	if (strlen(url) >= OTLP_MAX_URL) {
		return bad_url("otel", "too long", err);
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

/* In place; false: a percent sign that is none, or a NUL. */
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

static char *trimmed(const char *s, size_t len)
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

/* Nothing in a header may end it, and those that say where the body ends are
 * ours. */
static bool sendable(const struct otlp_pair *p)
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
	for (size_t i = 0; i < ARRAY_LEN(OURS); i++) {
		if (strcasecmp(p->name, OURS[i]) == 0) {
			return false;
		}
	}
	return true;
}

static bool add_pair(struct otlp_pairs *ret, const char *text, size_t len, bool headers)
{
	const char *equals = memchr(text, '=', len);

	if (equals == NULL || ret->n == OTLP_MAX_PAIRS) {
		return false;
	}
	struct otlp_pair *p = &ret->v[ret->n];
	p->name = trimmed(text, (size_t)(equals - text));
	p->value = trimmed(equals + 1, len - (size_t)(equals + 1 - text));
	ret->n++;
	return p->name != NULL && p->value != NULL && p->name[0] != '\0' &&
	       percent_decode(p->value) && percent_decode(p->name) && (!headers || sendable(p));
}

/* The text may be a secret: it is not repeated. */
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
		                "is no list of NAME=VALUE with commas between, values "
		                "percent-encoded%s",
		                headers ? ", of headers that can be sent" : "");
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
