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
for program in lease greet metadata; do install "$here/guest-$program" "$root/bin/$program"; done

# The drivers, each behind those that it needs. What the kernel has built in is no file.
modules=$work/kernel/lib/modules/${kernel#linux-image-}
"$root/bin/busybox" depmod -b "$work/kernel" "${kernel#linux-image-}"
declare -A packed=()
pack() { # FILE of the module, below the folder of modules
  local needs needed
  if [[ -n ${packed[$1]:-} ]]; then return; fi
  packed[$1]=yes
  read -ra needs < <(sed -n "s|^$1:||p" "$modules/modules.dep")
  for needed in "${needs[@]}"; do pack "$needed"; done
  install --mode=644 "$modules/$1" "$root/lib/modules/"
  basename "$1" >>"$root/lib/modules/order"
}
for module in virtio_pci virtio_rng virtio_net virtio_blk sr_mod isofs ata_piix ahci; do
  file=$(cd "$modules" && find . -name "$module.ko" -printf '%P\n' -quit)
  if [[ -n $file ]]; then pack "$file"; fi
done

(cd "$root" && find . | ./bin/busybox cpio -o -H newc | gzip) >"$OUT/initrd"
install --mode=644 "$work"/kernel/boot/vmlinuz-* "$OUT/vmlinuz"
truncate --size=16M "$OUT/disk"
