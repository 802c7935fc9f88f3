#!/bin/bash
# Asks the kubelet of a server that runs containers by itself.
#   CLIENT  begins the paths of the certificate and the key
#   URL     what is asked
set -euo pipefail
# It is on this server, and has made its own certificate.
exec curl --silent --show-error --fail-with-body --insecure --max-time 20 --retry 20 --retry-connrefused --retry-delay 1 --cert "$CLIENT.crt" --key "$CLIENT.key" "$URL"
