/* verify.c - checks the chain of hashes, the order of the lines, and the signature.
 *
 * The hash of a line is the SHA-256 of the previous hash and of the line's bytes before ,"hash":".
 * Only the first line, the signature and the header of an export are parsed as JSON. Of the other
 * lines only the fixed beginning is read,
 *
 *   {"seq":N,"time":"...","mono":N,"kind":"..."
 *
 * because the hash covers the rest. */
#include "trace/verify.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "trace/reader.h"
#include "trace/record.h"
#include "base/buf.h"
#include "base/ed25519.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/json.h"
#include "base/own.h"
#include "base/sha256.h"

enum phase { AT_RUN, AT_EVENTS, AT_SIGNATURE, AT_END };

struct verify {
	const struct verify_ask *ask;
	struct verify_result *r;
	enum phase phase;
	uint8_t head[SHA256_BYTES]; /* hash of the last line that was checked */
	bool over;                  /* the end line was read; in a ledger, the session has ended */
	uint64_t open;              /* reservations that were open at the line that is signed */
	char end_time[32];          /* time of the line that is signed */
	uint64_t end_mono;
	struct json_doc doc;
	bool claims_key; /* the header of the export names a key */
	uint8_t claimed_key[VERIFY_KEY_BYTES];
	char claimed_id[VERIFY_ID];
	char claimed_version[64];
	int64_t claimed_records;
};

static void verify_done(struct verify *v)
{
	json_doc_done(&v->doc);
}

/* Records why the record is bad. Always returns false, so that a check can return its result. */
__attribute__((format(printf, 2, 3))) static bool fail_verify(struct verify *v, const char *fmt,
                                                              ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(v->r->why, sizeof(v->r->why), fmt, ap);
	va_end(ap);
	v->r->state = VERIFY_BAD;
	v->r->bad_at = v->r->records;
	return false;
}

static bool skip_text(const char **p, const char *end, const char *text)
{
	size_t n = strlen(text);

	if ((size_t)(end - *p) < n || memcmp(*p, text, n) != 0) {
		return false;
	}
	*p += n;
	return true;
}

/* Reads a number of at most 19 digits without a leading zero, which always fits an int64_t. */
static bool skip_number(const char **p, const char *end, uint64_t *ret)
{
	const char *at = *p;
	uint64_t v = 0;

	while (at < end && *at >= '0' && *at <= '9' && at - *p < 19) {
		v = v * 10 + (uint64_t)(*at++ - '0');
	}
	if (at == *p || (at - *p > 1 && **p == '0')) {
		return false;
	}
	*p = at;
	*ret = v;
	return true;
}

/* Reads a text up to its closing quote. Returns false if it contains an escape. */
static bool skip_word(const char **p, const char *end, const char **ret, size_t *ret_len)
{
	const char *quote = memchr(*p, '"', (size_t)(end - *p));

	if (quote == NULL || memchr(*p, '\\', (size_t)(quote - *p)) != NULL) {
		return false;
	}
	*ret = *p;
	*ret_len = (size_t)(quote - *p);
	*p = quote + 1;
	return true;
}

struct head {
	uint64_t seq;
	uint64_t mono;
	const char *time;
	size_t time_len;
	enum event_kind kind;
};

static bool read_head(const char *p, const char *end, struct head *h)
{
	const char *kind = NULL;
	size_t len = 0;

	if (!(skip_text(&p, end, "{\"seq\":") && skip_number(&p, end, &h->seq) &&
	      skip_text(&p, end, ",\"time\":\"") && skip_word(&p, end, &h->time, &h->time_len) &&
	      skip_text(&p, end, ",\"mono\":") && skip_number(&p, end, &h->mono) &&
	      skip_text(&p, end, ",\"kind\":\"") && skip_word(&p, end, &kind, &len))) {
		return false;
	}
	h->kind = event_kind_from(kind, len);
	return true;
}

