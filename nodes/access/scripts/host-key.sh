#!/bin/bash
# The server's own host key, in two actions, so that its public half can be stored in between:
# ACTION=make     makes a key beside the present one (once) and prints its public half
# ACTION=present  has sshd present it from the next connection on
set -euo pipefail
current=${KEY_FILE:-/etc/ssh/ssh_host_ed25519_key}
next=$current.burano
case ${ACTION:?make or present} in
make)
	# the public half is written last: a private one alone is an interrupted attempt
	if [ ! -e "$next.pub" ]; then
		rm -f "$next"
		ssh-keygen -q -t ed25519 -N '' -C "$(hostname)" -f "$next"
	fi
	cat "$next.pub"
	;;
present)
	cp -p "$next" "$current.new"
	cp -p "$next.pub" "$current.pub"
	mv -f "$current.new" "$current"
	sync "$current"
	systemctl reload --no-block ssh 2>/dev/null || systemctl reload --no-block sshd
	rm -f "$next" "$next.pub"
	;;
esac
