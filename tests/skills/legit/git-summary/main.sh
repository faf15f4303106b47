#!/bin/sh
# main.sh REPOSITORY - who changed it, how often, and what last.
set -eu
export GIT_CONFIG_GLOBAL="$HOME/.gitconfig"
git config --global --add safe.directory "$1"
git -C "$1" shortlog -sn HEAD
git -C "$1" log -1 --format='last: %s'
