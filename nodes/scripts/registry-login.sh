#!/bin/bash
# Waits until the registry called REGISTRY at ADDRESS, whose authority is in the file AUTHORITY, answers who logs in as LOGIN (user:password) with the status
# ANSWER. Its kubelet tells it of other users within two minutes.
set -euo pipefail
deadline=$((SECONDS + ${PATIENCE:-150}))
while :; do
	found=$(printf 'user = "%s"\n' "${LOGIN:?}" | curl --silent --config - --output /dev/null --write-out '%{http_code}' --max-time 5 --cacert "${AUTHORITY:?}" \
		--resolve "${REGISTRY:?}:443:${ADDRESS:?}" "https://$REGISTRY/v2/" || true)
	if [ "$found" = "${ANSWER:?}" ]; then
		exit
	fi
	if [ "$SECONDS" -ge "$deadline" ]; then
		echo "the registry answers $found and not $ANSWER" >&2
		exit 1
	fi
	sleep 1
done
