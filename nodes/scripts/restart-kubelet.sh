#!/bin/bash
# Starts the kubelet anew, and waits until it is healthy.
set -euo pipefail
systemctl restart kubelet
deadline=$((SECONDS + ${PATIENCE:-60}))
until [ "$(curl --silent --max-time 2 http://127.0.0.1:10248/healthz)" = ok ]; do
	if [ "$SECONDS" -ge "$deadline" ]; then
		journalctl --unit kubelet --lines 20 --no-pager >&2
		exit 1
	fi
	sleep 0.2
done
