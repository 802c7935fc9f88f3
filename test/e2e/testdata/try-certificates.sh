#!/bin/bash
# Tries each certificate that a node has, or has below the folder FROM, on the ports of the nodes at ADDRESSES. Prints "CERTIFICATE ADDRESS PORT CODE"; 000 is no answer.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
from=${FROM:-}
for certificate in "$from"/etc/burano/pki/*.crt; do
	if [ -f "${certificate%.crt}.key" ]; then
		cp "$certificate" "${certificate%.crt}.key" "$folder/"
	fi
done
{ grep -rl client-certificate-data "$from/etc/kubernetes" "$from/etc/burano" 2>/dev/null || true; } | while read -r file; do
	name=$(basename "$file" | sed 's/\.kubeconfig$//').kubeconfig
	sed -n 's/.*"client-certificate-data": *"\([^"]*\)".*/\1/p' "$file" | base64 -d >"$folder/$name.crt"
	sed -n 's/.*"client-key-data": *"\([^"]*\)".*/\1/p' "$file" | base64 -d >"$folder/$name.key"
done
for certificate in "$folder"/*.crt; do
	for address in ${ADDRESSES:?}; do
		for port in 2379/health 2380/members 6443/apis 10250/pods; do
			code=$(curl --silent --insecure --http1.1 --connect-timeout 2 --max-time 10 --output /dev/null --write-out '%{http_code}' \
				--cert "$certificate" --key "${certificate%.crt}.key" "https://$address:$port" || true)
			echo "$(basename "$certificate" .crt) $address ${port%%/*} $code"
		done
	done
done
