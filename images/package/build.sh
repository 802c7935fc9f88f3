#!/usr/bin/env bash
# Packs the program for Debian and as a container image: build.sh PROGRAM FOLDER writes FOLDER/burano_VERSION_ARCHITECTURE.deb, .oci.tar (an OCI archive), the bill of materials
# and SHA256SUMS. The same program, sources and authorities of certificates give the same bytes. BURANO_PACKAGE_VERSION names another version than the program's.
set -euo pipefail
program=$(realpath "$1") out=$2
cd "$(dirname "$0")/../.."
mkdir -p "$out"
out=$(realpath "$out")

# Debian sorts 0.2.0~dev before 0.2.0.
version=${BURANO_PACKAGE_VERSION:-$("$program" version --output json | jq -r .version | sed 's/-/~/')}
architecture=$(dpkg --print-architecture)
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
umask 022

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root from=images/package/files
# Defaults of flags are of variables: those of who packs the program are nobody else's.
env -i "$program" release-files "$work/of-program"

install -D -m 755 "$program" "$root/usr/bin/burano"
install -D -m 644 "$from/burano.service" "$root/lib/systemd/system/burano.service"
install -D -m 644 "$work/of-program/burano.yaml" "$root/etc/burano/burano.yaml"
install -D -m 644 "$from/default" "$root/etc/default/burano"
install -D -m 644 "$work/of-program/completion/burano" "$root/usr/share/bash-completion/completions/burano"
install -D -m 644 "$work/of-program/completion/_burano" "$root/usr/share/zsh/vendor-completions/_burano"
install -D -m 644 "$work/of-program/completion/burano.fish" "$root/usr/share/fish/vendor_completions.d/burano.fish"
install -D -m 644 docs/alerts.yaml "$root/usr/share/burano/alerts.yaml"
install -D -m 644 docs/grafana-dashboard.json "$root/usr/share/burano/grafana-dashboard.json"
install -D -m 644 --target-directory="$root/usr/share/doc/burano/book" docs/*.md docs/alerts.yaml docs/grafana-dashboard.json
install -D -m 644 "$from/copyright" "$root/usr/share/doc/burano/copyright"
install -D -m 644 "$work/of-program/burano.spdx.json" "$root/usr/share/doc/burano/burano.spdx.json"
gzip -9n <CHANGELOG.md >"$root/usr/share/doc/burano/changelog.gz"
install -d "$root/usr/share/man/man1"
for page in "$work"/of-program/man/*.1; do
  gzip -9n <"$page" >"$root/usr/share/man/man1/${page##*/}.gz"
done

install -d "$root/DEBIAN"
for script in postinst prerm postrm; do
  install -m 755 "$from/$script" "$root/DEBIAN/$script"
done
printf '/etc/burano/burano.yaml\n/etc/default/burano\n' >"$root/DEBIAN/conffiles"
cat >"$root/DEBIAN/control" <<END
Package: burano
Version: $version
Architecture: $architecture
Maintainer: the authors of Burano <burano@localhost>
Installed-Size: $(du -sk --apparent-size --exclude=DEBIAN "$root" | cut -f1)
Depends: ca-certificates, passwd
Recommends: systemd
Suggests: postgresql
Section: admin
Priority: optional
Description: application catalog and VM orchestrator for OpenStack
 Burano deploys applications from a catalog on an OpenStack cloud: it makes servers, turns them into what the application needs, a Kubernetes
 cluster first of all, and looks after what runs. It answers the API of OpenStack Murano unchanged. The package has the server, the web dashboard
 and the command line.
END
(cd "$root" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +

name=burano_${version}_$architecture
dpkg-deb --root-owner-group --threads-max=1 -Zxz -z2 --build "$root" "$out/$name.deb" >/dev/null
cp "$work/of-program/burano.spdx.json" "$out/$name.spdx.json"
tar --create --format=ustar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw,a-s \
  --file="$out/$name.oci.tar" --directory="$work/of-program/image" .
(cd "$out" && sha256sum "$name.deb" "$name.oci.tar" "$name.spdx.json" >SHA256SUMS)
echo "$out/$name.deb"
echo "$out/$name.oci.tar"
