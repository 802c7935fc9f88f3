#!/bin/bash
# Prepares a server that runs containers by itself. Ends with 3 where its image has not what that takes.
#   CLIENT  begins the paths of the certificate and the key with which the kubelet is asked
#   PODS    the folder with the descriptions of pods
set -euo pipefail
for program in /opt/burano/bin/kubelet containerd ctr curl openssl nft; do
	command -v "$program" >/dev/null || exit 3
done
mkdir -p "$PODS" "${CLIENT%/*}" /etc/cni/net.d
chmod 700 "$PODS"
if [ ! -e "$CLIENT.crt" ]; then
	umask 077
	# It is its own authority, and never leaves the server.
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 36500 -subj /CN=burano -keyout "$CLIENT.key" -out "$CLIENT.new" 2>/dev/null
	mv "$CLIENT.new" "$CLIENT.crt"
fi
