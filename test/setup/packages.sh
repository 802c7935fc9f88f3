#!/usr/bin/env bash
# Installs the Debian packages that building, testing and the demonstration need, and those that are named as arguments. Starts no service, removes nothing, and does
# nothing when all of them are there.
set -euo pipefail

packages=(
  ca-certificates curl e2fsprogs haproxy iproute2 iptables jq mariadb-server mmdebstrap nftables openssh-client openssh-server postgresql
  procps runc shellcheck xfsprogs zopfli "$@"
)

missing=()
for package in "${packages[@]}"; do
  [[ $(dpkg-query --show --showformat '${db:Status-Status}' "$package" 2>/dev/null || true) == installed ]] || missing+=("$package")
done
((${#missing[@]})) || exit 0

if ((EUID)); then
  echo "these Debian packages are missing, and only root can install them: ${missing[*]}" >&2
  exit 1
fi
echo "installing Debian packages: ${missing[*]}"

# Debian's packages start their services when they are installed, unless this file says no
# (https://people.debian.org/~hmh/invokerc.d-policyrc.d-specification.txt). A file that was there already is left alone.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
if ! { apt-get update && apt-get install --yes --no-remove --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  echo "could not install them; the end of what apt-get said:" >&2
  tail -n 20 "$log" >&2
  exit 1
fi
rm -f "$log"
