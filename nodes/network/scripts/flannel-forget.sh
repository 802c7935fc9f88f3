#!/bin/bash
# Deletes the leases of the node at ADDRESS from Flannel, so that the others drop their routes to it. Runs on a master, with the
# access of its own flanneld: CA, CERTIFICATE, KEY and ENDPOINT of etcd. PREFIX is that of all leases.
set -euo pipefail
etcd() {
	/opt/burano/bin/etcdctl --command-timeout=10s --endpoints="${ENDPOINT:?}" --cacert="${CA:?}" --cert="${CERTIFICATE:?}" --key="${KEY:?}" "$@"
}
leases=$(etcd get --prefix "${PREFIX:?}" --write-out=json)
jq --raw-output --arg address "${ADDRESS:?}" \
	'.kvs[]? | select((.value | @base64d | fromjson).PublicIP == $address) | .key | @base64d' <<<"$leases" |
	while read -r key; do
		etcd del "$key" >/dev/null
	done
