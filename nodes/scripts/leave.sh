#!/bin/bash
# Takes away from a machine what made it a node of a cluster: what runs there, and the files that were put there. What came with its system stays. It
# can be run by hand, as root, where the cluster is gone, and again.
set -euo pipefail
notes=/var/lib/burano
units=$(ls "$notes/started" 2>/dev/null || true)
for unit in kubelet $units; do
	case $unit in
	containerd | docker) ;;
	*) systemctl stop "$unit" 2>/dev/null || true ;;
	esac
done

# What Kubernetes ran in Docker, and the images that no registry has. What else Docker has is left there.
if [ -e "$notes/cluster" ] && systemctl -q is-active docker; then
	{
		docker ps --all --quiet --filter label=io.kubernetes.docker.type
		docker ps --all --quiet --filter name='^pin-[0-9a-f]{16}$'
	} | xargs -r docker rm --force --volumes >/dev/null || true
	docker image ls --format '{{.Repository}}:{{.Tag}}' | { grep -E '^(registry|glance)\.local/' || true; } | xargs -r docker image rm >/dev/null || true
	systemctl stop docker.socket docker
fi

# What ran in the containers' namespace of Kubernetes, and its images.
if [ -e "$notes/cluster" ] && systemctl -q is-active containerd; then
	ctr=(ctr -n k8s.io)
	"${ctr[@]}" tasks ls -q | xargs -r -n 1 "${ctr[@]}" tasks rm -f >/dev/null || true
	"${ctr[@]}" containers ls -q | xargs -r "${ctr[@]}" containers rm >/dev/null || true
	"${ctr[@]}" images ls -q | xargs -r "${ctr[@]}" images rm --sync >/dev/null || true
	systemctl stop containerd
fi
awk '$2 ~ "^/var/lib/kubelet/" {print $2}' /proc/mounts | sort -r | xargs -r -n 1 umount -l
for space in /run/netns/cni-*; do
	if [ -e "$space" ]; then
		ip netns del "${space##*/}"
	fi
done

# The pods' network.
ip -o link show | awk -F '[:@ ]+' '$2 ~ /^(cali[0-9a-f]+|vxlan\.calico|flannel\.1)$/ {print $2}' | xargs -r -n 1 ip link del
for protocol in 80 bird; do
	ip route flush proto "$protocol" 2>/dev/null || true
	ip route flush type blackhole proto "$protocol" 2>/dev/null || true
done
for family in iptables ip6tables; do
	rules=$("$family-save" 2>/dev/null || true)
	if grep -qE 'KUBE-|cali' <<<"$rules"; then
		grep -vE 'KUBE-|cali' <<<"$rules" | "$family-restore"
	fi
done
nft delete table inet burano-metadata 2>/dev/null || true
nft delete table ip burano-flannel 2>/dev/null || true
sets() { { ipset list -n 2>/dev/null || true; } | { grep -E '^(cali|KUBE)' || true; }; }
deadline=$((SECONDS + 20))
until [ -z "$(sets)" ]; do # the kernel gives those up a moment later that rules had
	sets | xargs -n 1 ipset destroy 2>/dev/null || sleep 0.2
	if [ "$SECONDS" -ge "$deadline" ]; then
		echo "ipset keeps $(sets | paste -sd ' '): rules of somebody else's refer to them" >&2
		exit 1
	fi
done

# What a kubelet in a container was shown in place of the host's settings.
awk '$2 ~ "^/proc/sys/" {print $2}' /proc/mounts | while read -r setting; do
	if [ -e "/run/burano-shield/$(echo "${setting#/proc/sys/}" | tr / _)" ]; then
		umount "$setting"
	fi
done

# Files.
for unit in $units; do
	rm -f "/etc/systemd/system/multi-user.target.wants/$unit.service" "/etc/systemd/system/$unit.service"
done
if [ -e "$notes/containerd.toml" ]; then
	mv -f "$notes/containerd.toml" /etc/containerd/config.toml
elif [ -e "$notes/cluster" ]; then
	rm -f /etc/containerd/config.toml
fi
if [ -d /var/lib/kubelet ]; then
	find /var/lib/kubelet -mindepth 1 -delete
	rmdir /var/lib/kubelet 2>/dev/null || true # may be a disk of its own
fi
rm -rf /etc/haproxy/burano # certificates with their keys
if [ -e "$notes/started/docker" ]; then
	rm -rf /etc/docker/daemon.json /etc/docker/certs.d/registry.*.internal /etc/systemd/system/docker.service.d/burano-proxy.conf
fi
if [ -e "$notes/daemon.json" ]; then
	mv -f "$notes/daemon.json" /etc/docker/daemon.json
fi
rm -rf /etc/burano /etc/kubernetes /etc/calico /etc/flannel /etc/cni/net.d/10-calico.conflist /etc/cni/net.d/10-flannel.conflist \
	/var/lib/calico /var/lib/cni /var/log/calico /var/log/pods /var/log/containers /run/calico /run/flannel /run/burano-shield
begin='# burano: nodes of the cluster'
end='# burano: end'
hosts=$(sed "/^$begin\$/,/^$end\$/d" /etc/hosts)
printf '%s\n' "$hosts" >/etc/hosts
systemctl daemon-reload
for unit in $units; do
	systemctl reset-failed "$unit" 2>/dev/null || true
done
rm -rf "$notes" /opt/burano/lib
