#!/bin/bash
# Succeeds if a master can serve the API: its API server, which listens at PORT, is ready. It runs each second.
set -euo pipefail
exec curl --silent --fail --insecure --noproxy '*' --max-time 0.9 --output /dev/null "https://127.0.0.1:${1:?}/readyz"
