#!/bin/bash
# Begins the data DATA of the node's etcd member, alone in a new cluster, with SNAPSHOT, which is removed then. The member does not run.
set -euo pipefail
rm -rf "${DATA:?}.restored"
mkdir -p "$(dirname "$DATA")"
"${PROGRAM:?}" etcd restore --name "${NAME:?}" --address "${ADDRESS:?}" --token "${TOKEN:?}" "${SNAPSHOT:?}" "$DATA.restored"
chmod 0700 "$DATA.restored"
rm -rf "${JOIN:?}" "$DATA"
mv -T "$DATA.restored" "$DATA"
rm -f "$SNAPSHOT"
