#!/bin/bash
# Deletes the node NODE from Calico, with the addresses and blocks that it holds. Runs on a master, with the access of its own
# calico-node.
set -euo pipefail
set -a
# shellcheck source=/dev/null
. "${ENVIRONMENT:?}"
set +a
/opt/burano/bin/calicoctl delete node "${NODE:?}" --skip-not-exists --allow-version-mismatch >/dev/null
