#!/bin/bash
# After a step failed: prints what may be behind it, one thing a line: "state STATE" (systemd's, "stopping" when the server
# is going down, at the end of which systemd does not answer any more) and "full MOUNT FREE" for each file system that has nearly nothing left (FREE in human-readable form) and can be
# written to.
set -euo pipefail
state=$(systemctl is-system-running 2>/dev/null || true)
echo "state ${state:-stopping}"
{
	df -P -k -x squashfs -x devtmpfs 2>/dev/null | awk 'NR > 1 && $2 > 0 && ($4 < $2 / 200 || $4 < 1024 && $4 < $2 / 20) {print $6, $4 "K"}'
	df -P -i -x squashfs -x devtmpfs 2>/dev/null | awk 'NR > 1 && $2 > 0 && $4 < 16 {print $6, "0 inodes"}'
} | sort -u | while read -r mount free; do
	if [ -w "$mount" ]; then
		echo "full $mount $free"
	fi
done
