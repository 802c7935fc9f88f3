#!/bin/bash
# After files were put in place: systemd reads its units again when RELOAD=yes, and /etc/hosts gets the lines HOSTS, if there are any,
# between our marks.
set -euo pipefail
if [ "${RELOAD-}" = yes ]; then
	systemctl daemon-reload
fi
if [ -z "${HOSTS-}" ]; then
	exit 0
fi
hosts=${HOSTS_FILE:-/etc/hosts}
begin='# burano: nodes of the cluster'
end='# burano: end'
wanted=$(
	sed "/^$begin\$/,/^$end\$/d" "$hosts"
	printf '%s\n%s\n%s\n' "$begin" "$HOSTS" "$end"
)
if [ "$wanted" != "$(cat "$hosts")" ]; then
	printf '%s\n' "$wanted" >"$hosts.burano"
	# written into, not replaced: a container's hosts file may be a mount
	cat "$hosts.burano" >"$hosts"
	rm -f "$hosts.burano"
fi
