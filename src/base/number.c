/* number.c - parses decimal numbers strictly, and checks their bounds. */
#include "base/number.h"

#include <assert.h>
#include <stddef.h>

const char *number_read(const char *text, uint64_t max, uint64_t *ret)
{
	assert(text != NULL);

	const char *p = text;
	uint64_t v = 0;

	for (; *p >= '0' && *p <= '9'; p++) {
		unsigned digit = (unsigned)(*p - '0');
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, digit, &v) ||
		    v > max) {
			return NULL;
		}
	}
	if (p == text) {
		return NULL;
	}
	*ret = v;
	return p;
}

const char *number_read_signed(const char *text, int64_t *ret)
{
	bool negative = *text == '-';
	uint64_t v = 0;
	const char *rest = number_read(text + negative, (uint64_t)INT64_MAX + negative, &v);

	if (rest != NULL) {
		*ret = (int64_t)(negative ? 0 - v : v);
	}
	return rest;
}

bool number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	assert(min <= max);

	uint64_t v = 0;
	const char *rest = number_read(text, max, &v);

	if (rest == NULL || *rest != '\0' || v < min) {
		return false;
	}
	*ret = v;
	return true;
}

bool number_parse_signed(const char *text, int64_t *ret)
{
	int64_t v = 0;
	const char *rest = number_read_signed(text, &v);

	if (rest == NULL || *rest != '\0') {
		return false;
	}
	*ret = v;
	return true;
}
