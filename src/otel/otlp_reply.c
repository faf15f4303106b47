/* otlp_reply.c - what is the same for both ways to send: the headers, what an
 * answer means, and when to try again. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "otel/otlp_http.h"
#include "os/clock.h"
#include "os/jitter.h"

void otlp_headers(const struct otlp_target *t, otlp_header_fn *line, void *arg)
{
	bool agent = false;

	line(arg, "Content-Type", t->format->content_type);
	for (size_t i = 0; i < t->headers.n; i++) {
		agent = agent || strcasecmp(t->headers.v[i].name, "user-agent") == 0;
		line(arg, t->headers.v[i].name, t->headers.v[i].value);
	}
	if (!agent) {
		line(arg, "User-Agent", "skillsandbox/" SSB_VERSION);
	}
}

/* The value of the last such line, as text; false: none, or too long. */
static bool head_value(const char *head, size_t len, const char *name, char ret[64])
{
	size_t n = strlen(name);
	bool found = false;

	while (len > 0) {
		const char *end = memchr(head, '\n', len);
		size_t line = end != NULL ? (size_t)(end - head) : len;
		size_t skip = n + 1;
		if (line > n && head[n] == ':' && strncasecmp(head, name, n) == 0) {
			while (skip < line && (head[skip] == ' ' || head[skip] == '\t')) {
				skip++;
			}
			size_t size = line - skip;
			while (size > 0 && strchr(" \t\r", head[skip + size - 1]) != NULL) {
				size--;
			}
			found = size > 0 && size < 64;
			if (found) {
				memcpy(ret, head + skip, size);
				ret[size] = '\0';
			}
		}
		head += end != NULL ? line + 1 : line;
		len -= end != NULL ? line + 1 : line;
	}
	return found;
}

static int64_t plain_number(const char *s)
{
	size_t n = strspn(s, "0123456789");

	return n > 0 && n < 10 && s[n] == '\0' ? strtoll(s, NULL, 10) : -1;
}

int64_t otlp_content_length(const char *head, size_t len)
{
	char text[64];

	return head_value(head, len, "content-length", text) ? plain_number(text) : -1;
}

/* Seconds, or a date. */
int64_t otlp_retry_after(const char *head, size_t len)
{
	char text[64];
	struct tm tm = { 0 };

	if (!head_value(head, len, "retry-after", text)) {
		return -1;
	}
	int64_t seconds = plain_number(text);
	const char *rest = seconds < 0 ? strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &tm) : NULL;
	if (rest != NULL && *rest == '\0') {
		seconds = (int64_t)timegm(&tm) - (int64_t)time(NULL);
		seconds = seconds < 0 ? 0 : seconds;
	}
	return seconds < 0 ? -1 : seconds * 1000;
}

void otlp_reply_body(struct otlp_reply *r, const struct otlp_target *t, const char *body,
                     size_t len)
{
	r->has_partial =
	        r->status / 100 == 2 && len > 0 && t->format->partial(body, len, &r->partial);
}

static bool worth_another(const struct otlp_reply *r)
{
	return r->status == 0 ? r->retry
	                      : r->status == 429 || r->status == 502 || r->status == 503 ||
	                                r->status == 504;
}

static void wait_until(uint64_t ms)
{
	for (uint64_t now = clock_ms(); now < ms; now = clock_ms()) {
		(void)poll(NULL, 0, (int)(ms - now));
	}
}

void otlp_post(const struct otlp_target *t, struct otlp_body body, uint64_t deadline_ms,
               struct otlp_reply *ret)
{
	uint64_t until = clock_ms() + t->timeout_ms;

	*ret = (struct otlp_reply){ .retry_after_ms = -1 };
	(t->tls ? otlp_curl_post : otlp_http_post)(t, body,
	                                           until < deadline_ms ? until : deadline_ms, ret);
}

bool otlp_send(const struct otlp_target *t, struct otlp_body body, uint64_t deadline_ms,
               struct otlp_reply *ret)
{
	uint64_t backoff = OTLP_BACKOFF_MS;

	for (;;) {
		otlp_post(t, body, deadline_ms, ret);
		if (ret->status / 100 == 2) {
			return true;
		}
		uint64_t now = clock_ms();
		uint64_t wait = ret->retry_after_ms >= 0 ? (uint64_t)ret->retry_after_ms
		                                         : jitter_ms(backoff);
		if (!worth_another(ret) || now + wait >= deadline_ms) {
			return false;
		}
		wait_until(now + wait);
		backoff = backoff * 2 < OTLP_BACKOFF_MAX_MS ? backoff * 2 : OTLP_BACKOFF_MAX_MS;
	}
}
