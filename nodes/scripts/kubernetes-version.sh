#!/bin/bash
# Prints the version of the Kubernetes programs that are on the node, such as v1.36.3.
set -euo pipefail
read -r _ version < <(/opt/burano/bin/kubelet --version)
echo "$version"
