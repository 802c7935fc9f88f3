#!/bin/bash
# How the script that follows speaks with what runs containers on a node: Docker's engine where the kubelet asks that, else containerd. An image that is
# pinned is collected by nobody: no registry has it.
if [ -e "${DOCKER:-/var/lib/burano/started/cri-dockerd}" ]; then
	image_names() { docker image ls --format '{{.Repository}}:{{.Tag}}'; }
	image_import() { docker load --quiet --input "$1" >/dev/null; }
	# Docker deletes no image of which there is a container, though it never runs.
	pin_of() { echo "pin-$(sha256sum <<<"$1" | cut -c 1-16)"; }
	image_pin() {
		docker rm "$(pin_of "$1")" >/dev/null 2>&1 || true
		docker create --network none --name "$(pin_of "$1")" "$1" pin >/dev/null
	}
	image_unpin() { docker rm "$(pin_of "$1")" >/dev/null 2>&1 || true; }
	container_runs() { [ "$(docker inspect --format '{{.State.Running}}' "$1" 2>/dev/null)" = true ]; }
	container_run() { docker exec "$@"; }
	container_signal() { docker kill --signal "$1" "$2" >/dev/null 2>&1; }
else
	image_names() { ctr -n k8s.io images ls -q; }
	image_import() { ctr -n k8s.io images import "$1" >/dev/null; }
	image_pin() { ctr -n k8s.io images label "$1" io.cri-containerd.pinned=pinned >/dev/null; }
	image_unpin() { ctr -n k8s.io images label "$1" io.cri-containerd.pinned= >/dev/null; }
	container_runs() { ctr -n k8s.io tasks ls | awk -v id="$1" '$1 == id && $3 == "RUNNING" {found = 1} END {exit !found}'; }
	container_run() { ctr -n k8s.io tasks exec --exec-id "burano-$$" "$@"; }
	container_signal() { ctr -n k8s.io tasks kill -s "$1" "$2" 2>/dev/null; }
fi
