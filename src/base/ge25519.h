/* ge25519.h - points of the curve of Ed25519 in extended coordinates (RFC
 * 8032, 5.1.4): x = X/Z, y = Y/Z, xy = T/Z. */
#ifndef BASE_GE25519_H
#define BASE_GE25519_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fe25519.h"

struct ge {
	struct fe x, y, z, t; /* tight, each of them */
};

/* From its encoding, of which each point has exactly one: -1 for what is not
 * below p, on no curve, or the second spelling of x = 0. Not for secrets. */
int ge_decode(const uint8_t b[32], struct ge *ret);
void ge_encode(const struct ge *p, uint8_t ret[32]);

void ge_add(struct ge *r, const struct ge *p, const struct ge *q);
void ge_double(struct ge *r, const struct ge *p);
void ge_negate(struct ge *p);
/* One of the eight points that the cofactor sends to the neutral one. */
bool ge_is_small(const struct ge *p);

/* s * B, for s below 2^255. Constant time. */
void ge_mul_base(const uint8_t s[32], struct ge *ret);
/* s * p. The time it takes depends on s: not for secrets. */
void ge_mul_vartime(const uint8_t s[32], const struct ge *p, struct ge *ret);

#endif
