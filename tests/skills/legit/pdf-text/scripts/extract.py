#!/usr/bin/env python3
"""The text of the simple PDFs that most programs write: streams, perhaps compressed, with
strings that are shown by Tj and TJ."""
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
