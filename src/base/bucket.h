/* bucket.h - so many a second, and at once what was not used of the last one. */
#ifndef BASE_BUCKET_H
#define BASE_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

struct bucket {
	uint64_t per_second; /* at least 1 */
	uint64_t depth;      /* the most at once */
	uint64_t left;
	uint64_t at_us; /* when `left` was true */
};

void bucket_init(struct bucket *k, uint64_t per_second, uint64_t depth, uint64_t now_us); /* full */
bool bucket_take(struct bucket *k, uint64_t now_us); /* false: none left now */

/* When `n` (at most `depth`) will be there. */
uint64_t bucket_due_us(const struct bucket *k, uint64_t n);

#endif
