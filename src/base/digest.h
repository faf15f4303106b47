/* digest.h - a SHA-256 digest as text: "sha256:HEX". No I/O. */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/sha256.h"

#define DIGEST_TEXT (sizeof("sha256:") + 2 * (size_t)SHA256_BYTES)

/* Writes the text to `out` and returns `out`. */
const char *digest_text(const uint8_t hash[SHA256_BYTES], char out[DIGEST_TEXT]);
/* Returns false, with `ret` untouched, unless `text` is exactly a digest. */
bool digest_parse(const char *text, uint8_t ret[SHA256_BYTES]);
/* Writes the digest as the member `key` of an open JSON object. */
void digest_put(struct json *j, const char *key, const uint8_t hash[SHA256_BYTES]);

#endif
