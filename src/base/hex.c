/* hex.c - converts bytes to hexadecimal digits, and back, in constant time. */
#include "base/hex.h"

#include <stdint.h>

static char digit_of(unsigned v)
{
	/* Adds 'a' - '0' - 10 if v > 9. */
	return (char)('0' + v + (((9U - v) >> 8) & ('a' - '0' - 10U)));
}

void hex_encode(const void *data, size_t len, char *ret)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < len; i++) {
		ret[2 * i] = digit_of(p[i] >> 4);
		ret[2 * i + 1] = digit_of(p[i] & 15U);
	}
	ret[2 * len] = '\0';
}

/* Returns the value of a digit; bit 8 is set if `c` is not a digit. */
static unsigned hex_value(char c)
{
	unsigned u = (unsigned char)c;
	unsigned number = u - '0', letter = u - 'a';
	/* All bits of is_number are 1 if `c` is '0' to '9', otherwise 0; is_letter is the same for
	 * 'a' to 'f'. */
	unsigned is_number = ((number | (9U - number)) >> 31) - 1U;
	unsigned is_letter = ((letter | (5U - letter)) >> 31) - 1U;

	return (is_number & number) | (is_letter & (letter + 10U)) |
	       (~(is_number | is_letter) & 0x100U);
}

int hex_decode(const char *hex, size_t len, void *ret, size_t size)
{
	uint8_t *p = ret;
	unsigned bad = 0;

	if (len / 2 != size || len % 2 != 0) {
		return -1;
	}
	for (size_t i = 0; i < len; i++) {
		bad |= hex_value(hex[i]);
	}
	if (bad > 0xff) {
		return -1;
	}
	for (size_t i = 0; i < size; i++) {
		p[i] = (uint8_t)(hex_value(hex[2 * i]) << 4 | hex_value(hex[2 * i + 1]));
	}
	return 0;
}

int hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
	                              : -1;
}
