/* http_check.c - decides from the head of a request whether it is answered.
 *
 * The order of the checks is the security argument. Host and Origin come first, to stop web
 * pages in the owner's browser. The token comes next: a client without it learns nothing else.
 * All other checks follow. No body is read before its head has passed all checks. */
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/ct.h"
#include "base/limits.h"
#include "base/own.h"
#include "mcp/http_priv.h"
#include "os/clock.h"

struct http_check {
	const struct http_request *r;
	struct mcp_http *http;
	const char *why;
};

const char *http_field(const struct http_request *r, const char *name, char *out, size_t size)
{
	const struct span *v = http_request_field(r, name);

	if (v == NULL || v->len >= size) {
		return NULL;
	}
	memcpy(out, v->s, v->len);
	out[v->len] = '\0';
	return out;
}

/* ---- a head ------------------------------------------------------------------ */

static int check_target(struct http_check *k)
{
	struct span target = k->r->target;

	if (target.len >= 4 && memcmp(target.s, "/mcp", 4) == 0 &&
	    (target.len == 4 || target.s[4] == '?')) {
		return 0;
	}
	k->why = "not found: the endpoint is /mcp";
	return 404;
}

static bool is_loopback(const struct mcp_http *h, const char *host)
{
	return strcmp(host, "localhost") == 0 || strcmp(host, "127.0.0.1") == 0 ||
	       strcmp(host, "::1") == 0 || strcmp(host, h->host) == 0;
}

static int check_host(struct http_check *k)
{
	unsigned port = k->r->lines.port != 0 ? k->r->lines.port : 80;

	if (is_loopback(k->http, k->r->lines.host) && port == k->http->port) {
		return 0;
	}
	k->why = "the Host header does not name this server";
	return 403;
}

/* Returns whether the origin is on this machine, as in "http://localhost" or "https://[::1]:8080".
 */
static bool is_local_origin(const struct mcp_http *h, struct span origin)
{
	static const char *const schemes[] = { "http://", "https://" };
	char name[64];

	for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
		size_t skip = strlen(schemes[i]);
		if (origin.len <= skip || origin.len - skip >= sizeof name ||
		    strncasecmp(origin.s, schemes[i], skip) != 0) {
			continue;
		}
		struct span rest = { origin.s + skip, origin.len - skip };
		bool v6 = rest.s[0] == '[';
		const char *end = memchr(rest.s, v6 ? ']' : ':', rest.len);
		size_t len = end != NULL ? (size_t)(end - rest.s) : rest.len;
		size_t port = len + (v6 ? 2 : 1); /* where the port begins: after "]:" or ":" */

		if (v6 && (end == NULL || (len + 1 < rest.len && rest.s[len + 1] != ':'))) {
			return false;
		}
		for (size_t at = port; at < rest.len; at++) {
			if (rest.s[at] < '0' || rest.s[at] > '9') {
				return false;
			}
		}
		(void)snprintf(name, sizeof name, "%.*s", (int)(v6 ? len - 1 : len),
		               v6 ? rest.s + 1 : rest.s);
		return is_loopback(h, name);
	}
	return false;
}

static int check_origin(struct http_check *k)
{
	const struct span *o = http_request_field(k->r, "origin");

	if (o == NULL || is_local_origin(k->http, *o)) {
		return 0;
	}
	k->why = "this Origin may not use the server";
	return 403;
}

/* Compares digests, so that the time of the comparison does not depend on the token's length or
 * bytes. */
static bool is_token(const struct mcp_http *h, struct span given)
{
	uint8_t digest[SHA256_BYTES];

	sha256(given.s, given.len, digest);
	return ct_equal(digest, h->token, sizeof digest);
}

static int check_token(struct http_check *k)
{
	const struct span *a = http_request_field(k->r, "authorization");
	size_t skip = strlen("Bearer ");

	if (!k->http->has_token) {
		return 0;
	}
	if (a != NULL && a->len > skip && a->len - skip <= MAX_HTTP_TOKEN &&
	    strncasecmp(a->s, "Bearer ", skip) == 0 &&
	    is_token(k->http, (struct span){ a->s + skip, a->len - skip })) {
		return 0;
	}
	/* Only answers to wrong tokens are limited, so a process that guesses tokens cannot lock
	 * out the owner. */
	if (!bucket_take(&k->http->failures, clock_us())) {
		k->why = "too many wrong tokens";
		return 429;
	}
	k->why = "send the server's token: Authorization: Bearer TOKEN";
	return 401;
}

