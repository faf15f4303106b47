/* stamp.c - writes and reads times as text. */
#include "base/stamp.h"

#include "base/number.h"
#include "base/own.h"

#define LAST_SECOND 253402300799LL /* the last second of the year 9999 */

/* Writes the last `n` digits of v. */
static void put_digits(char *out, int n, int64_t v)
{
	while (n-- > 0) {
		out[n] = (char)('0' + v % 10);
		v /= 10;
	}
}

/* Writes date and time. It does not use gmtime(), which first reads the file of the time zone. Days
 * are converted to a date by the 400-year cycle of the calendar, with years that begin in March. */
static void put_second(char out[STAMP_SIZE], int64_t at)
{
	int64_t second = at % 86400;
	int64_t day = at / 86400 + 719468;
	int64_t era = day / 146097;
	int64_t doe = day % 146097;
	int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	int64_t mp = (5 * doy + 2) / 153;
	int64_t month = mp < 10 ? mp + 3 : mp - 9;

	put_digits(out, 4, yoe + era * 400 + (month <= 2));
	put_digits(out + 5, 2, month);
	put_digits(out + 8, 2, doy - (153 * mp + 2) / 5 + 1);
	put_digits(out + 11, 2, second / 3600);
	put_digits(out + 14, 2, second / 60 % 60);
	put_digits(out + 17, 2, second % 60);
	out[4] = out[7] = '-';
	out[10] = 'T';
	out[13] = out[16] = ':';
	out[19] = '.';
	out[26] = 'Z';
	out[27] = '\0';
}

const char *stamp_text(struct stamp *s, const struct timespec *ts)
{
	int64_t second = ts->tv_sec < 0 ? 0 : ts->tv_sec > LAST_SECOND ? LAST_SECOND : ts->tv_sec;

	if (second != s->second) {
		put_second(s->text, second);
		s->second = second;
	}
	put_digits(s->text + 20, 6, ts->tv_nsec / 1000);
	return s->text;
}

const char *stamp_text_us(struct stamp *s, int64_t us)
{
	return stamp_text(s, &(struct timespec){ .tv_sec = (time_t)(us / 1000000),
	                                         .tv_nsec = (long)(us % 1000000) * 1000 });
}

/* Returns the number of days from 1970 to a date, by the same 400-year cycle. */
static int64_t day_of(int64_t year, int64_t month, int64_t day)
{
	int64_t y = year - (month <= 2);
	int64_t yoe = y % 400;
	int64_t doy = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

	return y / 400 * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

bool stamp_parse(const char *text, int64_t *ret_us)
{
	static const char FORM[STAMP_SIZE] = "dddd-dd-ddTdd:dd:dd.ddddddZ";
	int64_t v[7] = { 0 }; /* year, month, day, hour, minute, second, microseconds */
	size_t part = 0;

	for (size_t i = 0; i < STAMP_SIZE; i++) {
		bool digit = text[i] >= '0' && text[i] <= '9';
		if (FORM[i] == 'd' ? !digit : text[i] != FORM[i]) {
			return false;
		}
		if (digit) {
			v[part] = v[part] * 10 + (text[i] - '0');
		} else {
			part++;
		}
	}
	if (v[0] < 1970 || v[1] < 1 || v[1] > 12 || v[2] < 1 || v[2] > 31 || v[3] > 23 ||
	    v[4] > 59 || v[5] > 60) {
		return false;
	}
	*ret_us = ((day_of(v[0], v[1], v[2]) * 24 + v[3]) * 60 + v[4]) * 60000000 + v[5] * 1000000 +
	          v[6];
	return true;
}

bool stamp_span_seconds(const char *text, int64_t *ret)
{
	static const struct {
		char unit;
		int64_t seconds;
	} UNITS[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 }, { 'w', 604800 } };
	uint64_t n = 0;
	const char *unit = number_read(text, 9999999, &n);

	for (size_t i = 0; unit != NULL && i < ARRAY_LEN(UNITS); i++) {
		if (unit[0] == UNITS[i].unit && unit[1] == '\0') {
			*ret = (int64_t)n * UNITS[i].seconds;
			return true;
		}
	}
	return false;
}
