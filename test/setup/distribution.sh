#!/usr/bin/env bash
# Makes an image of a plain Debian as its cloud images are, with cloud-init and sshd and nothing of ours, for servers of the local cloud.
#   distribution.sh SUITE OUTPUT [PACKAGE]...      for example: distribution.sh trixie build/trixie.tar puppet-agent
set -euo pipefail
suite=${1:?the Debian release} output=${2:?where the image is written to}
shift 2
cd "$(dirname "$0")/../.."

# shellcheck disable=SC2016 # the words are apt-get's
mirror=$(apt-get indextargets --format '$(REPO_URI) $(LABEL)' 'Created-By: Packages' | awk '$2 == "Debian" { print $1; exit }')
[[ -n $mirror ]] || { echo "apt of this machine has no repository of Debian" >&2; exit 1; }

# Servers of the local cloud have no kernel of their own (the element that makes a system quiet there is the node image's), and find their
# config drive as a folder.
customize="set -e
ROOT=\$1 images/elements/10-system/install
mkdir -p \$1/var/lib/cloud/seed \$1/etc/cloud/cloud.cfg.d
ln -s /run/config-drive \$1/var/lib/cloud/seed/config_drive
echo 'datasource_list: [ConfigDrive]' >\$1/etc/cloud/cloud.cfg.d/90_datasource.cfg
printf 'manage_etc_hosts: true\nsystem_info: {network: {renderers: [networkd]}}\n' >\$1/etc/cloud/cloud.cfg.d/91_debian.cfg
chroot \$1 systemctl --quiet enable ssh.service"
hook=$(mktemp)
trap 'rm -f "$hook"' EXIT
printf '#!/bin/bash\n%s\n' "$customize" >"$hook"
chmod +x "$hook"

packages=(ca-certificates cloud-init curl dbus iproute2 openssh-server procps socat sudo systemd systemd-sysv udev "$@")
mmdebstrap --quiet --mode=root --variant=minbase --format=tar --aptopt='APT::Install-Recommends "false"' --dpkgopt=force-unsafe-io \
  --include="$(IFS=, && echo "${packages[*]}")" --customize-hook="$hook" "$suite" "$output.part" "$mirror"
mv "$output.part" "$output"
