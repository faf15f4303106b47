/* sc25519.h - integers modulo L, the order of the base point of Ed25519, in
 * constant time. Little-endian bytes outside, as in RFC 8032. */
#ifndef BASE_SC25519_H
#define BASE_SC25519_H

#include <stdbool.h>
#include <stdint.h>

/* A hash, modulo L. */
void sc_reduce(const uint8_t hash[64], uint8_t ret[32]);
/* (a * b + c) modulo L; a is below 2^255, b and c below L. */
void sc_mul_add(const uint8_t a[32], const uint8_t b[32], const uint8_t c[32], uint8_t ret[32]);
/* Is it below L? Not for secrets. */
bool sc_is_canonical(const uint8_t s[32]);

/* 64 digits of -8 to 8, the lowest first: sum of digit[i] * 16^i. For numbers
 * below 2^255. */
void sc_digits(const uint8_t s[32], int8_t ret_digits[64]);

#endif