/* Checks that the hash at the end of the line matches the previous hash and this line. */
static bool check_chain(struct verify *v, const char *line, size_t len)
{
	struct sha256 s;
	uint8_t hash[SHA256_BYTES];
	char hex[RECORD_HASH_HEX + 1];
	const char *tail = len > RECORD_HASH_TAIL ? line + len - RECORD_HASH_TAIL : NULL;

	if (tail == NULL || memcmp(tail, RECORD_HASH_KEY, sizeof(RECORD_HASH_KEY) - 1) != 0 ||
	    memcmp(line + len - 3, "\"}\n", 3) != 0) {
		return fail_verify(v, "the line does not end with a hash");
	}
	sha256_init(&s);
	sha256_update(&s, v->head, sizeof(v->head));
	sha256_update(&s, line, len - RECORD_HASH_TAIL);
	sha256_final(&s, hash);
	hex_encode(hash, sizeof(hash), hex);
	if (memcmp(hex, tail + sizeof(RECORD_HASH_KEY) - 1, RECORD_HASH_HEX) != 0) {
		return fail_verify(
		        v, "the line was changed, or the line before it is missing or changed");
	}
	memcpy(v->head, hash, sizeof(hash));
	return true;
}

static bool parse_line(struct verify *v, const char *line, size_t len)
{
	const char *why = NULL;

	return json_read(&v->doc, line, len, &why) == 0 ||
	       fail_verify(v, "the line is not JSON: %s", why);
}

static const char *line_member(const struct verify *v, const char *name)
{
	return json_string(json_member(&v->doc, json_top(&v->doc), name), "");
}

static bool check_run(struct verify *v, const char *line, size_t len)
{
	struct verify_result *r = v->r;

	if (!parse_line(v, line, len)) {
		return false;
	}
	const char *id = line_member(v, r->ledger ? "session_id" : "run_id");
	snprintf(r->run_id, sizeof(r->run_id), "%s", id);
	snprintf(r->version, sizeof(r->version), "%s", line_member(v, "version"));
	if (v->ask->run_id[0] != '\0' && strcmp(v->ask->run_id, id) != 0) {
		return fail_verify(v, "this is the record of another run");
	}
	if (r->bundle && (strcmp(v->claimed_id, id) != 0 ||
	                  strcmp(v->claimed_version, line_member(v, "version")) != 0)) {
		return fail_verify(v, "the header of the export belongs to another record");
	}
	v->phase = AT_EVENTS;
	return true;
}

/* Returns whether the line of the signature has the only valid form. No signature covers this line,
 * so its bytes must not vary: it must repeat the time of the signed line, and be written exactly
 * like `want`. */
static bool is_only_spelling(const struct verify *v, const char *line, size_t len)
{
	char want[512];
	int n = snprintf(want, sizeof(want),
	                 "{\"seq\":%" PRIu64 ",\"time\":\"%s\",\"mono\":%" PRIu64
	                 ",\"kind\":\"signature\",\"key\":\"%.64s\",\"signature\":\"%.128s\"",
	                 v->r->records, v->end_time, v->end_mono, line_member(v, "key"),
	                 line_member(v, "signature"));

	return n > 0 && (size_t)n < sizeof(want) && len == (size_t)n + RECORD_HASH_TAIL &&
	       memcmp(line, want, (size_t)n) == 0;
}

/* Checks a line of a signature. At this point, v->head is still the hash of the line before, and
 * this hash is what was signed. */
static bool check_signature(struct verify *v, const char *line, size_t len)
{
	struct verify_result *r = v->r;
	uint8_t signature[ED25519_SIGNATURE];
	const char *key = NULL;
	const char *hex = NULL;

	if (!parse_line(v, line, len)) {
		return false;
	}
	key = line_member(v, "key");
	hex = line_member(v, "signature");
	if (!is_only_spelling(v, line, len) ||
	    hex_decode(key, strlen(key), r->key, sizeof(r->key)) != 0 ||
	    hex_decode(hex, strlen(hex), signature, sizeof(signature)) != 0) {
		return fail_verify(v, "the line of the signature is malformed");
	}
	if (!ed25519_verify(r->key, v->head, sizeof(v->head), signature)) {
		return fail_verify(v, "the signature does not match this record");
	}
	r->signed_end = true;
	if (v->claims_key && memcmp(v->claimed_key, r->key, sizeof(r->key)) != 0) {
		return fail_verify(v, "the header of the export names another key");
	}
	return true;
}

