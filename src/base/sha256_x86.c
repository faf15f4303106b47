/* sha256_x86.c - SHA-256 with the SHA extensions of x86.
 *
 * Two registers contain the state as (A,B,E,F) and (C,D,G,H), highest lane first, as SHA256RNDS2
 * requires. Four others contain the last sixteen words of the message schedule. */
#include "base/sha256_blocks.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "base/sha256.h"

#define SHA_NI __attribute__((target("sha,sse4.1,ssse3")))

SHA_NI void sha256_blocks_x86(uint32_t state[8], const uint8_t *p, size_t n)
{
	const __m128i swap = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
	int s[8];
	__builtin_memcpy(s, state, sizeof(s));
	__m128i abef = _mm_set_epi32(s[0], s[1], s[4], s[5]);
	__m128i cdgh = _mm_set_epi32(s[2], s[3], s[6], s[7]);
	__m128i w[4];

	for (; n > 0; n--, p += SHA256_BLOCK) {
		const __m128i abef_before = abef, cdgh_before = cdgh;

#pragma GCC unroll 16
		for (size_t i = 0; i < 16; i++) { /* each pass does four rounds */
			__m128i *now = &w[i % 4];
			if (i < 4) {
				*now = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i));
				*now = _mm_shuffle_epi8(*now, swap);
			} else {
				/* w[t-16] + s0(w[t-15]) + w[t-7], then s1(w[t-2]) */
				const __m128i next = w[(i + 1) % 4], before = w[(i + 3) % 4];
				__m128i t = _mm_sha256msg1_epu32(*now, next);
				t = _mm_add_epi32(t, _mm_alignr_epi8(before, w[(i + 2) % 4], 4));
				*now = _mm_sha256msg2_epu32(t, before);
			}
			const __m128i *k = (const __m128i *)(const void *)(sha256_k + 4 * i);
			__m128i wk = _mm_add_epi32(*now, _mm_loadu_si128(k));
			cdgh = _mm_sha256rnds2_epu32(cdgh, abef, wk);
			abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(wk, 0x0e));
		}
		abef = _mm_add_epi32(abef, abef_before);
		cdgh = _mm_add_epi32(cdgh, cdgh_before);
	}
	const int after[8] = {
		_mm_extract_epi32(abef, 3), _mm_extract_epi32(abef, 2), _mm_extract_epi32(cdgh, 3),
		_mm_extract_epi32(cdgh, 2), _mm_extract_epi32(abef, 1), _mm_extract_epi32(abef, 0),
		_mm_extract_epi32(cdgh, 1), _mm_extract_epi32(cdgh, 0),
	};
	__builtin_memcpy(state, after, sizeof(after));
}

#endif
