#!/bin/bash
# Ends the node's etcd member for good and removes its data, which nobody else needs: it is a member no more.
set -euo pipefail
systemctl stop etcd 2>/dev/null || true
rm -rf "${DATA:?}" "${JOIN:?}"
if [ "${KEEP_UNIT-}" != yes ]; then
	rm -f /etc/systemd/system/multi-user.target.wants/etcd.service "${NOTES:-/var/lib/burano/started}/etcd"
fi
