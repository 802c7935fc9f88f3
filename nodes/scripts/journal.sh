#!/bin/bash
# Prints the last lines of the journals of UNITS (names, one a line). The stack traces of Go programs are left out: why they ended
# stands before them.
set -euo pipefail
while read -r unit; do
	echo "$unit ($(systemctl is-active "$unit" || true)):"
	journalctl -u "$unit" -n 300 --no-pager -o cat | grep -Ev '^([[:space:]]|goroutine |created by |[^ ]+\(.*\)$|$)' | sed 's/,"stacktrace":"[^"]*"//' | tail -n "${LINES_EACH:-10}" || true
done <<<"${UNITS:?}"
