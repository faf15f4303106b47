#!/usr/bin/env python3
import json
import sys

text = open(sys.argv[1]).read() if len(sys.argv) > 1 else sys.stdin.read()
print(json.dumps({"words": len(text.split()), "lines": len(text.splitlines())}))
