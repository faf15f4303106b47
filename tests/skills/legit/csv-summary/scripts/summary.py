#!/usr/bin/env python3
import csv
import json
import statistics
import sys
import tempfile

with tempfile.TemporaryFile("w+") as copy:  # a pipe can be read only once
    copy.write(sys.stdin.read())
    copy.seek(0)
    rows = list(csv.DictReader(copy))
result = {"rows": len(rows), "columns": {}}
for name in rows[0] if rows else []:
    values = [row[name] for row in rows]
    try:
        numbers = [float(v) for v in values]
        result["columns"][name] = {"min": min(numbers), "max": max(numbers),
                                   "mean": statistics.mean(numbers)}
    except ValueError:
        result["columns"][name] = {"different": len(set(values))}
print(json.dumps(result))
