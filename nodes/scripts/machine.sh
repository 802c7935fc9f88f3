#!/bin/bash
# Makes sure that a machine which nobody made for Burano can be a node: OWNER says of which cluster, ADDRESS is its own address, NETWORK what connects
# the pods (calico or flannel), ALSO what else it must have (paths), LEAVE a script that takes the node away again. All that is wrong is said at once, one thing a line. Notes whose
# it is, and prints the version of its Kubernetes. With LOOK it only looks.
set -euo pipefail
notes=${NOTES:-/var/lib/burano}
wrong=0
complain() {
	echo "$1" >&2
	wrong=1
}
owner=$(cat "$notes/cluster" 2>/dev/null || true)
if [ -n "$owner" ] && [ "$owner" != "${OWNER:?}" ]; then
	complain "it is a node of another cluster (${owner% *}): remove it there, or, where that cluster is gone, run ${LEAVE:?} there as root"
fi
if [ -z "$(ip -o addr show to "${ADDRESS:?}")" ]; then
	complain "none of its interfaces has the address $ADDRESS, by which the other nodes call it (it has $(ip -o -4 addr show scope global | awk '{print $4}' | paste -sd ' ')): give an address of its own, behind no NAT"
fi
missing=()
programs=(/opt/burano/bin/kubelet /opt/burano/bin/kube-proxy /opt/burano/bin/etcd /opt/cni/bin/loopback /opt/cni/bin/portmap)
case ${NETWORK:?} in
calico) programs+=(/opt/burano/bin/calico-node /opt/cni/bin/calico /opt/cni/bin/calico-ipam) ;;
flannel) programs+=(/opt/burano/bin/flanneld /opt/cni/bin/flannel /opt/cni/bin/ptp /opt/cni/bin/host-local) ;;
esac
read -ra also <<<"${ALSO-}"
for program in "${programs[@]}" "${also[@]}" /opt/burano/images/pause.tar /lib/systemd/system/containerd.service; do
	if [ ! -e "$program" ]; then
		missing+=("$program")
	fi
done
for program in systemctl containerd ctr runc haproxy nft iptables ipset conntrack ethtool; do
	if ! command -v "$program" >/dev/null; then
		missing+=("$program")
	fi
done
if [ ${#missing[@]} -gt 0 ]; then
	complain "it lacks what a node image has: ${missing[*]}. Install a node image on it (burano image build --format raw), or give it the packages, /opt/burano and /opt/cni of one, of the Kubernetes that the cluster has"
fi
if [ ! -e /run/systemd/container ] && [ "$(wc -l </proc/swaps)" -gt 1 ]; then
	complain "it swaps, with which no kubelet starts: swapoff -a, and take swap out of /etc/fstab"
fi
if [ -z "$owner" ]; then
	for unit in kubelet containerd docker k3s; do
		if systemctl -q is-active "$unit" 2>/dev/null; then
			complain "$unit runs there for something else: stop and disable it (systemctl disable --now $unit), or use another machine"
		fi
	done
	for port in 2379 6443 10250 10256; do
		if [ -n "$(ss -Hltn "sport = :$port")" ]; then
			complain "something listens on port $port there, which a node needs"
		fi
	done
fi
if [ "$wrong" = 1 ]; then
	exit 1
fi
if [ -n "${LOOK-}" ]; then
	exit 0
fi
mkdir -p "$notes"
if [ -z "$owner" ]; then
	if [ -e /etc/containerd/config.toml ]; then
		cp -p /etc/containerd/config.toml "$notes/containerd.toml"
	fi
	if [ -e /etc/docker/daemon.json ]; then
		cp -p /etc/docker/daemon.json "$notes/daemon.json"
	fi
	echo "$OWNER" >"$notes/cluster"
fi
read -r _ version < <(/opt/burano/bin/kubelet --version)
echo "$version"
