#!/bin/bash
# Prints for each of UNITS (names, one a line) how often systemd had to start it again: "NAME COUNT".
set -euo pipefail
while read -r unit; do
	echo "$unit $(systemctl show -p NRestarts --value "$unit")"
done <<<"${UNITS:?}"
