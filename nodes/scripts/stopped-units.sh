#!/bin/bash
# Prints the units of Burano that start with the node and do not run, one a line: "NAME STATE". WANTS is the folder of links to what starts, OURS that of our units.
set -euo pipefail
for link in "${WANTS:-/etc/systemd/system/multi-user.target.wants}"/*.service; do
	[[ $(readlink "$link") == "${OURS:-/etc/systemd/system}"/* ]] || continue
	unit=$(basename "$link" .service)
	type=$(systemctl show -p Type --value "$unit")
	active=$(systemctl show -p ActiveState --value "$unit")
	state=$(systemctl show -p SubState --value "$unit")
	if [[ $type != oneshot && ( $active == failed || $active == inactive || $state == auto-restart ) ]]; then
		echo "$unit $state"
	fi
done
