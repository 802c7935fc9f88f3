#!/usr/bin/env bash
# build.sh FOLDER: builds into FOLDER what the conformance tests of Kubernetes need: their program and its runner, the programs of the container
# images that they run, and the roots of these, from Debian's packages. What is there already is built again only if its source has changed.
set -euo pipefail
mkdir -p "${1:?where it is built}"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
modules=$PWD/images/modules

# As for the node image, whose compiled packages are used.
export GOFLAGS='' GOWORK=off
version=$(cd test/conformance/kubernetes && go list -m -f '{{.Version}}' k8s.io/kubernetes)
IFS=. read -r major minor _ <<<"${version#v}"
stamps=""
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  stamps+=" -X $package.gitVersion=$version -X $package.gitMajor=$major -X $package.gitMinor=$minor -X $package.gitTreeState=clean"
done

# compile MODULE NAME PACKAGE [test]
compile() {
  local how=build
  [[ ${4:-} == test ]] && how="test -c"
  echo "compiling $2"
  # shellcheck disable=SC2086 # two words
  (cd "$1" && go $how -mod=readonly -buildvcs=false -trimpath -ldflags "-s -w$stamps" -o "$out/$2" "$3")
}
tests=$PWD/test/conformance/kubernetes
compile "$modules/programs" pause ./pause
compile "$modules/etcd" etcd go.etcd.io/etcd/server/v3
compile "$tests" nnp k8s.io/kubernetes/test/images/nonewprivs
compile "$tests" agnhost k8s.io/kubernetes/test/images/agnhost
compile "$tests" sample-apiserver k8s.io/sample-apiserver
compile "$tests" ginkgo github.com/onsi/ginkgo/v2/ginkgo
compile "$tests" e2e.test k8s.io/kubernetes/test/e2e test
compile "$PWD" shell ./test/conformance/shell

# Files that upstream's images have besides.
rm -rf "$out/files"
source=$(cd "$tests" && go list -m -f '{{.Dir}}' k8s.io/kubernetes)/test/images
install -D -m 644 -t "$out/files/agnhost" "$source"/agnhost/porter/localhost.{crt,key}
for pet in kitten nautilus; do
  install -D -m 644 -t "$out/files/$pet" "$source/$pet"/html/*
done

# One root for all images with a shell but busybox. Its shell is bash: Debian's dash drops variables with a "-" in their names, which Alpine's does not.
# Tools that are Alpine's and not Debian's are busybox's.
packages=(bash bash-static bind9-dnsutils busybox-static curl hostname iperf iproute2 netcat-openbsd nginx-light procps util-linux)
# shellcheck disable=SC2016 # they run when the root is made
hooks=(
  'ln -sf bash "$1/usr/bin/sh"'
  'chroot "$1" bash -c '\''for name in $(busybox --list); do type -t "$name" >/dev/null || ln -s /usr/bin/busybox "/usr/local/bin/$name"; done'\'
  'chroot "$1" useradd --uid 1000 --user-group --shell /bin/sh user-defined-in-image'
  'chroot "$1" groupadd --gid 50000 group-defined-in-image && chroot "$1" usermod --append --groups group-defined-in-image user-defined-in-image'
  'rm -rf "$1"/etc/apt/sources.list* "$1"/var/lib/apt/lists/* "$1"/var/cache/* "$1"/usr/share/{doc,locale,man,info}'
)
made="${packages[*]} ${hooks[*]}"
if [[ $(cat "$out/debian.made" 2>/dev/null) != "$made" ]]; then
  echo "installing Debian with ${packages[*]}"
  # shellcheck disable=SC2016 # the words are apt-get's
  mirror=$(apt-get indextargets --format '$(REPO_URI) $(LABEL)' 'Created-By: Packages' | awk '$2 == "Debian" { print $1; exit }')
  [[ -n $mirror ]] || { echo "apt of this machine has no repository of Debian" >&2; exit 1; }
  options=()
  for hook in "${hooks[@]}"; do options+=(--customize-hook="$hook"); done
  SOURCE_DATE_EPOCH=0 TMPDIR=$out mmdebstrap --quiet --mode=root --variant=minbase --format=tar --skip=output/dev --dpkgopt=force-unsafe-io \
    --aptopt='APT::Install-Recommends "false"' --include="$(IFS=, && echo "${packages[*]}")" "${options[@]}" bookworm "$out/debian.tar" "$mirror"
  echo "$made" >"$out/debian.made"
fi

root=$(mktemp --directory --tmpdir="$out")
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
mkdir -p "$root"/{bin,etc,home,root,usr/local/bin,var}
mkdir -m 1777 "$root"/{tmp,var/tmp}
tar --extract --file "$out/debian.tar" --directory "$root/bin" --strip-components 3 ./usr/bin/busybox ./usr/bin/bash-static
for name in $("$root/bin/busybox" --list); do
  [[ $name == busybox ]] || ln -s busybox "$root/bin/$name"
done
ln -f "$out/shell" "$root/bin/sh"
printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/false\n' >"$root/etc/passwd"
printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
tar --create --file "$out/busybox.tar" --directory "$root" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 .
