#!/bin/bash
# Prints what is on the node already, one fact a line:
# mtu N | device NAME | six | machine ID | memory KIB | resolver ADDRESS | metrics | storage | cinder | zoned | manila | keepalived | virtual | docker | websockets | runtime NAME | file SHA256 PATH | link PATH TARGET
# ADDRESS is the node's own address, and ADDRESS6 that of IPv6 that it is to have too; PATHS are the files asked for, one a line.
set -euo pipefail
device=$(ip -o addr show to "${ADDRESS:?}" | awk 'NR == 1 {print $2}')
if [ -n "$device" ]; then
	echo "mtu $(cat "/sys/class/net/$device/mtu")"
	echo "device $device"
fi
if [ -n "${ADDRESS6-}" ] && [ -n "$(ip -o -6 addr show to "$ADDRESS6")" ]; then
	echo six
fi
if [ -r /etc/machine-id ]; then
	echo "machine $(cat /etc/machine-id)"
fi
# a container's kernel and memory are its host's
if [ ! -e /run/systemd/container ]; then
	awk '$1 == "MemTotal:" {print "memory", $2}' /proc/meminfo
fi
if [ -r /etc/resolv.conf ]; then
	awk '$1 == "nameserver" {print "resolver", $2}' /etc/resolv.conf
fi
if [ -x /opt/burano/bin/metrics-server ]; then
	echo metrics
fi
if [ -x /opt/burano/bin/storage-node ]; then
	echo storage
	# it lists what it knows
	known=$(/opt/burano/bin/storage-node -help 2>&1) || true
	if [[ $known == *-cinder* ]]; then
		echo cinder
	fi
	if [[ $known == *-zone* ]]; then
		echo zoned
	fi
	if [[ $known == *-manila* ]] && [ -x /sbin/mount.nfs ]; then
		echo manila
	fi
fi
if [ -x /usr/sbin/keepalived ]; then
	echo keepalived
fi
if [ -e /etc/systemd/system/virtual-address.service ]; then
	echo virtual
fi
if [ -x /usr/sbin/dockerd ] && [ -x /opt/burano/bin/cri-dockerd ]; then
	echo docker
	if [[ $(/opt/burano/bin/kubelet --version) != *" v1.35."* ]]; then
		echo websockets
	fi
fi
# What the node's containers run by since it began.
if [ -e /var/lib/burano/started/cri-dockerd ]; then
	echo runtime docker
elif [ -e /var/lib/burano/started/kubelet ]; then
	echo runtime containerd
fi
regular=()
while IFS= read -r path; do
	if [ -L "$path" ]; then
		echo "link $path $(readlink "$path")"
	elif [ -f "$path" ]; then
		regular+=("$path")
	fi
done <<<"${PATHS-}"
if [ ${#regular[@]} -gt 0 ]; then
	digest=(sha256sum --)
	# openssl starts more slowly, and reads large files five times as fast
	if [ -n "$(find "${regular[@]}" -size +10M -print -quit)" ] && command -v openssl >/dev/null; then
		digest=(openssl dgst -sha256 -r)
	fi
	"${digest[@]}" "${regular[@]}" | sed 's/^\([0-9a-f]*\) [ *]/file \1 /'
fi