static bool check_key(struct verify *v)
{
	if (v->ask->key == NULL) {
		return fail_verify(
		        v, "the key of the signature is not known on this machine; name the "
		           "key that you trust with --key");
	}
	if (memcmp(v->ask->key, v->r->key, VERIFY_KEY_BYTES) != 0) {
		return fail_verify(v, "signed with another key than the owner's");
	}
	return true;
}

/* Returns whether the line is a valid first line, which says whether this is the record of a run or
 * the ledger of a session. */
static bool is_first(const struct head *h)
{
	return h->kind == EV_RUN || h->kind == EV_SESSION_CREATED;
}

static bool is_end(const struct verify *v, const struct head *h)
{
	return v->r->ledger ? h->kind == EV_SESSION_KILLED || h->kind == EV_SESSION_COMPLETED ||
	                              h->kind == EV_SESSION_EXPIRED
	                    : h->kind == EV_END;
}

/* Checks that a line of this kind may come at this place. A run's record has one signature, after
 * its end line, and nothing follows it. In the ledger of an ended session, more lines may follow a
 * signature, and then another signature for them. */
static bool check_place(struct verify *v, const struct head *h)
{
	bool signature = h->kind == EV_SIGNATURE;

	if (v->phase == AT_END && !v->r->ledger) {
		return fail_verify(v, "there is data after the signature");
	}
	if ((v->phase == AT_RUN) != is_first(h) || (signature && v->phase != AT_SIGNATURE) ||
	    (!signature && v->phase == AT_SIGNATURE && !v->r->ledger)) {
		return fail_verify(v, "a line of this kind must not be at this place");
	}
	if (v->phase == AT_RUN) {
		v->r->ledger = h->kind == EV_SESSION_CREATED;
	}
	return true;
}

/* Returns how many reservations were open at this line; 0 for a ledger of an earlier version, which
 * does not say so. A session cannot forge this member, because quotes in a text are escaped. */
static uint64_t open_reservations(const char *line, size_t len)
{
	static const char key[] = ",\"open_reservations\":";
	const char *at = memmem(line, len, key, sizeof(key) - 1);
	uint64_t n = 0;

	if (at != NULL) {
		at += sizeof(key) - 1;
		(void)skip_number(&at, line + len, &n);
	}
	return n;
}

/* Stores the members of this line that its signature must repeat. */
static bool expect_signature(struct verify *v, const struct head *h)
{
	if (h->time_len >= sizeof(v->end_time)) {
		return fail_verify(v, "the time of the line is malformed");
	}
	memcpy(v->end_time, h->time, h->time_len);
	v->end_time[h->time_len] = '\0';
	v->end_mono = h->mono;
	v->phase = AT_SIGNATURE;
	return true;
}

static bool check_line(struct verify *v, const char *line, size_t len)
{
	struct head h = { 0 };

	if (!read_head(line, line + len, &h)) {
		return fail_verify(v, "the line does not begin like a record");
	}
	if (h.seq != v->r->records) {
		return fail_verify(v,
		                   "the number of the line is %" PRIu64
		                   ": lines are missing or in another order",
		                   h.seq);
	}
	if (!check_place(v, &h)) {
		return false;
	}
	bool first = v->phase == AT_RUN;
	bool signature = h.kind == EV_SIGNATURE;
	if (signature && !check_signature(v, line, len)) {
		return false;
	}
	if (!check_chain(v, line, len) || (first && !check_run(v, line, len))) {
		return false;
	}
	if (signature) {
		v->phase = AT_END;
		v->r->open = v->open;
		return check_key(v);
	}
	v->over = v->over || is_end(v, &h);
	v->open = v->over && v->r->ledger ? open_reservations(line, len) : 0;
	return !v->over || expect_signature(v, &h);
}

/* Checks the header of an export. It is not part of the chain, so everything in it is compared with
 * the record. */
