#include "base/sc25519.h"

#include <endian.h>
#include <stddef.h>
#include <string.h>

#include "base/ct.h"
#include "base/ed25519_table.h"

typedef unsigned __int128 u128;

static void load(const uint8_t *b, uint64_t *words, size_t n)
{
	memcpy(words, b, 8 * n);
	for (size_t i = 0; i < n; i++) {
		words[i] = le64toh(words[i]);
	}
}

static void store(const uint64_t words[4], uint8_t ret[32])
{
	for (size_t i = 0; i < 4; i++) {
		uint64_t w = htole64(words[i]);
		memcpy(ret + 8 * i, &w, sizeof(w));
	}
}

/* r (na + nb words) = a * b */
static void multiply(uint64_t *r, const uint64_t *a, size_t na, const uint64_t *b, size_t nb)
{
	memset(r, 0, 8 * (na + nb));
	for (size_t i = 0; i < na; i++) {
		u128 t = 0;
		for (size_t j = 0; j < nb; j++) {
			t += (u128)a[i] * b[j] + r[i + j];
			r[i + j] = (uint64_t)t;
			t >>= 64;
		}
		r[i + nb] = (uint64_t)t;
	}
}

/* r = a - b, n words each; returns 1 if that is below zero. */
static uint64_t subtract(uint64_t *r, const uint64_t *a, const uint64_t *b, size_t n)
{
	uint64_t borrow = 0;

	for (size_t i = 0; i < n; i++) {
		u128 t = (u128)a[i] - b[i] - borrow;
		r[i] = (uint64_t)t;
		borrow = (uint64_t)(t >> 64) & 1;
	}
	return borrow;
}

/* Barrett: q = floor(x * floor(2^512 / L) / 2^512) is floor(x / L), or one
 * less. So x - qL is below 2L, and one subtraction is left to do or not. */
static void reduce(const uint64_t x[8], uint64_t ret[4])
{
	uint64_t product[13], multiple[9], r[4], less[4];

	multiply(product, x, 8, ed25519_barrett, 5);
	multiply(multiple, product + 8, 5, ed25519_order, 4);
	(void)subtract(r, x, multiple, 4);
	uint64_t keep = ct_mask(subtract(less, r, ed25519_order, 4));
	for (size_t i = 0; i < 4; i++) {
		ret[i] = (r[i] & keep) | (less[i] & ~keep);
	}
	explicit_bzero(r, sizeof(r)); /* one of the two is the result, perhaps a secret */
	explicit_bzero(less, sizeof(less));
}

void sc_reduce(const uint8_t hash[64], uint8_t ret[32])
{
	uint64_t x[8], r[4];

	load(hash, x, 8);
	reduce(x, r);
	store(r, ret);
	explicit_bzero(x, sizeof(x));
	explicit_bzero(r, sizeof(r));
}

void sc_mul_add(const uint8_t a[32], const uint8_t b[32], const uint8_t c[32], uint8_t ret[32])
{
	uint64_t wa[4], wb[4], wc[4], x[8];
	u128 t = 0;

	load(a, wa, 4);
	load(b, wb, 4);
	load(c, wc, 4);
	multiply(x, wa, 4, wb, 4);
	for (size_t i = 0; i < 8; i++) {
		t += (u128)x[i] + (i < 4 ? wc[i] : 0);
		x[i] = (uint64_t)t;
		t >>= 64;
	}
	reduce(x, wa);
	store(wa, ret);
	explicit_bzero(wa, sizeof(wa));
	explicit_bzero(wc, sizeof(wc));
	explicit_bzero(x, sizeof(x));
}

bool sc_is_canonical(const uint8_t s[32])
{
	uint64_t w[4], less[4];

	load(s, w, 4);
	return subtract(less, w, ed25519_order, 4) == 1;
}

void sc_digits(const uint8_t s[32], int8_t ret_digits[64])
{
	int carry = 0;

	for (size_t i = 0; i < 64; i++) {
		int digit = (s[i / 2] >> 4 * (i % 2) & 15) + carry;
		carry = (digit + 8) >> 4; /* 8 and above borrow from the next */
		if (i == 63) {
			carry = 0; /* there is none: the digit is at most 8 */
		}
		ret_digits[i] = (int8_t)(digit - 16 * carry);
	}
}
