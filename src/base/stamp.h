/* stamp.h - a time as text. */
#ifndef BASE_STAMP_H
#define BASE_STAMP_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define STAMP_SIZE 28 /* "2026-11-15T13:20:00.123456Z" and a NUL */

/* Keeps the text of the last second, because most lines share it. */
struct stamp {
	int64_t second; /* -1: no text yet */
	char text[STAMP_SIZE];
};

#define STAMP_NONE                                                                                 \
	{                                                                                          \
		.second = -1                                                                       \
	}

/* Returns RFC 3339 in UTC with microseconds, valid until the next call. A time before 1970 or after
 * the year 9999 gives the nearest one that can be written. */
const char *stamp_text(struct stamp *s, const struct timespec *ts);

/* Parses exactly that form, into microseconds since 1970. */
bool stamp_parse(const char *text, int64_t *ret_us);

/* Parses "90s", "15m", "2h", "7d" or "4w"; false for anything else. */
bool stamp_span_seconds(const char *text, int64_t *ret);

#endif
