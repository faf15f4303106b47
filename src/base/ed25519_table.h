/* ed25519_table.h - the constants of the curve; tools/gen-ed25519.py derives
 * them from their definitions when we build. */
#ifndef BASE_ED25519_TABLE_H
#define BASE_ED25519_TABLE_H

#include <stdint.h>

#include "base/fe25519.h"

extern const struct fe ed25519_d;
extern const struct fe ed25519_2d;
extern const struct fe ed25519_sqrt_m1;   /* a square root of -1 */
extern const uint64_t ed25519_order[4];   /* L, lowest word first */
extern const uint64_t ed25519_barrett[5]; /* floor(2^512 / L) */
/* [i][j]: (j + 1) * 256^i * B, as y + x, y - x, 2dxy */
extern const uint64_t ed25519_base[32][8][3][4];

#endif
