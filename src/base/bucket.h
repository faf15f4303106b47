/* bucket.h - a token bucket: a rate per second, and bursts up to a depth. */
#ifndef BASE_BUCKET_H
#define BASE_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

struct bucket {
	uint64_t per_second; /* at least 1 */
	uint64_t depth;      /* the largest burst */
	uint64_t left;
	uint64_t at_us; /* the time at which `left` was computed */
};

void bucket_init(struct bucket *k, uint64_t per_second, uint64_t depth,
                 uint64_t now_us);                   /* the bucket starts full */
bool bucket_take(struct bucket *k, uint64_t now_us); /* false: no token is left now */

/* Returns the time at which the bucket will have `n` tokens (at most `depth`). */
uint64_t bucket_due_us(const struct bucket *k, uint64_t n);

#endif
