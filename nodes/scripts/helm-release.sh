#!/bin/bash
# Works on a Helm release as standard input says (images/modules/helm), one at a time on this master.
#   $1  what the lock is called: the release's namespace and name; "" for what only looks
#   $2  how many seconds the lock may take
# The exit code is 86 where the image has no program for it.
set -euo pipefail
program=${HELM_RELEASE:-/opt/burano/bin/helm-release} locks=${HELM_LOCKS:-/run/burano/helm}
if [ ! -x "$program" ]; then
	exit 86
fi
umask 077
if [ -n "$1" ]; then
	mkdir -p "$locks"
	exec {lock}>"$locks/$1"
	if ! flock -w "$2" "$lock"; then
		echo "somebody else works on the release" >&2
		exit 1
	fi
fi
exec "$program"
