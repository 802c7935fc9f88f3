#!/bin/bash
# Ends the first process of each of the containers IDS (one a line): asks it to, and kills it when it has not gone after
# PATIENCE seconds. Whoever keeps the container starts it again.
set -euo pipefail
while read -r id; do
	container_signal SIGTERM "$id" || ! container_runs "$id"
done <<<"${IDS:?}"
deadline=$((SECONDS + ${PATIENCE:-30}))
while read -r id; do
	while container_runs "$id"; do
		if [ "$SECONDS" -ge "$deadline" ]; then
			container_signal SIGKILL "$id" || ! container_runs "$id"
		fi
		sleep 0.2
	done
done <<<"$IDS"
