#!/bin/bash
# Has Calico's nodes exchange routes with PEERS, lines of an address and an AS number, and with no others that were set so. Runs on a master, with the access of
# its own calico-node.
set -euo pipefail
set -a
# shellcheck source=/dev/null
. "${ENVIRONMENT:?}"
set +a
calicoctl() { /opt/burano/bin/calicoctl "$@" --allow-version-mismatch; }
wanted=()
while read -r address as; do
	if [ -n "$address" ]; then
		name=burano-${address//./-}
		wanted+=("$name")
		calicoctl apply -f - >/dev/null <<<"{apiVersion: projectcalico.org/v3, kind: BGPPeer, metadata: {name: $name}, spec: {peerIP: $address, asNumber: $as}}"
	fi
done <<<"${PEERS-}"
calicoctl get bgppeers -o json | jq --raw-output '.items[]?.metadata.name | select(startswith("burano-"))' | while read -r name; do
	if [[ " ${wanted[*]-} " != *" $name "* ]]; then
		calicoctl delete bgppeer "$name" >/dev/null
	fi
done
