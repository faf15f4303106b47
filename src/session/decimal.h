/* decimal.h - numbers as people write them, exactly: no float in between. */
#ifndef SESSION_DECIMAL_H
#define SESSION_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct decimal { /* digits x 10^exponent */
	uint64_t digits;
	long exponent;
	bool cut; /* and something more: it had more digits than are kept */
};

/* "5", "0.50", ".5", "1.5e-3"; no sign, no zero before another digit, nothing
 * around it. */
bool decimal_parse(const char *s, size_t len, struct decimal *ret);

enum decimal_fit {
	DECIMAL_EXACT,
	DECIMAL_FINER, /* *ret is the next whole number above */
	DECIMAL_MORE,  /* than max; *ret is untouched */
};

/* d x factor as a whole number up to `max`. */
enum decimal_fit decimal_times(const struct decimal *d, uint64_t factor, uint64_t max,
                               uint64_t *ret);

#endif
