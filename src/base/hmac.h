/* hmac.h - HMAC-SHA-256 (RFC 2104) of a message that is given in pieces. */
#ifndef BASE_HMAC_H
#define BASE_HMAC_H

#include "base/sha256.h"

struct hmac {
	struct sha256 inner;
	struct sha256 outer;
};

void hmac_init(struct hmac *h, const void *key, size_t len);
void hmac_update(struct hmac *h, const void *data, size_t len);
/* Writes the HMAC to `ret` and wipes `h`, which is as secret as the key. */
void hmac_final(struct hmac *h, uint8_t ret[SHA256_BYTES]);

#endif
