#!/bin/bash
# Prints the last lines of the journals of UNITS (names, one a line).
set -euo pipefail
while read -r unit; do
	echo "$unit ($(systemctl is-active "$unit" || true)):"
	journalctl -u "$unit" -n "${LINES_EACH:-10}" --no-pager -o cat
done <<<"${UNITS:?}"
