#!/usr/bin/env bash
# Makes the tiny guest below the folder OUT from Debian packages: vmlinuz, initrd (busybox, a handful of drivers) and an empty disk.
# It downloads the packages, and installs nothing. What is there already is kept.
set -euo pipefail
: "${OUT:?folder of the guest}"
here=$(cd "$(dirname "$0")" && pwd)

if [[ -s $OUT/vmlinuz && -s $OUT/initrd && -s $OUT/disk ]]; then exit 0; fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$OUT" "$work"/{packages,kernel,busybox,root}
chmod 755 "$work"

kernel=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image/ { print $2; exit }')
(cd "$work/packages" && apt-get -qq -o APT::Sandbox::User=root download busybox-static "$kernel")
dpkg-deb --extract "$work"/packages/linux-image*.deb "$work/kernel"
dpkg-deb --extract "$work"/packages/busybox-static*.deb "$work/busybox"

root=$work/root
mkdir -p "$root"/{bin,dev,etc,lib/modules,proc,sys,tmp}
install "$work/busybox/bin/busybox" "$root/bin/busybox"
ln -s busybox "$root/bin/sh"
install "$here/guest-init" "$root/init"
install "$here/guest-lease" "$root/bin/lease"
printf '#!/bin/sh\ncat /greeting\n' >"$root/bin/greet"
chmod 755 "$root/bin/greet"

# The drivers, in the order in which they need each other. What the kernel has built in is no file.
for module in virtio virtio_ring virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_rng failover net_failover virtio_net \
  virtio_blk scsi_common scsi_mod cdrom sr_mod isofs libata ata_piix libahci ahci; do
  file=$(find "$work/kernel/lib/modules" -name "$module.ko" -print -quit)
  [[ -n $file ]] || continue
  install --mode=644 "$file" "$root/lib/modules/"
  echo "$module" >>"$root/lib/modules/order"
done

(cd "$root" && find . | ./bin/busybox cpio -o -H newc | gzip) >"$OUT/initrd"
install --mode=644 "$work"/kernel/boot/vmlinuz-* "$OUT/vmlinuz"
truncate --size=16M "$OUT/disk"
