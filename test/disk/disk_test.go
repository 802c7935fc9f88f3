// Package disk boots the node image as a disk in QEMU, as machines of a cloud do. It takes minutes where there is no hardware virtualisation;
// `make test-disk` runs it.
package disk

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/access"
)

// imageVariable names the disk, a qcow2.
const imageVariable = "BURANO_DISK_IMAGE"

// checkSystem checks that the machine has booted without failed units, and has everything that a node needs.
func checkSystem(t *testing.T, m *machine, client *ssh.Client) {
	t.Helper()
	state, err := try(client, "systemctl is-system-running --wait")
	require.NoError(t, err, "%s: %s", state, output(t, client, "systemctl --failed --no-legend --plain; journalctl -b -p err --no-pager | tail -n 40"))
	require.Equal(t, "running", state)
	t.Logf("%5.1f s: the system is running; %s", time.Since(m.began).Seconds(), strings.SplitN(output(t, client, "systemd-analyze"), "\n", 2)[0])

	mebibytes, err := strconv.Atoi(output(t, client, "df --output=size --block-size=1M / | tail -n 1 | tr -d ' '"))
	require.NoError(t, err)
	require.Greater(t, mebibytes, diskGiB*1024*9/10, "the root file system has grown to the disk")

	for _, module := range []string{"overlay", "br_netfilter", "vxlan", "nf_tables", "nf_conntrack"} {
		output(t, client, "test -d /sys/module/"+module)
	}
	require.Equal(t, "1\n1", output(t, client, "sysctl -n net.ipv4.ip_forward net.bridge.bridge-nf-call-iptables"))
	require.Equal(t, "active", output(t, client, "systemctl is-active chrony.service"))
	require.Empty(t, output(t, client, "swapon --show"))
	require.Empty(t, output(t, client, `awk -F: '$2 !~ /^[!*]/' /etc/shadow`), "no account has a password")
	require.NotEmpty(t, output(t, client, "journalctl --header --file /var/log/journal/*/system.journal | grep -i machine"), "the log is on the disk")
	require.Equal(t, "1450", output(t, client, "cat /sys/class/net/eth0/mtu"), "as the network data says")
	require.NotEmpty(t, output(t, client, "/opt/burano/bin/etcd --version"))
}

// keyIn is a key of a vault.
func keyIn(t *testing.T, vault *access.Memory, name string) ssh.Signer {
	t.Helper()
	signer, err := ssh.ParsePrivateKey(vault.Values()[name])
	require.NoError(t, err)
	return signer
}

func TestAMachineWithBIOSAndVirtioBecomesANodeByItsConfigDrive(t *testing.T) {
	keys := &access.Memory{}
	cluster, err := nodes.NewCluster(nodes.Config{
		Name: "c", Vault: keys, NodeNetwork: netip.MustParsePrefix("10.0.2.0/24"),
		Nodes: []nodes.Node{{Name: "murano-kube-1", Role: nodes.Master, Address: netip.MustParseAddr("10.0.2.15")}},
	})
	require.NoError(t, err)
	userData, err := cluster.UserData(t.Context(), "murano-kube-1")
	require.NoError(t, err)
	userData = append(userData, "write_files: [{path: /opt/note, content: written, permissions: '0600'}]\nruncmd: ['echo once >>/opt/ran']\n"...)
	m := boot(t, hardware{firmware: bios, bus: virtio}, newMetadata(t, "other-name", nil, userData))
	root, hostKey := keyPair{signer: keyIn(t, keys, "ssh/key")}, keyIn(t, keys, "ssh/first-host/murano-kube-1").PublicKey()
	client := m.login("root", root, hostKey)
	checkSystem(t, m, client)

	require.Equal(t, "murano-kube-1", output(t, client, "hostname"))
	require.Equal(t, "written", output(t, client, "cat /opt/note"))
	require.Equal(t, "once", output(t, client, "cat /opt/ran"))
	output(t, client, "test ! -e /var/lib/cloud/seed/nocloud") // cloud-init had nothing to do
	require.Equal(t, "3 active", output(t, client, `echo "$(ls /dev/vda? | wc -l) $(systemctl is-active ssh.service)"`))
	m.powerDown()
	require.Contains(t, m.consoleEnd(), "reboot: Power down", "it was stopped in order, by its power button")

	// After a restart with a larger disk it is the same server.
	runProgram(t, "qemu-img", "resize", "-q", m.disk, fmt.Sprintf("%dG", diskGiB+4))
	m.start()
	client = m.login("root", root, hostKey)
	require.Equal(t, "running", output(t, client, "systemctl is-system-running --wait"))
	require.Equal(t, "once", output(t, client, "cat /opt/ran"), "user data is applied once")
	require.Equal(t, "2", output(t, client, "journalctl --list-boots --quiet | wc -l"), "the log of the first boot is there")
	require.Equal(t, "grown", output(t, client, fmt.Sprintf("test $(df --output=size --block-size=1G / | tail -n 1) -gt %d && echo grown", diskGiB+2)))
}

func TestAMachineWithUEFIAndSCSITakesUserDataThatIsCloudInits(t *testing.T) {
	alice := newKey(t)
	userData := fmt.Sprintf(`#cloud-config
users:
- name: alice
  groups: [systemd-journal]
  sudo: "ALL=(ALL) NOPASSWD:ALL"
  shell: /bin/bash
  ssh_authorized_keys: [%q]
write_files:
- {path: /etc/motd, content: "welcome\n", owner: "alice:alice", defer: true}
runcmd:
- [sh, -c, "id -un >>/home/alice/ran"]
`, alice.public())
	root := newKey(t)
	m := boot(t, hardware{firmware: uefi, bus: scsi}, newMetadata(t, "server-1", map[string]string{"mine": root.public()}, []byte(userData)))
	client := m.login("root", root, nil)
	checkSystem(t, m, client)

	require.Equal(t, "server-1", output(t, client, "hostname"))
	output(t, client, "test -d /sys/firmware/efi && test -b /dev/sda3")
	require.Equal(t, "ed25519", output(t, client, "ls /etc/ssh/ssh_host_*_key | sed 's/.*ssh_host_//; s/_key//'"), "the machine made a host key for itself")
	person := m.login("alice", alice, nil)
	require.Equal(t, "root", output(t, person, "sudo cat /home/alice/ran"), "the command ran once, as root")
	require.Equal(t, "welcome", output(t, person, "cat /etc/motd"))
	require.Equal(t, "alice", output(t, client, "stat -c %U /etc/motd"))
}

func TestAMachineWithASATADiskAsksTheMetadataService(t *testing.T) {
	root := newKey(t)
	userData := []byte("#!/bin/sh\necho once >>/opt/script\n")
	m := boot(t, hardware{firmware: bios, bus: sata, metadataService: true}, newMetadata(t, "server-2", map[string]string{"mine": root.public()}, userData))
	client := m.login("root", root, nil)
	checkSystem(t, m, client)
	require.Equal(t, "server-2", output(t, client, "hostname"))
	require.Equal(t, "once", output(t, client, "cat /opt/script"))
	output(t, client, "test -b /dev/sda3")
}
