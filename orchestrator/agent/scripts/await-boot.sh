#!/bin/bash
# Waits, at most LIMIT seconds, until a server has booted, and with that has applied its user data. Says what is not as it should be, and
# ends well all the same.
set -euo pipefail
: "${LIMIT:?seconds}"

ended=0
timeout "$LIMIT" systemctl is-system-running --wait >/dev/null 2>&1 || ended=$? # also 1, for a unit that failed
if ((ended == 124)); then
	echo "the server still boots after $LIMIT seconds; the work on it begins nevertheless"
	systemctl list-jobs --no-legend --no-pager 2>/dev/null | head -n 10 || true
	exit 0
fi
[[ -e /run/cloud-init/result.json ]] || exit 0
failed=0
said=$(timeout 30 cloud-init status --long 2>&1) || failed=$?
if ((failed == 1)); then # 2 is a recoverable one
	echo "cloud-init did not do all that the user data asks for: what needs it may fail"
	echo "$said"
fi
