#include "session/money.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "session/decimal.h"

static bool refuse(const char **ret_why, const char *why)
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
		return refuse(ret_why, "is negative");
	}
	if (!decimal_parse(s, strlen(s), &d)) {
		return refuse(ret_why, "is not an amount of dollars, such as 0.50");
	}
	switch (decimal_times(&d, MICROS_PER_DOLLAR, (uint64_t)MAX_MICROS, &v)) {
	case DECIMAL_EXACT:
		*ret = (micros)v;
		return true;
	case DECIMAL_FINER:
		return refuse(ret_why, "is finer than a millionth of a dollar");
	case DECIMAL_MORE:
		break;
	}
	return refuse(ret_why, "is more than 1000000000 dollars");
}

/* Whole dollars and millionths, without overflow for any number. */
static const char *split(micros m, uint64_t *ret_dollars, uint64_t *ret_rest)
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
	const char *sign = split(m, &dollars, &rest);
	int places = 6;

	while (places > 2 && rest % 10 == 0) {
		rest /= 10;
		places--;
	}
	snprintf(out, MONEY_TEXT, "%s$%" PRIu64 ".%0*" PRIu64, sign, dollars, places, rest);
	return out;
}
