#!/bin/bash
# Stops units of a node that leaves: those of UNITS, one a line, that it has.
set -euo pipefail
there=()
while read -r unit; do
	if systemctl cat "$unit" >/dev/null 2>&1; then
		there+=("$unit")
	fi
done <<<"${UNITS:?}"
if [ "${#there[@]}" -gt 0 ]; then
	systemctl stop "${there[@]}"
fi
