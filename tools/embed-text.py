#!/usr/bin/python3
"""Writes a text file as a C string, one line of C for each line.

Usage: embed-text.py NAME IN OUT"""
import sys


def quoted(line):
    for byte, written in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t")):
        line = line.replace(byte, written)
    if not line.isascii() or not line.isprintable():
        sys.exit(f"{sys.argv[2]}: more than printable ASCII: {line!r}")
    return f'\t"{line}"\n'


def main():
    name, source, target = sys.argv[1:]
    with open(source, encoding="utf-8") as f:
        lines = [quoted(line) for line in f]
    with open(target, "w", encoding="utf-8") as f:
        f.write(f"static const char {name}[] =\n{''.join(lines)}\t;\n")


main()
