#!/bin/bash
# Ends UNIT, by which the gateways share an address, and forgets it and its FILES (paths, one a line).
set -euo pipefail
notes=${NOTES:-/var/lib/burano/started}
systemctl -q disable --now "${UNIT:?}"
rm -f "/etc/systemd/system/$UNIT.service" "$notes/$UNIT"
while IFS= read -r file; do
	rm -f "$file"
done <<<"${FILES:?}"
systemctl daemon-reload
