#!/usr/bin/env python3
import sys
print("hello", sys.argv[1])
