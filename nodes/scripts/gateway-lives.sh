#!/bin/bash
# Tells whether a gateway can serve: haproxy SOCKET, whether HAProxy answers at its admin socket; daemon ADDRESS PORT, whether the daemon that has it
# follow the routes takes connections. Asked each second, and so it starts as little as it can.
set -euo pipefail
case ${1:?} in
haproxy)
	for _ in 1 2; do # one answer that is late is no death
		if [ -n "$(echo 'show version' | socat -t 0.3 -T 0.3 - "UNIX-CONNECT:${2:?}" 2>/dev/null)" ]; then
			exit 0
		fi
	done
	exit 1
	;;
daemon)
	exec 3<>"/dev/tcp/${2:?}/${3:?}"
	;;
esac
