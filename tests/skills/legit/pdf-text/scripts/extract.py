#!/usr/bin/env python3
"""Prints the text of simple PDFs, as most programs write them: streams, perhaps compressed, in
which the operators Tj and TJ show strings."""
import re
import sys
import zlib

data = sys.stdin.buffer.read()
for head, stream in re.findall(rb"<<(.*?)>>\s*stream\r?\n(.*?)\r?\nendstream", data, re.S):
    if b"FlateDecode" in head:
        stream = zlib.decompress(stream)
    for block in re.findall(rb"BT(.*?)ET", stream, re.S):
        parts = re.findall(rb"\(((?:[^()\\]|\\.)*)\)", block)
        print("".join(re.sub(rb"\\(.)", rb"\1", p).decode("latin-1") for p in parts))
