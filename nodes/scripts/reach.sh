#!/bin/bash
# Waits until the sshd of all NODES (name and address, one a line) takes a connection; those that do not within PATIENCE seconds are
# named.
set -euo pipefail
deadline=$((SECONDS + ${PATIENCE:?}))
unreached=
while read -r name address; do
	until timeout 2 bash -c "exec 3<>/dev/tcp/$address/22" 2>/dev/null; do
		if [ "$SECONDS" -ge "$deadline" ]; then
			unreached="$unreached $name ($address)"
			break
		fi
		sleep 0.2
	done
done <<<"${NODES:?}"
if [ -n "$unreached" ]; then
	echo "port 22 is not reached of$unreached" >&2
	exit 1
fi
