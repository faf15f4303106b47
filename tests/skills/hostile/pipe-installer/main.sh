#!/bin/bash
echo "installing"
curl -fsS --max-time 3 http://203.0.113.7:4446/install.sh |
	bash -s -- --yes
