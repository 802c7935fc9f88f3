#!/usr/bin/env bash
# Has the nodes' driver of shares mount one over NFS: in a guest of QEMU with Debian's kernel and Debian's mount.nfs, from a server in user space (NFS-Ganesha, the Debian package)
# that exports a folder of this machine. It downloads packages and installs only QEMU.
#   DRIVER  the tests of images/modules/storage/storage-node, compiled
set -euo pipefail
: "${DRIVER:?the tests of storage-node, compiled}"
port=22049

work=$(mktemp -d)
server=
trap '[[ -z $server ]] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir -p "$work"/{packages,kernel,client,server,busybox,share,recovery}
chmod 755 "$work"

kernel=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image/ { print $2; exit }')
client=(nfs-common libnfsidmap1 keyutils libtirpc3)
ganesha=(nfs-ganesha nfs-ganesha-vfs libntirpc4.3 liburcu8 libwbclient0 libnfsidmap1)
(cd "$work/packages" && apt-get -qq -o APT::Sandbox::User=root download busybox-static "$kernel" "${client[@]}" "${ganesha[@]}")
unpack() { # FOLDER PACKAGE...
  local folder=$1 package
  for package in "${@:2}"; do dpkg-deb --extract "$work/packages/$package"_*.deb "$work/$folder"; done
}
unpack kernel "$kernel"
unpack busybox busybox-static
unpack client "${client[@]}"
unpack server "${ganesha[@]}"

# The guest: busybox, the machine's mount, mount.nfs and the drivers that it needs, in the order in which they are loaded.
root=$work/root
mkdir -p "$root"/{bin,sbin,dev,etc,lib,modules,proc,sys,tmp,run,usr,var/lib/nfs}
install "$work/busybox/bin/busybox" "$root/bin/busybox"
for program in sh cat echo insmod ip poweroff; do ln -s busybox "$root/bin/$program"; done
copy() { # FILE TARGET: a program with its libraries, those of the packages first
  local needed
  install -D "$1" "$root/$2"
  while read -r needed; do
    install -D "$needed" "$root/${needed#"$work/client"}"
  done < <(LD_LIBRARY_PATH=$work/client/lib/x86_64-linux-gnu:$work/client/usr/lib/x86_64-linux-gnu ldd "$1" | grep -o '/[^ ]*')
}
copy "$(command -v mount)" bin/mount
copy "$(command -v umount)" bin/umount
copy "$work/client/sbin/mount.nfs" sbin/mount.nfs
for name in mount.nfs4 umount.nfs umount.nfs4; do ln -s mount.nfs "$root/sbin/$name"; done
printf 'tcp 6 TCP\nudp 17 UDP\n' >"$root/etc/protocols"
printf 'udp tpi_clts v inet udp - -\ntcp tpi_cots_ord v inet tcp - -\n' >"$root/etc/netconfig"
printf 'root:x:0:0::/:/bin/sh\n' >"$root/etc/passwd"
: >"$root/etc/fstab"
ln -s /proc/mounts "$root/etc/mtab"
modules=$work/kernel/lib/modules/${kernel#linux-image-}
"$root/bin/busybox" depmod -b "$work/kernel" "${kernel#linux-image-}"
declare -A packed=()
pack() { # FILE of the module, below the folder of modules
  local needs needed
  if [[ -n ${packed[$1]:-} ]]; then return; fi
  packed[$1]=yes
  read -ra needs < <(sed -n "s|^$1:||p" "$modules/modules.dep") || true
  for needed in "${needs[@]}"; do pack "$needed"; done
  install --mode=644 "$modules/$1" "$root/modules/"
  basename "$1" >>"$root/modules/order"
}
for module in virtio_pci virtio_net nfs nfsv4; do
  file=$(cd "$modules" && find . -name "$module.ko" -printf '%P\n' -quit)
  if [[ -n $file ]]; then pack "$file"; fi
done
install "$DRIVER" "$root/driver"
cat >"$root/init" <<END
#!/bin/sh
export PATH=/bin:/sbin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in \$(cat /modules/order); do insmod "/modules/\$module"; done
ip link set lo up
ip link set eth0 up
ip addr add 10.0.2.15/24 dev eth0
BURANO_NFS_EXPORT=10.0.2.2:$work/share BURANO_NFS_OPTIONS=port=$port /driver -test.v -test.run '^TestAShareIsMountedFromAServer\$'
echo "the guest says: \$?"
poweroff -f
END
chmod 755 "$root/init"
(cd "$root" && find . | ./bin/busybox cpio -o -H newc 2>/dev/null | gzip -1) >"$work/initrd"

cat >"$work/ganesha.conf" <<END
NFS_CORE_PARAM { NFS_Port = $port; Bind_addr = 127.0.0.1; Protocols = 4; Enable_NLM = false; Enable_RQUOTA = false; Plugins_Dir = "$work/server/usr/lib/x86_64-linux-gnu/ganesha"; }
NFSV4 { Graceless = true; UseGetpwnam = true; Only_Numeric_Owners = true; RecoveryRoot = "$work/recovery"; }
EXPORT { Export_Id = 1; Path = "$work/share"; Pseudo = "$work/share"; Protocols = 4; Transports = TCP; Access_Type = RW; Squash = No_Root_Squash; SecType = sys; FSAL { Name = VFS; } }
END
LD_LIBRARY_PATH=$work/server/usr/lib/x86_64-linux-gnu:$work/server/usr/lib/ganesha "$work/server/usr/bin/ganesha.nfsd" -F -f "$work/ganesha.conf" -L "$work/ganesha.log" -p "$work/ganesha.pid" &
server=$!
for ((tries = 0; ; tries++)); do
  if : 2>/dev/null <>"/dev/tcp/127.0.0.1/$port"; then break; fi
  if ((tries == 300)) || ! kill -0 "$server"; then
    echo "the server of NFS does not answer:" >&2
    tail -n 20 "$work/ganesha.log" >&2
    exit 1
  fi
  sleep 0.1
done

# It is emulated on every machine, which takes 20 seconds.
timeout 300 qemu-system-x86_64 -accel tcg -m 512 -nographic -no-reboot -kernel "$work"/kernel/boot/vmlinuz-* -initrd "$work/initrd" \
  -append 'console=ttyS0 quiet panic=-1' -netdev user,id=net -device virtio-net-pci,netdev=net </dev/null | tee "$work/guest.log"
grep --quiet 'the guest says: 0' "$work/guest.log" || { echo "the share was not mounted as it should; the end of what the server says:" >&2; tail -n 20 "$work/ganesha.log" >&2; exit 1; }
grep --quiet -- '--- PASS: TestAShareIsMountedFromAServer' "$work/guest.log"
