#!/bin/bash
# Gives a volume the files of an archive, in place of those that it has.
set -euo pipefail
mountpoint --quiet "$1" || {
	echo "there is no volume at $1" >&2
	exit 1
}
find "$1" -mindepth 1 -maxdepth 1 ! -name lost+found -exec rm -rf -- {} +
tar --extract --directory="$1" --preserve-permissions --same-owner --numeric-owner --xattrs '--xattrs-include=*' --acls --file=-
sync --file-system "$1"
