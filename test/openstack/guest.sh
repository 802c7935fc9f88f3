#!/usr/bin/env bash
# Makes the tiny guest below the folder OUT from Debian packages: vmlinuz, initrd (busybox, a handful of drivers, and the machine's own sshd and
# shell for who logs in) and an empty disk. It downloads the packages, and installs nothing. What is there already is kept.
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
for program in lease greet metadata access; do install "$here/guest-$program" "$root/bin/$program"; done

# What Burano wants of a server that it logs in to: sshd, bash, and GNU's tools before busybox's, with their libraries.
mkdir -p "$root"/usr/{bin,sbin} "$root"/etc/ssh "$root"/run/sshd "$root"/root "$root"/var/{lib,tmp}
chmod 700 "$root/root"
install "$here/guest-systemctl" "$root/usr/bin/systemctl"
install "$here/guest-sudo" "$root/usr/bin/sudo"
declare -A copied=()
copy() { # FILE of the machine, with the libraries that it needs
  local needed
  if [[ -n ${copied[$1]:-} ]]; then return; fi
  copied[$1]=yes
  install -D "$1" "$root/$1"
  while read -r needed; do copy "$needed"; done < <(ldd "$1" 2>/dev/null | grep -o '/[^ ]*')
}
for program in basename bash cat chmod cmp cp cut date dirname env find flock grep head hostname id ln ls mkdir mktemp mv readlink rm rmdir \
  sed setsid sha256sum sleep sort ssh-keygen stat sync tail tar tee timeout touch tr uname wc xargs; do
  copy "/usr/bin/$program"
done
copy /usr/sbin/sshd
ln -s /usr/bin/bash "$root/bin/bash"
# Whoever may become root is root already.
cat >"$root/etc/passwd" <<'END'
root:x:0:0:root:/root:/bin/bash
burano:x:0:0:Burano:/root:/bin/bash
sshd:x:100:65534::/run/sshd:/bin/false
END
printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
printf 'root:*:19000:0:99999:7:::\nburano:*:19000:0:99999:7:::\nsshd:*:19000:0:99999:7:::\n' >"$root/etc/shadow"
printf 'HostKey /etc/ssh/ssh_host_ed25519_key\nPermitRootLogin prohibit-password\nPasswordAuthentication no\nUseDNS no\nPidFile /run/sshd.pid\n' >"$root/etc/ssh/sshd_config"

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
