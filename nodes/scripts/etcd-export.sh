#!/bin/bash
# Writes SNAPSHOT from the data DATA of the node's etcd member, which is stopped for that: without a majority it serves nobody.
set -euo pipefail
systemctl stop etcd 2>/dev/null || true
mkdir -p "$(dirname "${SNAPSHOT:?}")"
"${PROGRAM:?}" etcd export --scratch "$(dirname "$SNAPSHOT")" "${DATA:?}" "$SNAPSHOT"
