#!/bin/bash
# Waits until the sshd of all NODES (name, address and port, one a line) takes a connection; those that do not within PATIENCE seconds are
# named.
set -euo pipefail
deadline=$((SECONDS + ${PATIENCE:?}))
unreached=
while read -r name address port; do
	until timeout 2 bash -c "exec 3<>/dev/tcp/$address/$port" 2>/dev/null; do
		if [ "$SECONDS" -ge "$deadline" ]; then
			unreached="$unreached $name ($address, port $port)"
			break
		fi
		sleep 0.2
	done
done <<<"${NODES:?}"
if [ -n "$unreached" ]; then
	echo "SSH is not reached of$unreached" >&2
	exit 1
fi