static bool check_header(struct verify *v, const char *line, size_t len)
{
	if (!parse_line(v, line, len)) {
		return false;
	}
	const struct json_node *top = json_top(&v->doc);
	const struct json_node *key = json_member(&v->doc, top, "key");
	if (json_integer(json_member(&v->doc, top, "bundle"), 0) != 1 || top->n != 5) {
		return fail_verify(v, "this version does not support the header of the export");
	}
	v->claims_key = !json_is(key, JSON_NULL);
	if (v->claims_key &&
	    (!json_is(key, JSON_STRING) ||
	     hex_decode(key->str, key->len, v->claimed_key, sizeof(v->claimed_key)) != 0)) {
		return fail_verify(v, "the header of the export names a malformed key");
	}
	v->claimed_records = json_integer(json_member(&v->doc, top, "records"), -1);
	snprintf(v->claimed_id, sizeof(v->claimed_id), "%s", line_member(v, "run_id"));
	snprintf(v->claimed_version, sizeof(v->claimed_version), "%s", line_member(v, "version"));
	v->r->bundle = true;
	return true;
}

static void check_end(struct verify *v, bool cut)
{
	struct verify_result *r = v->r;

	if (r->bundle && v->claimed_records != (int64_t)r->records && v->phase == AT_END) {
		(void)fail_verify(v,
		                  "the header of the export says %" PRId64
		                  " records, but the export has %" PRIu64,
		                  v->claimed_records, (uint64_t)r->records);
		return;
	}
	if (cut && v->phase == AT_END && !r->ledger) {
		(void)fail_verify(v, "there is data after the signature");
		return;
	}
	if (v->phase == AT_END && !cut) {
		r->state = VERIFY_COMPLETE;
		return;
	}
	r->state = VERIFY_INCOMPLETE;
	r->bad_at = r->records;
	snprintf(r->why, sizeof(r->why), "%s",
	         cut                        ? "the last line is cut off"
	         : v->phase == AT_SIGNATURE ? "the signature is missing"
	                                    : "the end is missing");
}

/* Checks the next line. Returns READER_LINE if it is valid. Any other result ends the check.
 * READER_LONG means that the line is bad and v->r says why; each further result means the same as
 * for reader_next(). */
static enum reader_line check_next(struct verify *v, struct reader *in)
{
	const char *line = NULL;
	size_t len = 0;
	enum reader_line got = reader_next(in, &line, &len);

	if (got == READER_LONG) {
		(void)fail_verify(v, "the line is longer than the limit for a line of a record");
	}
	if (got != READER_LINE) {
		return got;
	}
	if (v->phase == AT_RUN && !v->r->bundle && reader_is_header(line, len)) {
		return check_header(v, line, len) ? READER_LINE : READER_LONG;
	}
	if (!check_line(v, line, len)) {
		return READER_LONG;
	}
	v->r->records++;
	v->r->bytes += len;
	return READER_LINE;
}

int verify_record(int fd, const struct verify_ask *ask, struct verify_result *ret,
                  struct ssb_error *err)
{
	assert(fd >= 0 && ask->run_id != NULL);

	struct verify_result r = { 0 };
	AUTO(verify_done) struct verify v = { .ask = ask, .r = &r };
	AUTO(reader_done) struct reader in;
	enum reader_line got;

	(void)sha256_accelerate();
	reader_init(&in, fd, 0);
	do {
		got = check_next(&v, &in);
	} while (got == READER_LINE);
	if (got == READER_FAIL) {
		return ssb_fail(err, SSB_E_SYS, errno, "", "cannot read the record");
	}
	if (got != READER_LONG) {
		check_end(&v, got == READER_CUT);
	}
	memcpy(r.head, v.head, sizeof(r.head));
	*ret = r;
	return 0;
}

const char *verify_state_name(enum verify_state s)
{
	static const char *const names[] = {
		[VERIFY_COMPLETE] = "complete",
		[VERIFY_INCOMPLETE] = "incomplete",
		[VERIFY_BAD] = "bad",
	};

	return names[s];
}

void verify_bundle_header(struct buf *out, const struct verify_result *of)
{
	char hex[2 * VERIFY_KEY_BYTES + 1];
	struct json j;

	hex_encode(of->key, sizeof(of->key), hex);
	json_init(&j, out, false);
	json_open(&j, '{');
	/* must be the first member, because reader_is_header() searches for it */
	json_kint(&j, "bundle", 1);
	json_kstr(&j, "run_id", of->run_id);
	json_kstr(&j, "version", of->version);
	json_kstr(&j, "key", of->signed_end ? hex : NULL);
	json_kuint(&j, "records", of->records);
	json_close(&j, '}');
	buf_addc(out, '\n');
}
