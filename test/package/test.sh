#!/usr/bin/env bash
# Packs build/burano twice and compares, then installs, upgrades, removes and purges the package in a Debian that has nothing else, and runs the program there as the
# unit's user. No systemd runs in there: the unit is checked by systemd-analyze. What the container image has is run as its user, from its layers. Needs root and mmdebstrap; a
# minute or two.
set -euo pipefail
shopt -s extglob
cd "$(dirname "$0")/../.."
# What is mounted goes with this process.
[[ -n ${BURANO_TEST_UNSHARED:-} ]] || BURANO_TEST_UNSHARED=1 exec unshare --mount --propagation private "$0" "$@"

program=build/burano port=$((18082 + ${BURANO_SLOT:-0}))
work=$(mktemp -d)
server=
cleanup() {
  [[ -z $server ]] || kill "$server" 2>/dev/null || true
  umount "$work/root/proc" "$work/container/proc" 2>/dev/null || true
  rm -rf --one-file-system "$work"
}
trap cleanup EXIT
fail() {
  echo "test-package: $*" >&2
  exit 1
}
step() { echo "== $*"; }

step "two builds are equal"
test/setup/compile.sh "$work/again" >/dev/null
cmp "$program" "$work/again/burano" || fail "the program differs when it is compiled again"
images/package/build.sh "$program" "$work/one" >/dev/null
images/package/build.sh "$work/again/burano" "$work/two" >/dev/null
diff -r "$work/one" "$work/two" || fail "the package differs when it is built again"
(cd "$work/one" && sha256sum --quiet --check SHA256SUMS)
package=$(echo "$work"/one/*.deb)
jq -e '.spdxVersion == "SPDX-2.3" and any(.packages[]; .name == "github.com/gophercloud/gophercloud/v2")' "${package%.deb}.spdx.json" >/dev/null || fail "the bill of materials lacks what the program is linked from"
BURANO_PACKAGE_VERSION=99.0 images/package/build.sh "$program" "$work/newer" >/dev/null

step "a clean Debian"
root=$work/root
test/package/debian.sh "$root"
mount -t proc proc "$root/proc"
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"; }
# as runs something as the unit's user, with an address of Keystone at which nobody answers.
as() {
  chroot --userspec=burano:burano "$root" env -i PATH=/usr/bin:/bin HOME=/var/lib/burano OS_CLIENT_CONFIG_FILE=/etc/burano/clouds.yaml "$@"
}
# serve runs a server until it has answered, and ends it.
serve() {
  "$@" 2>"$work/log" &
  server=$!
  for ((i = 0; i < 600; i++)); do
    if curl --silent --fail --output /dev/null "http://127.0.0.1:$port/healthz"; then break; fi
    kill -0 "$server" 2>/dev/null || fail "the server has ended: $(cat "$work/log")"
    sleep 0.1
  done
  curl --silent --fail --output /dev/null "http://127.0.0.1:$port/healthz" || fail "the server does not answer: $(cat "$work/log")"
  kill -TERM "$server"
  wait "$server" || fail "the server does not end cleanly: $(cat "$work/log")"
  server=
}
put() { cp "$1" "$root/tmp/burano.deb"; }

step "install"
put "$package"
inside dpkg --install /tmp/burano.deb | tee "$work/said"
grep -q 'burano setup --url' "$work/said" || fail "the installation does not say what comes next"
[[ $(inside stat -c '%U %G %a' /var/lib/burano) == "burano burano 700" ]] || fail "the state folder is not the server's alone"
[[ $(inside stat -c '%U %G %a' /etc/burano/burano.yaml) == "root burano 640" ]] || fail "the settings can be read by everybody"
inside dpkg --verify burano
inside systemd-analyze verify --man=no burano.service || fail "systemd complains of the unit"
exposure=$(inside systemd-analyze security --offline=true --no-pager burano.service | awk '/Overall exposure/ { print $(NF-2) }')
echo "exposure by systemd-analyze security: $exposure"
awk -v e="$exposure" 'BEGIN { exit !(e != "" && e < 2.5) }' || fail "the unit is less confined than it was"
for page in burano burano-serve burano-doctor burano-setup; do
  zcat "$root/usr/share/man/man1/$page.1.gz" | man --warnings --local-file --encoding=UTF-8 - 2>"$work/complaints" | grep -q "burano" || fail "the page $page shows nothing"
done
inside bash -n /usr/share/bash-completion/completions/burano
[[ -s $root/usr/share/burano/alerts.yaml && -s $root/usr/share/burano/grafana-dashboard.json ]]

for chapter in docs/*.md; do
  cmp -s "$chapter" "$root/usr/share/doc/burano/book/${chapter##*/}" || fail "the package has not the chapter $chapter"
done

step "the program as the unit's user"
as burano version
as burano serve --config /etc/burano/burano.yaml --print-config | grep -q '^state: /var/lib/burano' || fail "the settings of the package are not in force"
cat >"$work/clouds.yaml" <<'END'
clouds:
  burano-service:
    auth: {auth_url: "http://127.0.0.1:1/v3", username: burano, password: none, project_name: service, user_domain_name: Default, project_domain_name: Default}
