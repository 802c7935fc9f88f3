#!/bin/bash
# Ends the first process of each of the containers IDS (one a line): asks it to, and kills it when it has not gone after
# PATIENCE seconds. Whoever keeps the container starts it again.
set -euo pipefail
ctr=(ctr -n k8s.io tasks)
lives() { "${ctr[@]}" ls | awk -v id="$1" '$1 == id && $3 == "RUNNING" {found = 1} END {exit !found}'; }
while read -r id; do
	"${ctr[@]}" kill -s SIGTERM "$id" 2>/dev/null || ! lives "$id"
done <<<"${IDS:?}"
deadline=$((SECONDS + ${PATIENCE:-30}))
while read -r id; do
	while lives "$id"; do
		if [ "$SECONDS" -ge "$deadline" ]; then
			"${ctr[@]}" kill -s SIGKILL "$id" 2>/dev/null || ! lives "$id"
		fi
		sleep 0.2
	done
done <<<"$IDS"
