#!/bin/bash
# Before the store is begun anew with a snapshot: stops UNITS, has those of RESTART (both names, one a line) be started again by whoever
# starts units next, and removes the node's etcd member with its data.
set -euo pipefail
notes=${NOTES:-/var/lib/burano/started}
while read -r unit; do
	if [ -n "$unit" ]; then
		systemctl stop "$unit" 2>/dev/null || true
	fi
done <<<"${UNITS:?}"
while read -r unit; do
	if [ -n "$unit" ]; then
		rm -f "$notes/$unit"
	fi
done <<<"$UNITS"$'\n'"${RESTART-}"
if [ "${KEEP_DATA-}" != yes ]; then
	rm -rf "${JOIN:?}" "${DATA:?}"
fi
