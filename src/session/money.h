/* money.h - amounts of money: whole micro-dollars, never a float. */
#ifndef SESSION_MONEY_H
#define SESSION_MONEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int64_t micros; /* millionths of a dollar */

#define MICROS_PER_DOLLAR 1000000
#define MAX_MICROS        (1000000000LL * MICROS_PER_DOLLAR) /* larger amounts are refused */
#define MONEY_TEXT        32

/* Parses "5", "0.50", "1.5e-3": dollars without a sign, exact to the micro-dollar and at most
 * MAX_MICROS. Returns false for any other text: negative, "nan", finer than a micro-dollar,
 * more than MAX_MICROS. *ret_why (if not NULL) is then the reason, for people. */
bool money_parse(const char *s, micros *ret, const char **ret_why);

/* Writes "$0.50", "$0.0021": at least two places, without further zeros. Returns `out`. */
const char *money_show(micros m, char out[MONEY_TEXT]);

/* ---- decimals: numbers as people write them, exact and without floats ---- */

struct decimal { /* digits x 10^exponent */
	uint64_t digits;
	long exponent;
	bool cut; /* more digits than fit were dropped, and not all of them were 0 */
};

/* Parses "5", "0.50", ".5", "1.5e-3". Refuses signs, leading zeros, and any text before or after
 * the number. */
bool decimal_parse(const char *s, size_t len, struct decimal *ret);

enum decimal_fit {
	DECIMAL_EXACT,
	DECIMAL_FINER, /* *ret is rounded up to a whole number */
	DECIMAL_MORE,  /* the value is more than `max`; *ret is untouched */
};

/* Computes d x factor as a whole number up to `max`. */
enum decimal_fit decimal_times(const struct decimal *d, uint64_t factor, uint64_t max,
                               uint64_t *ret);

#endif
