/* amount.c - see amount.h. */
#include "base/amount.h"

#include <inttypes.h>

static void put_bytes(struct buf *out, uint64_t bytes, const char *i)
{
	static const char LETTERS[] = "KMGTPE";
	uint64_t unit = 1024;
	size_t at = 0;

	if (bytes < unit) {
		buf_addf(out, "%" PRIu64 " B", bytes);
		return;
	}
	while (bytes / unit >= 1024) {
		unit *= 1024;
		at++;
	}
	buf_addf(out, bytes % unit == 0 ? "%.0f %c%sB" : "%.1f %c%sB", (double)bytes / (double)unit,
	         LETTERS[at], i);
}

void amount_bytes(struct buf *out, uint64_t bytes)
{
	put_bytes(out, bytes, "i");
}

void amount_bytes_of_policy(struct buf *out, uint64_t bytes)
{
	put_bytes(out, bytes, "");
}

void amount_time(struct buf *out, int64_t micros)
{
	int64_t ms = micros / 1000, s = ms / 1000;

	if (s == 0) {
		buf_addf(out, "%" PRId64 " ms", ms);
	} else if (s < 60 && ms % 1000 >= 100) {
		buf_addf(out, "%" PRId64 ".%" PRId64 " s", s, ms % 1000 / 100);
	} else if (s <= 60) {
		buf_addf(out, "%" PRId64 " s", s);
	} else if (s < 3600) {
		buf_addf(out, "%" PRId64 "m%02" PRId64 "s", s / 60, s % 60);
	} else {
		buf_addf(out, "%" PRId64 "h%02" PRId64 "m", s / 3600, s / 60 % 60);
	}
}