END
cp "$work/clouds.yaml" "$root/etc/burano/clouds.yaml"
inside chown burano: /etc/burano/clouds.yaml
inside chmod 600 /etc/burano/clouds.yaml
if as burano doctor --config /etc/burano/burano.yaml >"$work/doctor" 2>&1; then fail "burano doctor finds nothing wrong with a Keystone that is not there"; fi
cat "$work/doctor"
grep -q '^failed *Keystone' "$work/doctor" || fail "burano doctor does not name Keystone"
serve chroot --userspec=burano:burano "$root" env -i PATH=/usr/bin OS_CLIENT_CONFIG_FILE=/etc/burano/clouds.yaml \
  burano serve --config /etc/burano/burano.yaml --listen "127.0.0.1:$port"
[[ $(inside stat -c '%U %a' /var/lib/burano/secret.key) == "burano 600" ]] || fail "the key of the secrets is not the server's alone"
key=$(sha256sum <"$root/var/lib/burano/secret.key")

step "upgrade"
echo 'log-format: json' >>"$root/etc/burano/burano.yaml"
put "$(echo "$work"/newer/*.deb)"
inside dpkg --install /tmp/burano.deb >"$work/said"
if grep -q 'burano setup' "$work/said"; then fail "an upgrade says what to do after an installation"; fi
# shellcheck disable=SC2016 # the words are dpkg's
[[ $(inside dpkg-query --show --showformat '${Version} ${db:Status-Status}' burano) == "99.0 installed" ]]
grep -q '^log-format: json' "$root/etc/burano/burano.yaml" || fail "the upgrade has lost a setting"
[[ $(sha256sum <"$root/var/lib/burano/secret.key") == "$key" ]] || fail "the upgrade has changed the keys"

step "remove and purge"
inside dpkg --remove burano
[[ ! -e $root/usr/bin/burano && -e $root/etc/burano/burano.yaml && -e $root/var/lib/burano/secret.key ]] || fail "removing has taken settings or state away"
inside dpkg --purge burano | tee "$work/said"
grep -q 'stays, with the database and the keys' "$work/said" || fail "purging does not say what stays"
[[ ! -e $root/etc/burano && $(sha256sum <"$root/var/lib/burano/secret.key") == "$key" ]] || fail "purging has left settings, or taken the keys"
rm -r "$root/var/lib/burano"
put "$package"
inside dpkg --install /tmp/burano.deb >/dev/null
inside dpkg --purge burano
left=$(find "$root/etc" "$root/usr" "$root/var/lib" "$root/lib/systemd" -iname '*burano*' 2>/dev/null)
[[ -z $left ]] || fail "something is left: $left"
if inside getent passwd burano; then fail "the user is left"; fi

step "the container image"
mkdir "$work/image" "$work/container"
tar --extract --file="${package%.deb}.oci.tar" --directory="$work/image"
# blob is the file that a digest of a document names, whose content has to be that of the digest.
blob() {
  local digest
  digest=$(jq -er "$2" "$1")
  echo "${digest#sha256:} $work/image/blobs/sha256/${digest#sha256:}" | sha256sum --quiet --check >&2
  echo "$work/image/blobs/sha256/${digest#sha256:}"
}
jq -e '.imageLayoutVersion == "1.0.0"' "$work/image/oci-layout" >/dev/null
jq -e '.manifests[0].annotations["org.opencontainers.image.ref.name"] | test("^localhost/burano:[0-9]")' "$work/image/index.json" >/dev/null || fail "the image has no name"
manifest=$(blob "$work/image/index.json" '.manifests[0].digest')
settings=$(blob "$manifest" .config.digest)
for ((i = 0; i < $(jq '.layers | length' "$manifest"); i++)); do
  tar --extract --gzip --same-owner --same-permissions --file="$(blob "$manifest" ".layers[$i].digest")" --directory="$work/container"
done
cmp "$program" "$work/container/usr/bin/burano" || fail "the image has another program"
user=$(jq -er .config.User "$settings")
[[ $user == +([1-9])*([0-9]):* ]] || fail "the image's user is $user"
install -m 644 "$work/clouds.yaml" "$work/container/etc/burano/clouds.yaml"
# As each runtime does.
mkdir "$work/container/proc"
mount -t proc proc "$work/container/proc"
readarray -t variables < <(jq -er '.config.Env[]' "$settings")
readarray -t words < <(jq -er '(.config.Entrypoint + .config.Cmd)[]' "$settings")
serve env -i "${variables[@]}" "$(command -v chroot)" --userspec="$user" "$work/container" "${words[@]}" --os-cloud burano-service --listen "127.0.0.1:$port"
[[ $(stat -c '%u:%g %a' "$work/container/var/lib/burano/secret.key") == "$user 600" ]] || fail "the image's state folder is not its user's"
echo "ok"
