/* stamp.h - the time of a line, as text. */
#ifndef BASE_STAMP_H
#define BASE_STAMP_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define STAMP_SIZE 28 /* "2026-11-15T13:20:00.123456Z" and a NUL */

/* The text of the last second: most lines share it. */
struct stamp {
	int64_t second; /* -1: none yet */
	char text[STAMP_SIZE];
};

#define STAMP_NONE                                                                                 \
	{                                                                                          \
		.second = -1                                                                       \
	}

/* RFC 3339 in UTC with microseconds; good until the next call. What is before
 * 1970 or past the year 9999 is told as the nearest time that can be written. */
const char *stamp_text(struct stamp *s, const struct timespec *ts);

/* Back, from exactly that form; in microseconds since 1970. */
bool stamp_parse(const char *text, int64_t *ret_us);

/* "90s", "15m", "2h", "7d", "4w"; false: it is none. */
bool stamp_span_seconds(const char *text, int64_t *ret);

#endif
