#!/bin/sh
# The sum of one column.
awk -F, -v column="$1" '{ sum += $column } END { print sum }'
