#!/bin/bash
# Makes a server of the node image one on which kubeadm can begin: containerd with the container images of the control plane, the kubelet's unit as
# kubeadm's packages have it, and pods' networks on this node alone.
#   ARCHIVES  the container images
set -euo pipefail
mkdir -p /etc/containerd /etc/cni/net.d
cat >/etc/containerd/config.toml <<'CONFIG'
version = 2

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.local/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = true
CONFIG
systemctl start containerd
for archive in $ARCHIVES; do
	ctr -n k8s.io images import "$archive" >/dev/null
	rm "$archive"
done
cat >/etc/cni/net.d/10-pods.conflist <<'CONFIG'
{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "pods", "isGateway": true, "ipMasq": true,
  "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.200.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
CONFIG
cat >/etc/systemd/system/kubelet.service <<'UNIT'
[Service]
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
ExecStart=/opt/burano/bin/kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml $KUBELET_KUBEADM_ARGS
Restart=always
RestartSec=1

[Install]
WantedBy=multi-user.target
UNIT
systemctl daemon-reload
chmod +x /root/kubeadm
