/* otlp_send.c - posts requests to a collector, and repeats them as OTLP says. */
#include "otel/otlp_send.h"

#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/number.h"
#include "base/own.h"
#include "os/clock.h"
#include "os/curl.h"
#include "os/jitter.h"

/* Copies the value of the last header `name` as text. Returns false if there is none,
 * or if it is too long. */
static bool find_header(const char *head, size_t len, const char *name, char ret[64])
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

static int64_t parse_seconds(const char *s)
{
	uint64_t v = 0;

	return number_parse(s, 0, 999999999, &v) ? (int64_t)v : -1;
}

int64_t otlp_retry_after(const char *head, size_t len)
{
	char text[64];
	struct tm tm = { 0 };

	if (!find_header(head, len, "retry-after", text)) {
		return -1;
	}
	int64_t seconds = parse_seconds(text);
	const char *rest = seconds < 0 ? strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &tm) : NULL;
	if (rest != NULL && *rest == '\0') {
		seconds = (int64_t)timegm(&tm) - (int64_t)time(NULL);
		seconds = seconds < 0 ? 0 : seconds;
	}
	return seconds < 0 ? -1 : seconds * 1000;
}

struct post_headers {
	struct curl_header v[OTLP_MAX_PAIRS + 2];
	size_t n;
};

static void set_headers(struct post_headers *h, const struct otlp_target *t)
{
	bool agent = false;

	h->v[h->n++] = (struct curl_header){ "Content-Type", t->format->content_type };
	for (size_t i = 0; i < t->headers.n; i++) {
		const struct otlp_pair *p = &t->headers.v[i];
		agent = agent || strcasecmp(p->name, "user-agent") == 0;
		h->v[h->n++] = (struct curl_header){ p->name, p->value };
	}
	if (!agent) {
		h->v[h->n++] = (struct curl_header){ "User-Agent", "skillsandbox/" SSB_VERSION };
	}
}

void otlp_post(const struct otlp_target *t, struct otlp_body body, uint64_t deadline_ms,
               struct otlp_reply *ret)
{
	assert(t->format != NULL && t->host[0] != '\0');

	struct post_headers headers = { .n = 0 };
	struct curl_reply reply;
	char where[OTLP_WHERE_SIZE];
	char url[OTLP_WHERE_SIZE + OTLP_MAX_URL];
	uint64_t until = clock_ms() + t->timeout_ms;
	auto_buf head = BUF(OTLP_MAX_REPLY);
	auto_buf answer = BUF(OTLP_MAX_REPLY);

	otlp_target_where(t, where);
	snprintf(url, sizeof(url), "%s%s", where, t->path);
	set_headers(&headers, t);
	const struct curl_request request = {
		.url = url,
		.plain = !t->tls,
		/* use no proxy: a collector without TLS is on this machine or on a network
		 * nearby */
		.direct = !t->tls,
		.headers = headers.v,
		.n_headers = headers.n,
		.body = body.data,
		.len = body.len,
		.ca = t->ca,
		.cert = t->cert,
		.key = t->key,
		.deadline_ms = until < deadline_ms ? until : deadline_ms,
	};
	curl_post(&request, &head, &answer, &reply);
	*ret = (struct otlp_reply){ .status = reply.status,
		                    .retry = reply.retry,
		                    .retry_after_ms = -1 };
	snprintf(ret->why, sizeof(ret->why), "%s", reply.why);
	if (reply.status != 0) {
		ret->retry_after_ms = otlp_retry_after(head.data, head.len);
	}
	ret->has_partial = reply.whole && reply.status / 100 == 2 && answer.len > 0 &&
	                   t->format->partial(answer.data, answer.len, &ret->partial);
}

static bool may_retry(const struct otlp_reply *r)
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
		if (!may_retry(ret) || now + wait >= deadline_ms) {
			return false;
		}
		wait_until(now + wait);
		backoff = backoff * 2 < OTLP_BACKOFF_MAX_MS ? backoff * 2 : OTLP_BACKOFF_MAX_MS;
	}
}
