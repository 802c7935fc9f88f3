#!/bin/bash
# Ends units one after the other: those of UNITS, one a line, that the node has. They do not start with the node any more. Prints "ended NAME" for each that ran.
set -euo pipefail
while read -r unit; do
	if ! systemctl cat "$unit" >/dev/null 2>&1; then
		continue
	fi
	if systemctl -q is-active "$unit"; then
		echo "ended $unit"
	fi
	systemctl -q disable --now "$unit"
	systemctl -q reset-failed "$unit" 2>/dev/null || true # however it ended
done <<<"${UNITS:?}"
