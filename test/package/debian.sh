#!/usr/bin/env bash
# Makes a Debian 12 that has nothing but itself, systemd and authorities of certificates in the new folder $1, with the packages that are named after it.
set -euo pipefail
root=$1
shift
# shellcheck disable=SC2016 # the words are apt-get's
mirror=$(apt-get indextargets --format '$(REPO_URI) $(LABEL)' 'Created-By: Packages' | awk '$2 == "Debian" { print $1; exit }')
included=(ca-certificates systemd "$@")
mmdebstrap --quiet --mode=root --variant=minbase --aptopt='APT::Install-Recommends "false"' --dpkgopt=force-unsafe-io --include="$(IFS=, && echo "${included[*]}")" bookworm "$root" "$mirror"
