/* money.c - amounts of money and decimal numbers, without floats. See money.h. */
#include "session/money.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- decimals ------------------------------------------------------------ */

#define KEPT_DIGITS  18 /* significant digits that are kept; the number then fits 64 bits */
#define MAX_EXPONENT 1000000

__extension__ typedef unsigned __int128 wide;

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Adds one digit. Leading zeros do not count. */
static void add_digit(struct decimal *d, unsigned *kept, char c, bool fraction)
{
	if (*kept == KEPT_DIGITS) {
		d->cut = d->cut || c != '0';
		d->exponent += fraction ? 0 : 1;
		return;
	}
	d->digits = d->digits * 10 + (uint64_t)(c - '0');
	*kept += d->digits > 0;
	d->exponent -= fraction ? 1 : 0;
}

/* Adds the number after the "e". Returns false if it is not a whole number. */
static bool add_exponent(struct decimal *d, const char *s, const char *end)
{
	bool down = s < end && *s == '-';
	long v = 0;

	if (s < end && (*s == '-' || *s == '+')) {
		s++;
	}
	if (s == end) {
		return false;
	}
	for (; s < end; s++) {
		if (!is_digit(*s)) {
			return false;
		}
		v = v >= MAX_EXPONENT ? v : v * 10 + (*s - '0');
	}
	d->exponent += down ? -v : v;
	return true;
}

bool decimal_parse(const char *s, size_t len, struct decimal *ret)
{
	const char *end = s + len;
	struct decimal d = { 0 };
	unsigned kept = 0;
	bool fraction = false;
	bool any = false;

	if (len > 1 && s[0] == '0' && is_digit(s[1])) {
		return false; /* some programs read a leading 0 as octal */
	}
	for (; s < end; s++) {
		if (is_digit(*s)) {
			add_digit(&d, &kept, *s, fraction);
			any = true;
		} else if (*s == '.' && !fraction) {
			fraction = true;
		} else {
			break;
		}
	}
	if (!any || (s < end && *s != 'e' && *s != 'E') ||
	    (s < end && !add_exponent(&d, s + 1, end))) {
		return false;
	}
	*ret = d;
	return true;
}

enum decimal_fit decimal_times(const struct decimal *d, uint64_t factor, uint64_t max,
                               uint64_t *ret)
{
	assert(factor > 0);

	wide n = (wide)d->digits * factor;
	bool finer = d->cut;

	for (long e = d->exponent; e > 0 && n > 0; e--) {
		n *= 10;
		if (n > max) {
			return DECIMAL_MORE;
		}
	}
	for (long e = d->exponent; e < 0 && n > 0; e++) {
		finer = finer || n % 10 != 0;
		n /= 10;
	}
	n += finer ? 1 : 0;
	if (n > max) {
		return DECIMAL_MORE;
	}
	*ret = (uint64_t)n;
	return finer ? DECIMAL_FINER : DECIMAL_EXACT;
}

/* ---- money --------------------------------------------------------------- */

static bool refuse_amount(const char **ret_why, const char *why)
{
	if (ret_why != NULL) {
		*ret_why = why;
	}
	return false;
}

bool money_parse(const char *s, micros *ret, const char **ret_why)
{
	struct decimal d;
	uint64_t v = 0;

	if (s[0] == '-') {
		return refuse_amount(ret_why, "is negative");
	}
	if (!decimal_parse(s, strlen(s), &d)) {
		return refuse_amount(ret_why, "is not an amount of dollars, such as 0.50");
	}
	switch (decimal_times(&d, MICROS_PER_DOLLAR, (uint64_t)MAX_MICROS, &v)) {
	case DECIMAL_EXACT:
		*ret = (micros)v;
		return true;
	case DECIMAL_FINER:
		return refuse_amount(ret_why, "is finer than a millionth of a dollar");
	case DECIMAL_MORE:
		break;
	}
	return refuse_amount(ret_why, "is more than 1000000000 dollars");
}

/* Splits an amount into whole dollars and millionths. Cannot overflow. */
static const char *split_amount(micros m, uint64_t *ret_dollars, uint64_t *ret_rest)
{
	uint64_t v = m < 0 ? 0 - (uint64_t)m : (uint64_t)m;

	*ret_dollars = v / MICROS_PER_DOLLAR;
	*ret_rest = v % MICROS_PER_DOLLAR;
	return m < 0 ? "-" : "";
}

const char *money_show(micros m, char out[MONEY_TEXT])
{
	uint64_t dollars;
	uint64_t rest;
	const char *sign = split_amount(m, &dollars, &rest);
	int places = 6;

	while (places > 2 && rest % 10 == 0) {
		rest /= 10;
		places--;
	}
	snprintf(out, MONEY_TEXT, "%s$%" PRIu64 ".%0*" PRIu64, sign, dollars, places, rest);
	return out;
}
