#!/bin/bash
# Leads the clients of an address that masters share to the next holder: end ADDRESS PORT, before this master gives the address up, or open, afterwards. Clients that wait for an answer would
# wait until they miss the connection themselves, so their connections are reset. New ones are dropped meanwhile: clients repeat them within a second.
set -euo pipefail
table=burano_address
case ${1:?} in
end)
	if [ -z "$(ip -o address show to "${2:?}/32")" ]; then
		exit 0
	fi
	nft "add table ip $table; add chain ip $table input { type filter hook input priority -10; }; add rule ip $table input ip daddr $2 tcp dport ${3:?} tcp flags & (syn | ack) == syn drop"
	ss --kill --no-header state established src "$2" sport = ":$3" >/dev/null
	;;
open)
	nft delete table ip "$table" 2>/dev/null || true
	;;
esac
