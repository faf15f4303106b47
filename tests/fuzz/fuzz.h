/* fuzz.h - the entry point of every fuzz target, and a check that ends the program. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void must(int truth)
{
	if (!truth) {
		abort();
	}
}

#endif
