#include "session/decimal.h"

#define KEPT_DIGITS  18 /* of the significant ones; fits 64 bits */
#define MAX_EXPONENT 1000000

__extension__ typedef unsigned __int128 wide;

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* One digit more. Zeros before the first other digit are no digits. */
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

/* What follows the "e"; false: no whole number. */
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
		return false; /* octal to some readers */
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
