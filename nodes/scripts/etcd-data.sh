#!/bin/bash
# Prints "yes ID" when the node has data of an etcd member, with the id of the member that it was begun for as far as it is
# known (of JOIN, the file of its first start), else "no".
set -euo pipefail
if [ -d "${DATA:?}/member" ]; then
	echo "yes $(sed -n 's/^# member //p' "${JOIN:?}" 2>/dev/null || true)"
else
	echo no
fi
