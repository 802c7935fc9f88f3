#!/bin/bash
# Prints how much of the disk below FOLDER is free: "AVAILABLE ALL SIZE", in blocks of SIZE bytes; and "container" where the disk is that of
# the host, which others use, too.
set -euo pipefail
stat -f -c '%a %b %S' "${FOLDER:?}"
if [ -e /run/systemd/container ]; then
	echo container
fi
