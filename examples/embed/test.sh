#!/bin/sh
# Runs the example program of the library: run_skill, hello/skillsandbox.yaml
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
skill=$(dirname "$2")

out=$(HOME="$tmp" XDG_STATE_HOME="$tmp/state" "$1" "$skill" world)
[ "$out" = "hello world" ] || { echo "unexpected output: $out"; exit 1; }

# Control: without the skill the same program fails and says why.
status=0
HOME="$tmp" XDG_STATE_HOME="$tmp/state" "$1" "$tmp/nowhere" 2>"$tmp/err" || status=$?
[ "$status" = 125 ] && grep -q '^run_skill: ' "$tmp/err"
