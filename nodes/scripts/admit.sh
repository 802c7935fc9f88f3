#!/bin/bash
# Lets everything from NETWORKS (CIDRs, one a line) into a gateway, until its daemon makes its table anew, where they are let in as well. Where
# there is no table yet nothing is closed.
set -euo pipefail
if ! rules=$(nft list chain inet burano-gateway input 2>/dev/null); then
	exit 0
fi
while read -r network; do
	if ! grep -qF "\"from $network\"" <<<"$rules"; then
		nft insert rule inet burano-gateway input ip saddr "$network" accept comment "\"from $network\""
	fi
done <<<"${NETWORKS:?}"
