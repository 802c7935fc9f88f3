package systemd_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/systemd"
)

func TestAUnitRestartsForEverAndIsEnabledAtBoot(t *testing.T) {
	unit := systemd.Unit{Name: "etcd", Description: "etcd member", Command: []string{"/opt/etcd", "--name=a b", "--x=50%$"}, Service: []string{"Type=notify"}}
	require.Equal(t, `[Unit]
Description=etcd member
After=network.target
StartLimitIntervalSec=0

[Service]
ExecStart=/opt/etcd \
  "--name=a b" \
  --x=50%%$$
Restart=always
RestartSec=500ms
Type=notify

[Install]
WantedBy=multi-user.target
`, unit.Text())
	files := unit.Install()
	require.Equal(t, ssh.File{Path: "/etc/systemd/system/multi-user.target.wants/etcd.service", Link: "/etc/systemd/system/etcd.service"}, files[1])
}

func TestTheFingerprintFollowsWhatAUnitReads(t *testing.T) {
	unit := systemd.Unit{Name: "etcd", Files: []ssh.File{{Path: "/etc/etcd/env", Content: []byte("a")}}}
	same := unit
	require.Equal(t, unit.Fingerprint(), same.Fingerprint())
	same.Files = []ssh.File{{Path: "/etc/etcd/env", Content: []byte("b")}}
	require.NotEqual(t, unit.Fingerprint(), same.Fingerprint())
	same = unit
	same.Command = []string{"/bin/other"}
	require.NotEqual(t, unit.Fingerprint(), same.Fingerprint())
}

func TestAPackagedUnitIsOnlyEnabled(t *testing.T) {
	unit := systemd.Unit{Name: "containerd", Packaged: true, Files: []ssh.File{{Path: "/etc/containerd/config.toml"}}}
	files := unit.Install()
	require.Len(t, files, 2)
	require.Equal(t, "/lib/systemd/system/containerd.service", files[1].Link)
}

func TestAnotherOrderIsNoReasonToStartAUnitAnew(t *testing.T) {
	unit := systemd.Unit{Name: "kube-apiserver", Description: "an API server", Command: []string{"/bin/true"}}
	ordered := unit
	ordered.After = "etcd.service"
	require.Contains(t, ordered.Text(), "\nAfter=network.target etcd.service\n")
	require.Equal(t, unit.Fingerprint(), ordered.Fingerprint())
}
