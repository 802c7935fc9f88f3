#!/bin/bash
# Has a node register itself again: starts the kubelet anew, unless it has run for less than AGE seconds and may be about to register the node for the
# first time, and then the daemons of the pods' network (DAEMONS, one in a line), which keep what they know of the node beside its registration. Units that
# do not run stay as they are. Prints "young", or "again".
set -euo pipefail
if systemctl -q is-active kubelet; then
	began=$(systemctl show --property ActiveEnterTimestampMonotonic --value kubelet) # µs since the machine began
	read -r now _ </proc/uptime
	if [ $((${now%.*} - began / 1000000)) -lt "${AGE:-20}" ]; then
		echo young
		exit
	fi
	systemctl restart kubelet
fi
while read -r unit; do
	[ -z "$unit" ] || systemctl try-restart "$unit"
done <<<"${DAEMONS-}"
echo again
