/* digest.h - a SHA-256 digest as text: "sha256:HEX". Pure. */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/sha256.h"

#define DIGEST_TEXT (sizeof("sha256:") + 2 * (size_t)SHA256_BYTES)

/* Returns `out`. */
const char *digest_text(const uint8_t hash[SHA256_BYTES], char out[DIGEST_TEXT]);
/* False, and `ret` is untouched, unless `text` is exactly a digest. */
bool digest_parse(const char *text, uint8_t ret[SHA256_BYTES]);
/* A member of an open object. */
void digest_put(struct json *j, const char *key, const uint8_t hash[SHA256_BYTES]);

#endif
