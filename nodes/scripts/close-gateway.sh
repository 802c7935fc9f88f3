#!/bin/bash
# A gateway that leaves gives the virtual address to another one, takes no new connections and ends when the last one has ended, at the latest after PATIENCE seconds.
set -euo pipefail
systemctl stop virtual-address 2>/dev/null || true
systemctl stop burano-gateway 2>/dev/null || true
if systemctl -q is-active haproxy; then
	# Its unit would start HAProxy again however it ends.
	once=/run/systemd/system/haproxy.service.d
	mkdir -p "$once"
	printf '[Service]\nRestart=no\n' >"$once/once.conf"
	systemctl daemon-reload
	systemctl kill --kill-who=main --signal=SIGUSR1 haproxy
	deadline=$((SECONDS + ${PATIENCE:-15}))
	while systemctl -q is-active haproxy && [ "$SECONDS" -lt "$deadline" ]; do
		sleep 0.2
	done
	systemctl stop haproxy
	rm -rf "$once"
	systemctl daemon-reload
fi
