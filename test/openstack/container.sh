#!/usr/bin/env bash
# Makes a disk for servers that are containers of libvirt from the node image: a file system without partitions, as Nova wants it for them.
# What it has beside the node image is the way to user data of a machine without a config drive, which libvirt cannot give containers, and
# a first process.
#   IMAGE  the node image, a tar
#   OUT    the file to write; what was made from the same image is kept
set -euo pipefail
: "${IMAGE:?the node image}" "${OUT:?the file to write}"
here=$(cd "$(dirname "$0")" && pwd)
machine=$here/../../images/machine/70-machine/files

made=$(cat "$IMAGE" "$here/container.sh" "$here/container-init" "$machine"/usr/local/sbin/metadata | sha256sum)
[[ ! -s $OUT || $(cat "$OUT.of" 2>/dev/null) != "$made" ]] || exit 0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root" "$(dirname "$OUT")"
chmod 755 "$work" "$root"
tar --numeric-owner --xattrs -xpf "$IMAGE" -C "$root"
install "$here/container-init" "$root/usr/local/sbin/container-init"
ln -sfn /usr/local/sbin/container-init "$root/usr/sbin/init"
install "$machine/usr/local/sbin/metadata" "$root/usr/local/sbin/"
install -m 644 "$machine"/etc/systemd/system/{metadata,sshd-keygen}.service "$root/etc/systemd/system/"
install -m 644 "$machine/etc/systemd/network/90-dhcp.network" "$root/etc/systemd/network/"
# These are veths here.
sed -i '/^Kind=/d' "$root/etc/systemd/network/90-dhcp.network"
printf 'Name=eth*\n' | sed -i '/^Type=ether/r /dev/stdin' "$root/etc/systemd/network/90-dhcp.network"
chroot "$root" systemctl --quiet enable metadata.service sshd-keygen.service

used=$(du --summarize --block-size=1M --apparent-size "$root" | cut -f 1)
rm -f "$OUT"
mkfs.ext4 -q -F -L root -m 1 -E root_owner=0:0 -d "$root" "$OUT" $((used * 110 / 100 + 200))M
echo "$made" >"$OUT.of"
