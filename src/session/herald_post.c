/* herald_post.c - sends one request to one receiver, and interprets the answer. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "otel/otlp_send.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/hmac.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/curl.h"
#include "os/jitter.h"
#include "session/herald.h"
#include "session/ledger_otlp.h"

struct webhook_secret {
	char bytes[MAX_NOTIFY_SECRET + 1];
	size_t len;
};

static void secret_done(struct webhook_secret *s)
{
	explicit_bzero(s, sizeof(*s));
}

static int secret_fail(struct ssb_error *err, int sys_errno, const char *what)
{
	return ssb_fail(err, SSB_E_POLICY, sys_errno, "notify", "the secret file %s", what);
}

static int secret_check(int fd, struct ssb_error *err)
{
	struct stat st;

	if (fstat(fd, &st) != 0) {
		return secret_fail(err, errno, "cannot be examined");
	}
	if (!S_ISREG(st.st_mode)) {
		return secret_fail(err, 0, "is not a regular file");
	}
	if (st.st_uid != geteuid() && st.st_uid != 0) {
		return secret_fail(err, 0, "belongs to another user");
	}
	if ((st.st_mode & 0077) != 0) {
		return secret_fail(err, 0, "is open to others: run chmod 600");
	}
	return 0;
}

static int secret_read(const char *path, struct webhook_secret *s, struct ssb_error *err)
{
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	if (fd < 0) {
		return secret_fail(err, errno, "cannot be opened");
	}
	if (secret_check(fd, err) != 0) {
		return -1;
	}
	s->len = 0;
	for (ssize_t n = 1; n > 0 && s->len < sizeof(s->bytes);) {
		n = read(fd, s->bytes + s->len, sizeof(s->bytes) - s->len);
		if (n < 0) {
			return secret_fail(err, errno, "cannot be read");
		}
		s->len += (size_t)n;
	}
	if (s->len > MAX_NOTIFY_SECRET) {
		return secret_fail(err, 0, "is too long");
	}
	if (s->len > 0 && s->bytes[s->len - 1] == '\n') {
		s->len--;
	}
	if (s->len > 0 && s->bytes[s->len - 1] == '\r') {
		s->len--;
	}
	return s->len > 0 ? 0 : secret_fail(err, 0, "is empty");
}

/* ---- headers ------------------------------------------------------------ */

#define SIGNATURE_PREFIX "sha256="
#define DELIVERY_BYTES   16

struct signed_words {
	char delivery[2 * DELIVERY_BYTES + 1];
	char timestamp[24];
	char signature[sizeof(SIGNATURE_PREFIX) + 2 * SHA256_BYTES];
};

/* Makes the id by which a receiver recognises a message. It is the same for every try, and no other
 * message has it. */
static void delivery_id(const struct outbox_item *item, struct signed_words *w)
{
	uint8_t hash[SHA256_BYTES];
	char number[24];
	struct sha256 s;

	snprintf(number, sizeof(number), "%" PRId64, item->n);
	sha256_init(&s);
	sha256_update(&s, item->session, strlen(item->session) + 1);
	sha256_update(&s, number, strlen(number) + 1);
	sha256_update(&s, item->body, strlen(item->body));
	sha256_final(&s, hash);
	hex_encode(hash, DELIVERY_BYTES, w->delivery);
}

static int sign_body(const struct outbox_item *item, const struct buf *body, struct signed_words *w,
                     struct ssb_error *err)
{
	AUTO(secret_done) struct webhook_secret secret = { .len = 0 };
	uint8_t mac[SHA256_BYTES];
	struct hmac h;

	if (secret_read(item->secret, &secret, err) != 0) {
		return -1;
	}
	snprintf(w->timestamp, sizeof(w->timestamp), "%lld", (long long)time(NULL));
	hmac_init(&h, secret.bytes, secret.len);
	hmac_update(&h, w->timestamp, strlen(w->timestamp));
	hmac_update(&h, ".", 1);
	hmac_update(&h, body->data, body->len);
	hmac_final(&h, mac);
	memcpy(w->signature, SIGNATURE_PREFIX, sizeof(SIGNATURE_PREFIX));
	hex_encode(mac, sizeof(mac), w->signature + sizeof(SIGNATURE_PREFIX) - 1);
	return 0;
}

/* ---- the answer --------------------------------------------------------- */

static void judge_reply(const struct curl_reply *reply, const struct buf *head,
                        struct herald_result *r)
{
	r->status = reply->status;
	if (reply->status == 0) {
		/* Tries again, even after a bad certificate, which may be renewed. Nothing was
		 * sent, and one wrong answer of the network must not cause the loss of a
		 * message. */
		r->retry = true;
		snprintf(r->error, sizeof(r->error), "%s", reply->why);
		return;
	}
	r->retry_after_ms = otlp_retry_after(head->data, head->len);
	r->retry = r->status >= 500 || r->status == 408 || r->status == 429;
	if (r->status / 100 == 3) {
		snprintf(r->error, sizeof(r->error),
		         "the receiver answered %u: redirects are not followed", r->status);
	} else if (r->status / 100 != 2) {
		snprintf(r->error, sizeof(r->error), "the receiver answered %u", r->status);
	}
}

