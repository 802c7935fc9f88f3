#!/bin/bash
# Ends what runs pods on a master: kubelet, kube-proxy, the program for volumes, containerd with the containers that are left, and their files. Those of the
# control plane and of the pods' network stay.
set -euo pipefail
notes=${NOTES:-/var/lib/burano/started} units=${UNIT_FOLDER:-/etc/systemd/system} configs=${CONFIGS:-/etc/kubernetes} keys=${KEYS:-/etc/burano/pki}
data=${KUBELET_DATA:-/var/lib/kubelet} spaces=${SPACES:-/run/netns} plugins=${PLUGINS:-/etc/cni/net.d} proxy=${PROXY:-/opt/burano/bin/kube-proxy}
for unit in kubelet kube-proxy storage-node; do
	if systemctl cat "$unit" >/dev/null 2>&1; then
		systemctl -q disable --now "$unit"
		systemctl -q reset-failed "$unit" 2>/dev/null || true
	fi
	rm -f "$units/$unit.service" "$notes/$unit"
done
if systemctl -q is-active containerd; then
	ctr=(ctr -n k8s.io)
	"${ctr[@]}" tasks ls -q | xargs -r -n 1 "${ctr[@]}" tasks rm -f >/dev/null || true
	"${ctr[@]}" containers ls -q | xargs -r "${ctr[@]}" containers rm >/dev/null || true
fi
systemctl -q disable --now containerd
rm -f "$notes/containerd"
awk -v data="$data/" 'index($2, data) == 1 {print $2}' /proc/mounts | sort -r | xargs -r -n 1 umount -l
for space in "$spaces"/cni-*; do
	if [ -e "$space" ]; then
		ip netns del "${space##*/}"
	fi
done
# What kube-proxy set in the kernel. It complains of what it does not find, too.
"$proxy" --cleanup >/dev/null 2>&1 || true
nft delete table inet burano-metadata 2>/dev/null || true
find "$data" -mindepth 1 -delete 2>/dev/null || true
rm -f "$keys"/kubelet.* "$keys"/kubelet-server.* "$keys"/proxy.* "$keys"/storage-node.* "$configs"/kubelet.* "$configs"/proxy.* "$plugins"/10-calico.conflist "$plugins"/10-flannel.conflist
systemctl daemon-reload
