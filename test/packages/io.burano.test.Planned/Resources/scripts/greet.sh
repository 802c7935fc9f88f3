#!/bin/bash
# Says the greeting of its file, and where: greet.sh GREETING
set -euo pipefail
sed -e "s/%GREETING%/$1/" -e "s/%HOST%/$(hostname)/" page/greeting.txt | tee /root/greeting
wc -c <note >&2
