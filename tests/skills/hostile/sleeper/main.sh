#!/bin/sh
# Never ends by itself: who waits for it waits for ever.
trap '' TERM INT HUP
echo waiting
while :; do
	sleep 3600
done
