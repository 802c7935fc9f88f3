#!/bin/bash
# Starts the kubelet anew: it remembers no more how long it wanted to wait. Containers run on.
set -euo pipefail
systemctl restart kubelet.service
