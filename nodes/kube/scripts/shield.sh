#!/bin/bash
# Runs before the kubelet. The kubelet insists on some settings of the whole kernel. On a server that is a container these
# are its host's: give the kubelet private files in their place, so that the host keeps its own. On a machine with a
# kernel of its own nothing is done.
set -euo pipefail
[ -e /run/systemd/container ] || exit 0
folder=/run/burano-shield
mkdir -p "$folder"
shield() {
	local setting=/proc/sys/$1 file
	file=$folder/$(echo "$1" | tr / _)
	if ! grep -q " $setting " /proc/mounts; then
		echo "$2" >"$file"
		mount --bind "$file" "$setting"
	fi
}
shield vm/overcommit_memory 1
shield kernel/panic 10
shield kernel/panic_on_oops 1
shield kernel/keys/root_maxkeys 1000000
shield kernel/keys/root_maxbytes 25000000
# systemd does not do it inside a container; volumes of pods need it
mount --make-rshared /
