#!/bin/bash
# Starts units, and restarts those that run with other files than they should. UNITS: lines "NAME FINGERPRINT".
# The fingerprint of what a unit was last started with is noted below NOTES; a unit that is active with the right one is
# left alone. A unit whose fingerprint is FIRST-SECOND reloads where only SECOND is another. NO_BLOCK=yes: do not wait until they are up. Prints
# "started NAME", "reloaded NAME" or "kept NAME".
set -euo pipefail
notes=${NOTES:-/var/lib/burano/started}
patience=${PATIENCE:-60}
mkdir -p "$notes"
block=()
if [ "${NO_BLOCK-}" = yes ]; then
	block=(--no-block)
fi
up() { # a unit that failed is started again by systemd: give it time
	local deadline=$((SECONDS + patience))
	until systemctl -q is-active "$1"; do
		if [ "$SECONDS" -ge "$deadline" ]; then
			echo "$1 did not start within $patience s; the last lines of its journal:" >&2
			# without the stack traces of Go programs
			journalctl -u "$1" -n 300 --no-pager -o cat | grep -Ev '^([[:space:]]|goroutine |created by |[^ ]+\(.*\)$|$)' | sed 's/,"stacktrace":"[^"]*"//' | tail -n 15 >&2 || true
			return 1
		fi
		sleep 0.2
	done
}
while read -r unit fingerprint; do
	state=$(systemctl is-active "$unit" || true)
	noted=$(cat "$notes/$unit" 2>/dev/null || true)
	if [ "$noted" = "$fingerprint" ] && [ "$state" = active ]; then
		echo "kept $unit"
		continue
	fi
	said=started
	if [ "$noted" = "$fingerprint" ] && [ "$state" = activating ]; then
		verb=start
	elif [ "$state" = active ] && [[ $fingerprint = *-* ]] && [ "${noted%-*}" = "${fingerprint%-*}" ]; then
		verb=reload said=reloaded
	else
		verb=restart
	fi
	echo "$fingerprint" >"$notes/$unit.new"
	if [ "$verb" = reload ]; then
		systemctl reload "$unit"
	elif ! systemctl "$verb" "${block[@]}" "$unit" 2>/dev/null; then
		up "$unit"
	fi
	mv -f "$notes/$unit.new" "$notes/$unit"
	echo "$said $unit"
done <<<"${UNITS:?}"
