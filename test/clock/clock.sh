#!/usr/bin/env bash
# Has the clock jump under a gateway: in a guest of QEMU with Debian's kernel, which has a clock of its own. It downloads packages and installs only QEMU and HAProxy.
#   GATEWAY  the tests of gateway, compiled
set -euo pipefail
: "${GATEWAY:?the tests of gateway, compiled}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{packages,kernel,busybox}

kernel=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image/ { print $2; exit }')
(cd "$work/packages" && apt-get -qq -o APT::Sandbox::User=root download busybox-static "$kernel")
dpkg-deb --extract "$work/packages/$kernel"_*.deb "$work/kernel"
dpkg-deb --extract "$work/packages"/busybox-static_*.deb "$work/busybox"

# The guest: busybox, the machine's HAProxy with its libraries, and the tests.
root=$work/root
mkdir -p "$root"/{bin,dev,etc,proc,sys,tmp,run}
chmod 1777 "$root/tmp"
install "$work/busybox/bin/busybox" "$root/bin/busybox"
for program in sh mount ip poweroff; do ln -s busybox "$root/bin/$program"; done
install -D "$(command -v haproxy || echo /usr/sbin/haproxy)" "$root/usr/sbin/haproxy"
while read -r needed; do install -D "$needed" "$root/$needed"; done < <(ldd "$root/usr/sbin/haproxy" | grep -o '/[^ ]*')
printf 'root:x:0:0::/:/bin/sh\nhaproxy:x:99:99::/:/bin/sh\n' >"$root/etc/passwd"
printf 'root:x:0:\nhaproxy:x:99:\n' >"$root/etc/group"
install "$GATEWAY" "$root/gateway"
cat >"$root/init" <<'END'
#!/bin/sh
export PATH=/bin:/usr/sbin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
ip link set lo up
BURANO_CLOCK=yes /gateway -test.v -test.run '^TestAGatewayServesOnWhenTheClockJumps$'
echo "the guest says: $?"
poweroff -f
END
chmod 755 "$root/init"
(cd "$root" && find . | ./bin/busybox cpio -o -H newc 2>/dev/null | gzip -1) >"$work/initrd"

# It is emulated on every machine.
timeout 900 qemu-system-x86_64 -accel tcg -smp 2 -m 1024 -nographic -no-reboot -kernel "$work"/kernel/boot/vmlinuz-* -initrd "$work/initrd" \
  -append 'console=ttyS0 quiet panic=-1' -nic none </dev/null | tee "$work/guest.log"
grep --quiet 'the guest says: 0' "$work/guest.log"
grep --quiet -- '--- PASS: TestAGatewayServesOnWhenTheClockJumps' "$work/guest.log"