static void send_request(const struct outbox_item *item, const struct buf *body,
                         const struct signed_words *w, uint64_t deadline_ms,
                         struct herald_result *ret)
{
	const struct curl_header headers[] = {
		{ "Content-Type", "application/json" },
		{ "User-Agent", "skillsandbox/" SSB_VERSION },
		{ "X-SkillSandbox-Delivery", w->delivery },
		{ "X-SkillSandbox-Timestamp", w->timestamp },
		{ "X-SkillSandbox-Signature", w->signature },
	};
	const struct curl_request q = {
		.url = item->url,
		.plain = true,
		.headers = headers,
		.n_headers = item->kind != NOTIFY_JSON ? 2
		             : w->signature[0] == '\0' ? 3
		                                       : 5,
		.body = body->data,
		.len = body->len,
		.ca = getenv("SSL_CERT_FILE"),
		.deadline_ms = deadline_ms,
	};
	struct curl_reply reply;
	auto_buf in_head = BUF(MAX_NOTIFY_REPLY);
	auto_buf in_body = BUF(MAX_NOTIFY_REPLY);

	curl_post(&q, &in_head, &in_body, &reply);
	judge_reply(&reply, &in_head, ret);
}

/* ---- a collector -------------------------------------------------------- */

/* Returns true if the collector rejects the content, which is permanent. Any other error may go
 * away or be repaired. */
static bool is_final(unsigned status)
{
	return status == 400 || status == 413 || status == 422;
}

/* Replaces all but printable ASCII, because the text may contain parts of the server's answer. */
static void clean_text(char *s)
{
	for (; *s != '\0'; s++) {
		*s = *s < ' ' || *s > '~' ? '?' : *s;
	}
}

static void judge_collector(const struct otlp_reply *reply, struct herald_result *r)
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
	clean_text(r->error);
}

static void fail_collector(struct herald_result *r, bool retry, const char *why)
{
	r->retry = retry;
	snprintf(r->error, sizeof(r->error), "%s", why);
	clean_text(r->error);
}

/* Sends a part of a ledger to a collector (ledger_otlp.h) as the OTEL_* variables say. */
static void post_ledger(const struct outbox_item *item, uint64_t deadline_ms,
                        struct herald_result *ret)
{
	AUTO(otel_config_done) struct otel_config c = { 0 };
	const struct owner env = { .environ = environ };
	struct ssb_error err = { 0 };
	struct otlp_reply reply;
	struct otlp writer;
	auto_buf out = BUF(OTLP_MAX_REQUEST);

	assert(item->kind == NOTIFY_OTEL && item->body != NULL);
	*ret = (struct herald_result){ .retry_after_ms = -1 };
	if (otel_config_at(&c, &env, item->url, &err) != 0) {
		fail_collector(ret, true, err.text);
		return;
	}
	const struct otlp_target *to = item->span ? &c.traces : &c.logs;
	otlp_init(&writer, &out, to->format);
	(item->span ? ledger_write_span : ledger_write_logs)(&writer, item, &c);
	if (out.failed) {
		fail_collector(ret, false, "the request would be too large");
		return;
	}
	otlp_post(to, (struct otlp_body){ out.data, out.len }, deadline_ms, &reply);
	judge_collector(&reply, ret);
}

/* ---- both --------------------------------------------------------------- */

static bool is_http(const char *url)
{
	return strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0;
}

void herald_post(const struct outbox_item *item, uint64_t deadline_ms, struct herald_result *ret)
{
	struct signed_words words = { 0 };
	struct ssb_error err = { 0 };
	auto_buf body = BUF(MAX_NOTIFY_BODY);

	assert(item->url != NULL && item->body != NULL);
	*ret = (struct herald_result){ .retry_after_ms = -1 };
	if (item->kind == NOTIFY_OTEL) {
		post_ledger(item, deadline_ms, ret);
		return;
	}
	if (!is_http(item->url)) {
		snprintf(ret->error, sizeof(ret->error), "the receiver's URL is not http(s)://");
		return;
	}
	if (herald_body(item, &body, &err) != 0) {
		snprintf(ret->error, sizeof(ret->error), "%s", err.text);
		return;
	}
	delivery_id(item, &words);
	if (item->kind == NOTIFY_JSON && item->secret != NULL &&
	    sign_body(item, &body, &words, &err) != 0) {
		/* Another try may succeed: the owner may have repaired the secret file. */
		ret->retry = true;
		snprintf(ret->error, sizeof(ret->error), "%s", err.text);
		return;
	}
	send_request(item, &body, &words, deadline_ms, ret);
}

uint64_t herald_retry_ms(const struct herald_result *r, unsigned tries)
{
	uint64_t base = HERALD_FIRST_MS;

	assert(tries > 0);
	if (r->error[0] == '\0' || !r->retry || tries >= HERALD_TRIES) {
		return 0;
	}
	for (unsigned i = 1; i < tries && base < HERALD_MAX_MS; i++) {
		base *= HERALD_FACTOR;
	}
	uint64_t wait = r->retry_after_ms >= 0 ? (uint64_t)r->retry_after_ms : jitter_ms(base);
	return wait < HERALD_MIN_MS ? HERALD_MIN_MS : wait > HERALD_MAX_MS ? HERALD_MAX_MS : wait;
}

uint64_t herald_retry_otel_ms(const struct herald_result *r, unsigned tries)
{
	return r->error[0] != '\0' && r->retry && tries >= HERALD_TRIES ? HERALD_REST_MS
	                                                                : herald_retry_ms(r, tries);
}
