/* otlp_curl.c - https:// by libcurl. */
#include <stdio.h>
#include <string.h>

#include "otel/otlp_http.h"
#include "base/own.h"
#include "os/curl.h"

struct headers {
	struct curl_header v[OTLP_MAX_PAIRS + 2];
	size_t n;
};

static void add_header(void *arg, const char *name, const char *value)
{
	struct headers *h = arg;

	if (h->n < ARRAY_LEN(h->v)) {
		h->v[h->n++] = (struct curl_header){ name, value };
	}
}

void otlp_curl_post(const struct otlp_target *t, struct otlp_body body, uint64_t deadline_ms,
                    struct otlp_reply *ret)
{
	struct headers headers = { .n = 0 };
	struct curl_reply reply;
	char where[OTLP_WHERE_SIZE];
	char url[OTLP_WHERE_SIZE + OTLP_MAX_URL];
	auto_buf in_head;
	auto_buf in_body;

	buf_init(&in_head, OTLP_MAX_REPLY);
	buf_init(&in_body, OTLP_MAX_REPLY);
	otlp_target_where(t, where);
	snprintf(url, sizeof(url), "%s%s", where, t->path);
	otlp_headers(t, add_header, &headers);
	const struct curl_request request = {
		.url = url,
		.headers = headers.v,
		.n_headers = headers.n,
		.body = body.data,
		.len = body.len,
		.ca = t->ca,
		.cert = t->cert,
		.key = t->key,
		.deadline_ms = deadline_ms,
	};
	curl_post(&request, &in_head, &in_body, &reply);
	ret->status = reply.status;
	ret->retry = reply.retry;
	snprintf(ret->why, sizeof(ret->why), "%s", reply.why);
	if (reply.status != 0) {
		ret->retry_after_ms = otlp_retry_after(in_head.data, in_head.len);
	}
	if (reply.whole) {
		otlp_reply_body(ret, t, in_body.data, in_body.len);
	}
}
