#!/bin/bash
# Ends UNIT where it runs, and says so; it does not start with the node any more.
set -euo pipefail
if systemctl -q is-active "${UNIT:?}"; then
	echo ended
fi
if systemctl cat "$UNIT" >/dev/null 2>&1; then
	systemctl -q disable --now "$UNIT"
fi
