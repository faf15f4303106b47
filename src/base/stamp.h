/* stamp.h - a time as text. */
#ifndef BASE_STAMP_H
#define BASE_STAMP_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define STAMP_SIZE 28 /* "2026-11-15T13:20:00.123456Z" and a NUL */

/* Caches the text of the second that was written last, because most lines of a record fall in the
 * same second as the line before. */
struct stamp {
	int64_t second; /* the second that `text` shows; -1: no text yet */
	char text[STAMP_SIZE];
};

#define STAMP_NONE                                                                                 \
	{                                                                                          \
		.second = -1                                                                       \
	}

/* Returns the time in the format of RFC 3339, in UTC with microseconds; valid until the next call.
 * For a time before 1970 or after the year 9999, the nearest second that can be written is used. */
const char *stamp_text(struct stamp *s, const struct timespec *ts);

/* Like stamp_text(), for microseconds since 1970. */
const char *stamp_text_us(struct stamp *s, int64_t us);

/* Parses exactly the format of stamp_text(), into microseconds since 1970. Returns false for
 * anything else. */
bool stamp_parse(const char *text, int64_t *ret_us);

/* Parses a duration: "90s", "15m", "2h", "7d" or "4w". Returns false for anything else. */
bool stamp_span_seconds(const char *text, int64_t *ret);

#endif
