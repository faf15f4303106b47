/* constant_time.c - signs with a secret that valgrind treats as undefined, so that it reports every
 * branch and every address that depends on the secret. With the argument "leak", the program has
 * such a branch. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <valgrind/memcheck.h>

#include "base/ct.h"
#include "base/ed25519.h"
#include "base/hex.h"

int main(int argc, char **argv)
{
	uint8_t seed[ED25519_SEED] = { 42 }, signature[ED25519_SIGNATURE];
	char hex[2 * ED25519_SEED + 1];
	struct ed25519_key key;
	bool leak = argc > 1 && strcmp(argv[1], "leak") == 0;

	VALGRIND_MAKE_MEM_UNDEFINED(seed, sizeof(seed));
	hex_encode(seed, sizeof(seed), hex);
	volatile bool equal = ct_equal(hex, hex + ED25519_SEED, ED25519_SEED);
	/* tells valgrind that the result of the comparison is public */
	VALGRIND_MAKE_MEM_DEFINED(&equal, sizeof(equal));
	ed25519_key_init(&key, seed);
	VALGRIND_MAKE_MEM_DEFINED(key.public, sizeof(key.public));
	ed25519_sign(&key, "message", 7, signature);
	/* both bytes are still secret */
	if (leak && (key.secret[5] > 100 || signature[40] > 100)) {
		puts("leaked");
	}
	VALGRIND_MAKE_MEM_DEFINED(signature, sizeof(signature));
	return ed25519_verify(key.public, "message", 7, signature) && !equal ? 0 : 3;
}
