/* record.c - collects, chains and writes the lines of a record. */
#include "trace/record.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "trace/trace_limits.h"
#include "base/error.h"
#include "base/hex.h"
#include "os/clock.h"

static void record_now(struct timespec *ret_wall, uint64_t *ret_mono_us)
{
	(void)clock_gettime(CLOCK_REALTIME, ret_wall);
	*ret_mono_us = clock_us();
}

void record_init(struct record *r)
{
	*r = (struct record){ .fd = -1, .path = "", .clock = record_now, .stamp = STAMP_NONE };
	buf_init(&r->out, RECORD_BUFFER);
}

void record_done(struct record *r)
{
	buf_done(&r->out);
}

/* Takes the time of the next line. The time of day may be set back, but the time since the
 * beginning of the record never decreases. */
static void record_tick(struct record *r)
{
	struct timespec wall;
	uint64_t now;

	r->clock(&wall, &now);
	if (r->ago_us > 0) {
		now -= r->ago_us < now ? r->ago_us : now;
		wall.tv_sec -= (time_t)(r->ago_us / 1000000);
		wall.tv_nsec -= (long)(r->ago_us % 1000000) * 1000;
		if (wall.tv_nsec < 0) {
			wall.tv_nsec += 1000000000;
			wall.tv_sec--;
		}
	}
	if (r->seq == 0) {
		r->begun_us = now;
	}
	if (now > r->begun_us + r->mono_us) {
		r->mono_us = now - r->begun_us;
	}
	r->wall_us = (int64_t)wall.tv_sec * 1000000 + wall.tv_nsec / 1000;
	(void)stamp_text(&r->stamp, &wall);
}

struct json *record_begin(struct record *r, const char *kind)
{
	record_tick(r);
	return record_begin_same(r, kind);
}

struct json *record_begin_same(struct record *r, const char *kind)
{
	if (r->out.len + TRACE_LINE_BYTES > RECORD_BUFFER) {
		(void)record_flush(r);
	}
	r->line = r->out.len;
	json_init(&r->json, &r->out, false);
	json_open(&r->json, '{');
	json_kuint(&r->json, "seq", r->seq);
	json_kstr(&r->json, "time", r->stamp.text);
	json_kuint(&r->json, "mono", r->mono_us);
	json_kstr(&r->json, "kind", kind);
	return &r->json;
}

static void record_hash(const struct record *r, size_t len, uint8_t ret[SHA256_BYTES])
{
	struct sha256 s;

	sha256_init(&s);
	sha256_update(&s, r->hash, sizeof(r->hash));
	sha256_update(&s, r->out.data + r->line, len);
	sha256_final(&s, ret);
}

bool record_end(struct record *r)
{
	assert(r->out.failed || r->json.depth == 1);

	uint8_t hash[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];
	size_t len = r->out.len - r->line;

	if (!r->out.failed && len + RECORD_HASH_TAIL <= TRACE_LINE_BYTES) {
		record_hash(r, len, hash);
		hex_encode(hash, sizeof(hash), hex);
		buf_adds(&r->out, RECORD_HASH_KEY);
		buf_add(&r->out, hex, sizeof(hex) - 1);
		buf_adds(&r->out, "\"}\n");
	} else {
		r->out.failed = true;
	}
	if (r->out.failed) {
		r->out.failed = false;
		r->out.len = r->line;
		return false;
	}
	memcpy(r->hash, hash, sizeof(hash));
	r->bytes += len + RECORD_HASH_TAIL;
	r->seq++;
	return true;
}

void record_resume(struct record *r, uint64_t seq, const uint8_t hash[SHA256_BYTES],
                   int64_t wall_us, uint64_t mono_us)
{
	buf_reset(&r->out);
	r->seq = seq;
	memcpy(r->hash, hash, sizeof(r->hash));
	r->wall_us = wall_us;
	r->mono_us = mono_us;
	(void)stamp_text_us(&r->stamp, wall_us);
}

const char *record_time(const struct record *r)
{
	return r->stamp.text;
}

/* Records the failure. If only a part of a line was written, cuts the file after the last whole
 * line. */
static void fail_record(struct record *r, size_t done, int error)
{
	while (done > 0 && r->out.data[done - 1] != '\n') {
		done--;
	}
	r->written += done;
	ssb_fail(&r->failure, SSB_E_SYS, error, "trace", "cannot write '%.200s'%s", r->path,
	         ftruncate(r->fd, (off_t)r->written) != 0 ? ", and its last line is cut short"
	                                                  : "");
}

int record_flush(struct record *r)
{
	size_t done = 0;

	while (r->failure.code == SSB_OK && done < r->out.len) {
		ssize_t n = write(r->fd, r->out.data + done, r->out.len - done);
		if (n >= 0) {
			done += (size_t)n;
		} else if (errno != EINTR) {
			fail_record(r, done, errno);
		}
	}
	if (r->failure.code == SSB_OK) {
		r->written += done;
	}
	buf_reset(&r->out);
	return r->failure.code == SSB_OK ? 0 : -1;
}

int record_sync(struct record *r)
{
	if (record_flush(r) != 0) {
		return -1;
	}
	if (fdatasync(r->fd) != 0) {
		return ssb_fail(&r->failure, SSB_E_SYS, errno, "trace", "cannot sync '%.200s'",
		                r->path);
	}
	return 0;
}
