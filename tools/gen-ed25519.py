#!/usr/bin/python3
"""Writes the constants of Ed25519 (RFC 8032, 5.1) as C, from their definitions
and in plain integer arithmetic: usage gen-ed25519.py ed25519_table.c

ed25519_base[i][j] is (j + 1) * 256^i * B as y + x, y - x, 2dxy, each four
words of 64 bits, lowest first: what the addition of a known point needs, in
24 KiB, which is six pages to fault in."""
import sys

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
SQRT_M1 = pow(2, (P - 1) // 4, P)


def base_point():
    """y = 4/5, x the even root."""
    y = 4 * pow(5, -1, P) % P
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * SQRT_M1 % P
    return (P - x if x % 2 else x), y


def add(a, b):
    """The affine law of the curve -x^2 + y^2 = 1 + d x^2 y^2."""
    k = D * a[0] * b[0] * a[1] * b[1] % P
    return ((a[0] * b[1] + b[0] * a[1]) * pow(1 + k, -1, P) % P,
            (a[1] * b[1] + a[0] * b[0]) * pow(1 - k, -1, P) % P)


def rows():
    point = base_point()
    for _ in range(32):
        multiple, row = point, []
        for _ in range(8):
            row.append(multiple)
            multiple = add(multiple, point)
        yield row
        for _ in range(8):
            point = add(point, point)


def limbs(value, bits, count):
    return "{ " + ", ".join(f"{value >> bits * i & (1 << bits) - 1:#x}"
                            for i in range(count)) + " }"


def main():
    out = ['/* Written by gen-ed25519.py. */\n#include "base/ed25519_table.h"\n']
    for name, value in (("d", D), ("2d", 2 * D % P), ("sqrt_m1", SQRT_M1)):
        out.append(f"const struct fe ed25519_{name} = {{ {limbs(value, 51, 5)} }};")
    out.append(f"const uint64_t ed25519_order[4] = {limbs(L, 64, 4)};")
    out.append(f"const uint64_t ed25519_barrett[5] = {limbs(2**512 // L, 64, 5)};")
    out.append("const uint64_t ed25519_base[32][8][3][4] = {")
    for row in rows():
        out.append("\t{")
        for x, y in row:
            words = ", ".join(limbs(v % P, 64, 4) for v in (y + x, y - x, 2 * D * x * y))
            out.append(f"\t\t{{ {words} }},")
        out.append("\t},")
    out.append("};")
    with open(sys.argv[1], "w", encoding="ascii") as f:
        f.write("\n".join(out) + "\n")


main()
