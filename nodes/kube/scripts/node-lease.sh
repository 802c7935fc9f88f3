#!/bin/bash
# Tells Kubernetes every 10 seconds that the node NODE lives, as a kubelet would, which this node has not. API is the URL of the API server and AUTHORITY the
# certificate that it is known by; CERTIFICATE and KEY are the node's. What goes wrong is said, and tried again.
set -euo pipefail

ask() {
	curl --silent --show-error --fail --max-time 8 --cacert "${AUTHORITY:?}" --cert "${CERTIFICATE:?}" --key "${KEY:?}" "$@"
}

# change KIND URL: patches an object with what comes in.
change() {
	ask --request PATCH --header "Content-Type: application/$1" --data-binary @- --output /dev/null "$2"
}

lives() {
	local node
	node=$(ask "${API:?}/api/v1/nodes/${NODE:?}") || return
	jq '{apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: {name: .metadata.name,
			ownerReferences: [{apiVersion: "v1", kind: "Node", name: .metadata.name, uid: .metadata.uid}]},
		spec: {holderIdentity: .metadata.name, leaseDurationSeconds: 40, renewTime: (now | strftime("%Y-%m-%dT%H:%M:%S.000000Z"))}}' <<<"$node" |
		change apply-patch+yaml "$API/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/$NODE?fieldManager=burano-node&force=true" || return
	# the node controller says that it is not, once it has missed it
	if ! jq --exit-status 'any(.status.conditions[]?; .type == "Ready" and .status == "True")' <<<"$node" >/dev/null; then
		jq --null-input '(now | todate) as $now | {status: {conditions: [{type: "Ready", status: "True", reason: "NoKubelet", lastHeartbeatTime: $now,
			lastTransitionTime: $now, message: "the node takes no pods, and has no kubelet"}]}}' |
			change strategic-merge-patch+json "$API/api/v1/nodes/$NODE/status" || return
	fi
}

while true; do
	lives || true
	sleep 10
done
