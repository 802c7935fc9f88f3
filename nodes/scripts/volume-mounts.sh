#!/bin/bash
# Prints "mounted" where something on the node uses the disk of VOLUME (its id in Cinder), as a file system or as a device that a pod has, and else "free".
set -euo pipefail
volume=${VOLUME:?}
for name in "virtio-${volume:0:20}" "scsi-0QEMU_QEMU_HARDDISK_${volume:0:20}" "scsi-0QEMU_QEMU_HARDDISK_$volume"; do
	link=/dev/disk/by-id/$name
	[ -e "$link" ] || continue
	device=$(readlink -f "$link")
	number=$((16#$(stat -c %t "$device"))):$((16#$(stat -c %T "$device")))
	# proc_pid_mountinfo(5): the third field is the device of the file system; a device that is mounted as a file has its name below /dev as the fourth.
	if awk -v number="$number" -v root="/${device##*/}" '$3 == number || ($4 == root && $5 ~ "^/var/lib/kubelet/") { found = 1 } END { exit !found }' /proc/self/mountinfo; then
		echo mounted
		exit 0
	fi
done
echo free