static int check_rate(struct http_check *k)
{
	if (bucket_take(&k->http->requests, clock_us())) {
		return 0;
	}
	k->why = "too many requests";
	return 429;
}

static bool says_modern(const struct http_request *r)
{
	char version[32];

	return http_field(r, "mcp-protocol-version", version, sizeof version) != NULL &&
	       mcp_version_modern(version);
}

static int check_method(struct http_check *k)
{
	bool post = http_span_is(k->r->method, "POST");
	bool legacy = http_span_is(k->r->method, "GET") || http_span_is(k->r->method, "DELETE");

	if (post || (legacy && !says_modern(k->r))) {
		return 0;
	}
	k->why = legacy ? "this revision of the protocol allows only POST"
	                : "use POST, GET or DELETE";
	return 405;
}

static int check_content(struct http_check *k)
{
	const struct span *type = http_request_field(k->r, "content-type");
	const char json[] = "application/json";
	size_t len = sizeof json - 1;

	if (!http_span_is(k->r->method, "POST")) {
		if (!k->r->lines.chunked && k->r->lines.length == 0) {
			return 0;
		}
		k->why = "GET and DELETE must not have a body";
		return 400;
	}
	if (type != NULL && type->len >= len && strncasecmp(type->s, json, len) == 0 &&
	    (type->len == len || strchr("; \t", type->s[len]) != NULL)) {
		return 0;
	}
	k->why = "Content-Type must be application/json";
	return 415;
}

static int check_accept(struct http_check *k)
{
	bool stream = http_request_accepts(k->r, "text/event-stream");

	if (http_span_is(k->r->method, "DELETE") ||
	    (stream && (http_span_is(k->r->method, "GET") ||
	                http_request_accepts(k->r, "application/json")))) {
		return 0;
	}
	k->why = http_span_is(k->r->method, "GET")
	                 ? "Accept must allow text/event-stream"
	                 : "Accept must allow application/json and text/event-stream";
	return 406;
}

int http_check_head(struct mcp_http *h, const struct http_request *r, const char **ret_why)
{
	static int (*const steps[])(
	        struct http_check *) = { check_host,   check_origin, check_token,   check_rate,
		                         check_target, check_method, check_content, check_accept };
	struct http_check k = { .r = r, .http = h };

	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		int status = steps[i](&k);
		if (status != 0) {
			*ret_why = k.why;
			return status;
		}
	}
	return 0;
}

/* ---- a modern request: headers that repeat members of the body ----------------- */

/* Writes the text of a header field to `out`: plain, or decoded from "=?base64?...?=". Returns -1
 * if it is malformed. */
static int field_text(struct span value, struct buf *out)
{
	static const char before[] = "=?base64?", behind[] = "?=";
	size_t n_before = sizeof before - 1, n_behind = sizeof behind - 1;

	if (value.len < n_before + n_behind || memcmp(value.s, before, n_before) != 0 ||
	    memcmp(value.s + value.len - n_behind, behind, n_behind) != 0) {
		buf_add(out, value.s, value.len);
		return out->failed ? -1 : 0;
	}
	return base64_decode(value.s + n_before, value.len - n_before - n_behind, out);
}

bool http_field_says(struct span value, const char *body, size_t len)
{
	auto_buf text = BUF(HTTP_MAX_HEAD);

	return field_text(value, &text) == 0 && text.len == len &&
	       memcmp(len > 0 ? text.data : "", body, len) == 0;
}

const char *http_check_mirror(const struct http_request *r, const struct mcp_message *m)
{
	const struct span *version = http_request_field(r, "mcp-protocol-version");
	const struct span *called = http_request_field(r, "mcp-method");
	const struct span *name = http_request_field(r, "mcp-name");

	if (version == NULL) {
		return "Header mismatch: MCP-Protocol-Version is missing";
	}
	if (!http_span_is(*version, m->version)) {
		return "Header mismatch: MCP-Protocol-Version differs from _meta";
	}
	if (m->kind != MCP_REQUEST) {
		return NULL;
	}
	if (called == NULL) {
		return "Header mismatch: Mcp-Method is missing";
	}
	if (!http_span_is(*called, m->method)) {
		return "Header mismatch: Mcp-Method differs from the method in the body";
	}
	if (m->name != NULL && name == NULL) {
		return "Header mismatch: Mcp-Name is missing";
	}
	if (m->name != NULL && !http_field_says(*name, m->name, strlen(m->name))) {
		return "Header mismatch: Mcp-Name differs from the name in the body";
	}
	return NULL;
}
