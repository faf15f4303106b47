/* digest.c - writes and reads "sha256:HEX". */
#include "base/digest.h"

#include <string.h>

#include "base/hex.h"

#define PREFIX "sha256:"

const char *digest_text(const uint8_t hash[SHA256_BYTES], char out[DIGEST_TEXT])
{
	memcpy(out, PREFIX, sizeof(PREFIX));
	hex_encode(hash, SHA256_BYTES, out + strlen(PREFIX));
	return out;
}

bool digest_parse(const char *text, uint8_t ret[SHA256_BYTES])
{
	size_t head = strlen(PREFIX);

	return strncmp(text, PREFIX, head) == 0 &&
	       hex_decode(text + head, strlen(text + head), ret, SHA256_BYTES) == 0;
}

void digest_put(struct json *j, const char *key, const uint8_t hash[SHA256_BYTES])
{
	char text[DIGEST_TEXT];

	json_kstr(j, key, digest_text(hash, text));
}
