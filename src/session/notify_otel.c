/* notify_otel.c - a part of a ledger to a collector: one request, and what its
 * answer means. What the environment says of the manner (headers, certificates) is
 * read for each request; a skill has no part in it. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "otel/otlp_http.h"
#include "base/own.h"
#include "session/ledger_otlp.h"
#include "session/notify.h"

/* What is wrong with the lines stays so; anything else the owner, or time, can
 * mend. */
static bool is_final(unsigned status)
{
	return status == 400 || status == 413 || status == 422;
}

/* Part of it may be the server's words. */
static void clean(char *s)
{
	for (; *s != '\0'; s++) {
		*s = *s < ' ' || *s > '~' ? '?' : *s;
	}
}

static void judge(const struct otlp_reply *reply, struct notify_result *r)
{
	bool good = reply->status / 100 == 2;

	r->status = reply->status;
	r->retry_after_ms = reply->retry_after_ms;
	r->retry = !good && !is_final(reply->status);
	if (reply->status == 0) {
		snprintf(r->error, sizeof(r->error), "%s", reply->why);
	} else if (!good) {
		snprintf(r->error, sizeof(r->error), "the collector answered %u", reply->status);
	} else if (reply->has_partial && reply->partial.rejected != 0) {
		snprintf(r->error, sizeof(r->error), "the collector rejected %lld: %.120s",
		         (long long)reply->partial.rejected, reply->partial.why);
	}
	clean(r->error);
}

static void fail(struct notify_result *r, bool retry, const char *why)
{
	r->retry = retry;
	snprintf(r->error, sizeof(r->error), "%s", why);
	clean(r->error);
}

void notify_otel(const struct outbox_item *item, uint64_t deadline_ms, struct notify_result *ret)
{
	AUTO(otel_config_done) struct otel_config c = { 0 };
	const struct owner env = { .environ = environ };
	struct ssb_error err = { 0 };
	struct otlp_reply reply;
	struct otlp writer;
	auto_buf out;

	*ret = (struct notify_result){ .retry_after_ms = -1 };
	buf_init(&out, OTLP_MAX_REQUEST);
	if (otel_config_at(&c, &env, item->url, &err) != 0) {
		fail(ret, true, err.text);
		return;
	}
	const struct otlp_target *to = item->span ? &c.traces : &c.logs;
	otlp_init(&writer, &out, to->format);
	(item->span ? ledger_write_span : ledger_write_logs)(&writer, item, &c);
	if (out.failed) {
		fail(ret, false, "the request would be too large");
		return;
	}
	otlp_post(to, (struct otlp_body){ out.data, out.len }, deadline_ms, &reply);
	judge(&reply, ret);
}

uint64_t notify_otel_retry_ms(const struct notify_result *r, unsigned tries)
{
	return r->error[0] != '\0' && r->retry && tries >= NOTIFY_TRIES ? NOTIFY_REST_MS
	                                                                : notify_retry_ms(r, tries);
}
