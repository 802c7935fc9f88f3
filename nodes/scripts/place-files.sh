#!/bin/bash
# After files were put in place: systemd reads its units again when RELOAD=yes, and /etc/hosts gets the lines HOSTS, if there are any,
# between our marks. With KUBECONFIG_OF_ROOT, root has that kubeconfig, and the programs of the node image, unless there are others.
set -euo pipefail
if [ "${RELOAD-}" = yes ]; then
	systemctl daemon-reload
fi
if [ -n "${KUBECONFIG_OF_ROOT-}" ]; then
	bin=${BIN:-/opt/burano/bin} links=${LOCAL_BIN:-/usr/local/bin} home=${ROOT_HOME:-/root}
	for program in kubectl helm; do
		if [ -e "$bin/$program" ] && [ ! -e "$links/$program" ] && [ ! -L "$links/$program" ]; then
			mkdir -p "$links"
			ln -s "$bin/$program" "$links/$program"
		fi
	done
	if [ ! -e "$home/.kube/config" ] && [ ! -L "$home/.kube/config" ]; then
		[ -d "$home/.kube" ] || {
			mkdir -p "$home/.kube"
			chmod 700 "$home/.kube"
		}
		ln -s "$KUBECONFIG_OF_ROOT" "$home/.kube/config"
	fi
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
