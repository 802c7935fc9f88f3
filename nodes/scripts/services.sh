#!/bin/bash
# Waits until all UNITS (names, one a line) are active; those that are not within PATIENCE seconds are named with the
# last lines of their journals.
set -euo pipefail
deadline=$((SECONDS + ${PATIENCE:-20}))
mapfile -t units <<<"${UNITS:?}"
until systemctl -q is-active "${units[@]}" && ! systemctl is-active "${units[@]}" | grep -qv '^active$'; do
	if [ "$SECONDS" -ge "$deadline" ]; then
		for unit in "${units[@]}"; do
			if ! systemctl -q is-active "$unit"; then
				echo "$unit is $(systemctl is-active "$unit" || true), not active; the last lines of its journal:" >&2
				# without the stack traces of Go programs
				journalctl -u "$unit" -n 300 --no-pager -o cat | grep -Ev '^([[:space:]]|goroutine |created by |[^ ]+\(.*\)$|$)' | sed 's/,"stacktrace":"[^"]*"//' | tail -n 10 >&2 || true
			fi
		done
		exit 1
	fi
	sleep 0.2
done
