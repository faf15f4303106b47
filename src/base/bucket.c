/* bucket.c - fills and empties a token bucket. Fractions of a token are not lost. */
#include "base/bucket.h"

#define SECOND 1000000

void bucket_init(struct bucket *k, uint64_t per_second, uint64_t depth, uint64_t now_us)
{
	*k = (struct bucket){
		.per_second = per_second, .depth = depth, .left = depth, .at_us = now_us
	};
}

bool bucket_take(struct bucket *k, uint64_t now_us)
{
	uint64_t past = now_us > k->at_us ? now_us - k->at_us : 0;

	if (past >= SECOND * (k->depth / k->per_second + 1)) {
		k->left = k->depth; /* After such a long time the bucket is full. The product below
		                       could overflow. */
		k->at_us = now_us;
	} else {
		/* Advance at_us only by whole tokens: otherwise frequent calls would lose the
		 * fraction of the next token. */
		uint64_t more = past * k->per_second / SECOND;
		k->left = k->left + more < k->depth ? k->left + more : k->depth;
		k->at_us += more * SECOND / k->per_second;
	}
	if (k->left == 0) {
		return false;
	}
	k->left--;
	return true;
}

uint64_t bucket_due_us(const struct bucket *k, uint64_t n)
{
	uint64_t missing = n > k->left ? n - k->left : 0;

	return k->at_us + (missing * SECOND + k->per_second - 1) / k->per_second;
}
