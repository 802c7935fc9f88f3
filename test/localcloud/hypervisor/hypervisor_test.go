package hypervisor

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// imageVariable names the node image that servers are tested with.
const imageVariable = "BURANO_NODE_IMAGE"

const (
	hostAddress   = "198.18.77.1"
	serverAddress = "198.18.77.2"
)

// keyPair is an SSH key in the forms in which it is needed.
type keyPair struct {
	signer             ssh.Signer
	private, publicKey string
}

func newKeyPair(t *testing.T) keyPair {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	require.NoError(t, err)
	return keyPair{signer, string(pem.EncodeToMemory(block)), strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))}
}

func ip(t *testing.T, arguments ...string) {
	t.Helper()
	output, err := exec.Command("ip", arguments...).CombinedOutput()
	require.NoError(t, err, "ip %s: %s", strings.Join(arguments, " "), output)
}

// plugIn makes a network namespace with one interface of a fixed address, whose other end is on this machine. Their names are not the local cloud's, whose
// own tests remove objects with such names.
func plugIn(t *testing.T, name, mac string) {
	t.Helper()
	remove := func() {
		_ = exec.Command("ip", "link", "delete", "bhvtest0").Run()
		_ = exec.Command("ip", "netns", "delete", name).Run()
	}
	remove() // the remains of a killed run
	t.Cleanup(remove)
	ip(t, "netns", "add", name)
	ip(t, "link", "add", "bhvtest0", "type", "veth", "peer", "name", "ens3", "address", mac, "netns", name)
	ip(t, "address", "add", hostAddress+"/30", "dev", "bhvtest0")
	ip(t, "link", "set", "bhvtest0", "up")
	// Else this machine asks for the address before the server is there, and again only a second later.
	ip(t, "neighbour", "add", serverAddress, "lladdr", mac, "dev", "bhvtest0")
}

// drive is a config drive as Nova makes it.
func drive(userData, mac string) map[string][]byte {
	return map[string][]byte{
		"openstack/latest/meta_data.json": []byte(`{"uuid": "0e2f-test", "hostname": "node-1.novalocal", "name": "node-1"}`),
		"openstack/latest/network_data.json": fmt.Appendf(nil, `{
			"links": [{"id": "tap1", "type": "ovs", "ethernet_mac_address": %q, "mtu": 1400}],
			"networks": [{"id": "network0", "type": "ipv4", "link": "tap1", "ip_address": %q, "netmask": "255.255.255.252",
				"routes": [{"network": "0.0.0.0", "netmask": "0.0.0.0", "gateway": %q}]}],
			"services": [{"type": "dns", "address": "198.18.77.53"}]}`, mac, serverAddress, hostAddress),
		"openstack/latest/user_data": []byte(userData),
	}
}

// dial waits until sshd answers with the host key that is demanded.
func dial(t *testing.T, user, host keyPair) *ssh.Client {
	t.Helper()
	config := &ssh.ClientConfig{
		User: "root", Auth: []ssh.AuthMethod{ssh.PublicKeys(user.signer)},
		HostKeyCallback: ssh.FixedHostKey(host.signer.PublicKey()), Timeout: time.Second,
	}
	var client *ssh.Client
	var last error
	require.Eventually(t, func() bool {
		connection, err := net.DialTimeout("tcp", serverAddress+":22", 100*time.Millisecond)
		if err != nil {
			last = err
			return false
		}
		transport, channels, requests, err := ssh.NewClientConn(connection, serverAddress, config)
		if err != nil {
			last = err
			return false
		}
		client = ssh.NewClient(transport, channels, requests)
		return true
	}, 30*time.Second, 10*time.Millisecond, "sshd does not answer: %v", &last)
	t.Cleanup(func() { client.Close() })
	return client
}

func shell(t *testing.T, client *ssh.Client, command string) string {
	t.Helper()
	session, err := client.NewSession()
	require.NoError(t, err)
	defer session.Close()
	output, err := session.CombinedOutput(command)
	require.NoError(t, err, "%s: %s", command, output)
	return strings.TrimSpace(string(output))
}

func newHypervisor(t *testing.T) *Hypervisor {
	t.Helper()
	h, err := New(Config{
		StateDir: filepath.Join(t.TempDir(), "state"), CgroupParent: fmt.Sprintf("/burano-test-%d", os.Getpid()),
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.DeleteAll(context.WithoutCancel(t.Context()))) })
	return h
}

// traces lists the remains of a server on the machine; only one kind of traces when that is named.
func traces(t *testing.T, h *Hypervisor, kind ...string) []string {
	t.Helper()
	var found []string
	devices, err := loops()
	require.NoError(t, err)
	for device, file := range devices {
		if strings.HasPrefix(file, filepath.Dir(filepath.Dir(h.folder))) {
			found = append(found, "loop device "+device)
		}
	}
	if len(kind) > 0 {
		return found
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	for _, line := range strings.Split(string(mounts), "\n") {
		if strings.Contains(line, h.folder) {
			found = append(found, "mount "+line)
		}
	}
	for _, pattern := range []string{cgroupRoot + h.parent + "/*", cgroupRoot + "/*" + h.parent + "/*"} {
		groups, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, group := range groups {
			if info, err := os.Stat(group); err == nil && info.IsDir() {
				found = append(found, "cgroup "+group)
			}
		}
	}
	processes, err := filepath.Glob("/proc/[0-9]*/cgroup")
	require.NoError(t, err)
	for _, process := range processes {
		if content, err := os.ReadFile(process); err == nil && bytes.Contains(content, []byte(h.parent)) {
			found = append(found, "process "+process)
		}
	}
	containers, err := h.runc.list(t.Context())
	require.NoError(t, err)
	for _, container := range containers {
		found = append(found, "container "+container)
	}
	return found
}

// requireNoTraces waits, since the last process of a server is reaped by the machine's first one.
func requireNoTraces(t *testing.T, h *Hypervisor) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) { require.Empty(c, traces(t, h)) }, 5*time.Second, 10*time.Millisecond)
}

func TestAServerBootsStopsKeepsItsDiskAndGoesWithoutATrace(t *testing.T) {
	path := os.Getenv(imageVariable)
	if path == "" {
		t.Skipf("servers boot from the node image: build it with `make image` and set %s to its path (`make test` does both)", imageVariable)
	}
	image, err := os.Open(path)
	require.NoError(t, err)
	defer image.Close()

	ctx, h := t.Context(), newHypervisor(t)
	began := time.Now()
	require.NoError(t, h.ImportImage(ctx, "node", image))
	t.Logf("image imported in %.1f s", time.Since(began).Seconds())
	require.NoError(t, h.ImportImage(ctx, "node", strings.NewReader("not read again")))

	user, host := newKeyPair(t), newKeyPair(t)
	userData := fmt.Sprintf(`#cloud-config
hostname: node-1
ssh_authorized_keys: [%q]
ssh_deletekeys: true
ssh_keys:
  ed25519_private: |
    %s
  ed25519_public: %s
write_files:
- {path: /etc/burano/note, content: aGVsbG8K, encoding: b64, permissions: '0640'}
runcmd:
- echo once >> /root/commands
- [touch, /root/done]
`, user.publicKey, strings.ReplaceAll(strings.TrimSpace(host.private), "\n", "\n    "), host.publicKey)
	const netns, mac = "burano-hypervisor-test", "fa:16:3e:00:77:02"
	plugIn(t, netns, mac)
	server := Server{ID: "server-1", Hostname: "node-1", ImageID: "node", NetNS: netns, MemoryMiB: 1024, VCPUs: 1, ConfigDrive: drive(userData, mac)}

	began = time.Now()
	require.NoError(t, h.Start(ctx, server))
	started := time.Since(began)
	client := dial(t, user, host)
	t.Logf("started after %.2f s, logged in by SSH after %.2f s", started.Seconds(), time.Since(began).Seconds())

	state, err := h.State(ctx, "server-1")
	require.NoError(t, err)
	require.Equal(t, Running, state)
	require.Equal(t, "running", shell(t, client, "systemctl is-system-running --wait || systemctl --failed"))
	t.Log(shell(t, client, "systemd-analyze"))
	require.Equal(t, "node-1", shell(t, client, "hostname"))
	require.Equal(t, "hello", shell(t, client, "cat /etc/burano/note"))
	require.Equal(t, "640", shell(t, client, "stat --format=%a /etc/burano/note"))
	require.Equal(t, "nameserver 198.18.77.53", shell(t, client, "cat /etc/resolv.conf"))
	require.Contains(t, shell(t, client, "ip address show ens3"), "mtu 1400")
	require.Contains(t, shell(t, client, "ip route"), "default via "+hostAddress)
	require.Equal(t, "/opt/burano/bin/kubectl", shell(t, client, "command -v kubectl"))
	require.Equal(t, "ssh_host_ed25519_key\nssh_host_ed25519_key.pub", shell(t, client, "ls /etc/ssh | grep ^ssh_host"))
	settings := shell(t, client, "sshd -T")
	for _, setting := range []string{"passwordauthentication no", "permitrootlogin without-password", "usedns no", "maxsessions 50", "maxstartups 50:30:100"} {
		require.Contains(t, settings, setting+"\n")
	}
	machine := shell(t, client, "cat /etc/machine-id")
	require.Len(t, machine, 32)
	require.Contains(t, shell(t, client, "free --mebi"), "1024")
	require.Equal(t, "once", shell(t, client, "cat /root/commands; test -e /root/done"))
	require.Empty(t, shell(t, client, "systemctl list-units --no-legend --plain containerd.service haproxy.service"))

	t.Run("containers run inside", func(t *testing.T) {
		began := time.Now()
		shell(t, client, `set -e; systemctl start containerd
			for image in /opt/burano/images/*.tar; do ctr --namespace k8s.io images import "$image" >&2; done
			ctr --namespace k8s.io images list --quiet | grep -c ^registry.local/
			ctr --namespace k8s.io run --detach --memory-limit 67108864 registry.local/demo:1 demo
			ctr --namespace k8s.io tasks list`)
		require.Contains(t, shell(t, client, "ctr --namespace k8s.io tasks list"), "RUNNING")
		t.Logf("containerd, three images and a container in %.2f s", time.Since(began).Seconds())
	})

	console, err := h.ConsoleLog(ctx, "server-1", 1000)
	require.NoError(t, err)
	require.Contains(t, console, "Apply the config drive")

	volume := filepath.Join(t.TempDir(), "volume")
	require.NoError(t, os.WriteFile(volume, nil, 0o600))
	require.NoError(t, os.Truncate(volume, 64<<20))
	_, noLoops := os.Stat("/dev/loop-control")
	if noLoops != nil {
		t.Logf("disks are loop devices, which this machine has not: they are not tried: %v", noLoops)
	} else {
		server.Disks = []Disk{{Device: "vdb", File: volume, Serial: "0f2f9e1c-5f6e-4b7e-8d0a-1f3f5a6b7c8d"}}
		require.NoError(t, h.SetDisks(ctx, "server-1", server.Disks))
		require.NoError(t, h.SetDisks(ctx, "server-1", server.Disks), "what it has already")
		shell(t, client, "set -e; mkfs.ext4 -q /dev/vdb; mount /dev/disk/by-id/virtio-0f2f9e1c-5f6e-4b7e-8 /mnt; echo data > /mnt/file; umount /mnt")
		require.NoError(t, os.Truncate(volume, 128<<20))
		require.NoError(t, GrowLoop(ctx, volume))
		require.Equal(t, "134217728", shell(t, client, "blockdev --getsize64 /dev/vdb"))
	}

	shell(t, client, "echo kept > /root/kept")
	client.Close()
	began = time.Now()
	require.NoError(t, h.Stop(ctx, "server-1"))
	t.Logf("stopped in %.2f s", time.Since(began).Seconds())
	state, err = h.State(ctx, "server-1")
	require.NoError(t, err)
	require.Equal(t, Stopped, state)
	requireNoTraces(t, h)
	console, err = h.ConsoleLog(ctx, "server-1", 1000)
	require.NoError(t, err)
	require.Contains(t, console, "Apply the config drive")
	require.NoError(t, h.Stop(ctx, "server-1"), "stopping what is stopped")

	// A network namespace does not outlive its last process: a stopped server gets its interfaces anew.
	_ = exec.Command("ip", "link", "delete", "bhvtest0").Run()
	ip(t, "netns", "delete", netns)
	plugIn(t, netns, mac)
	began = time.Now()
	require.NoError(t, h.Start(ctx, server))
	client = dial(t, user, host)
	t.Logf("started again, logged in after %.2f s", time.Since(began).Seconds())
	require.Equal(t, "kept", shell(t, client, "cat /root/kept"))
	require.Equal(t, machine, shell(t, client, "cat /etc/machine-id"))
	require.Equal(t, "running", shell(t, client, "systemctl is-system-running --wait"))
	require.Equal(t, "once", shell(t, client, "cat /root/commands"), "commands run once per instance")
	require.NoError(t, h.Start(ctx, server), "starting what runs")
	if noLoops == nil {
		require.Equal(t, "data", shell(t, client, "mount /dev/vdb /mnt && cat /mnt/file && umount /mnt"))
		require.NoError(t, h.SetDisks(ctx, "server-1", nil))
		require.Equal(t, "gone", shell(t, client, "test -e /dev/vdb || echo gone"))
		require.Empty(t, traces(t, h, "loop device"))
		require.NoError(t, h.SetDisks(ctx, "server-1", server.Disks), "which its deletion frees")
	}

	client.Close()
	require.NoError(t, h.Stop(ctx, "server-1"))
	_ = exec.Command("ip", "link", "delete", "bhvtest0").Run()
	ip(t, "netns", "delete", netns)
	plugIn(t, netns, mac)
	rescue := server
	rescue.RescueImageID = "node"
	require.NoError(t, h.Start(ctx, rescue))
	client = dial(t, user, host)
	require.Equal(t, "kept", shell(t, client, "cat /mnt/root/kept"), "its own disk is there")
	require.Equal(t, "fresh", shell(t, client, "test -e /root/kept || echo fresh"))
	shell(t, client, "echo mended > /mnt/root/kept; mkdir /mnt/var/lib/etcd/mended; echo gone > /root/gone")
	client.Close()
	require.NoError(t, h.Stop(ctx, "server-1"))
	requireNoTraces(t, h)
	_ = exec.Command("ip", "link", "delete", "bhvtest0").Run()
	ip(t, "netns", "delete", netns)
	plugIn(t, netns, mac)
	require.NoError(t, h.Start(ctx, server))
	client = dial(t, user, host)
	require.Equal(t, "mended\nmended", shell(t, client, "cat /root/kept; ls /var/lib/etcd; ls /root/gone 2>/dev/null || true"))
	require.NoDirExists(t, h.disk("server-1").rescue().path())

	require.NoError(t, h.DeleteImage(ctx, "node"))
	require.False(t, h.HasImage("node"))
	require.DirExists(t, h.imageFolder("node"), "a server still runs from it")

	// As a container engine that was killed while it froze a container.
	shell(t, client, `set -e; version1=/sys/fs/cgroup/freezer/frozen version2=/sys/fs/cgroup/frozen
		sleep infinity </dev/null >/dev/null 2>&1 & pid=$!
		if [ -d ${version1%/*} ]; then mkdir $version1; echo $pid >$version1/cgroup.procs; echo FROZEN >$version1/freezer.state
		else mkdir $version2; echo $pid >$version2/cgroup.procs; echo 1 >$version2/cgroup.freeze; fi`)
	began = time.Now()
	require.NoError(t, h.Delete(ctx, "server-1"))
	t.Logf("deleted in %.2f s", time.Since(began).Seconds())
	state, err = h.State(ctx, "server-1")
	require.NoError(t, err)
	require.Equal(t, Absent, state)
	requireNoTraces(t, h)
	require.NoDirExists(t, h.imageFolder("node"))
	require.NoError(t, h.Delete(ctx, "server-1"), "deleting what is not there")
}

func TestWhatIsNoServerOrImageIsRefused(t *testing.T) {
	ctx, h := t.Context(), newHypervisor(t)
	for _, id := range []string{"", "../server", "a/b", ".hidden", strings.Repeat("x", 101)} {
		require.Error(t, h.Start(ctx, Server{ID: id, NetNS: "blc-x"}), "server %q", id)
		require.Error(t, h.Delete(ctx, id), "server %q", id)
		require.Error(t, h.ImportImage(ctx, id, strings.NewReader("")), "image %q", id)
		require.False(t, h.HasImage(id))
	}
	require.ErrorContains(t, h.Start(ctx, Server{ID: "one", ImageID: "none", NetNS: "blc-x"}), "start server one: there is no image none")
	state, err := h.State(ctx, "one")
	require.NoError(t, err)
	require.Equal(t, Absent, state, "nothing is left of a server that could not be started")

	require.ErrorContains(t, h.ImportImage(ctx, "text", strings.NewReader("no tar at all")), "a tar of a root file system is wanted")
	require.ErrorContains(t, h.ImportImage(ctx, "empty", tarOf(t, "etc/hostname")), "it has no /sbin/init")
	require.False(t, h.HasImage("text"))
	require.False(t, h.HasImage("empty"))
	left, err := os.ReadDir(h.imagesFolder())
	require.NoError(t, err)
	require.Empty(t, left, "what could not be imported leaves nothing")

	for _, folder := range []string{"", "/var/lib/a:b", "/var/lib/a,b"} {
		_, err := New(Config{StateDir: folder})
		require.ErrorContains(t, err, "state folder")
	}
}

func TestAServerThatCannotStartLeavesNoTrace(t *testing.T) {
	ctx, h := t.Context(), newHypervisor(t)
	require.NoError(t, h.ImportImage(ctx, "broken", tarOf(t, "sbin/init")))
	server := Server{ID: "one", Hostname: "one", ImageID: "broken", NetNS: "blc-there-is-none", MemoryMiB: 64}
	require.ErrorContains(t, h.Start(ctx, server), "start server one: runc run")
	state, err := h.State(ctx, "one")
	require.NoError(t, err)
	require.Equal(t, Absent, state)
	requireNoTraces(t, h)
}

func TestAllIsRemovedAlsoWhenTheProcessThatMadeItIsDead(t *testing.T) {
	ctx, h := t.Context(), newHypervisor(t)
	require.NoError(t, h.ImportImage(ctx, "node", tarOf(t, "sbin/init")))
	// As after a crash: a disk is mounted without a record.
	d := h.disk("lost")
	for _, folder := range []string{"upper", "work", "root"} {
		require.NoError(t, os.MkdirAll(d.path(folder), 0o700))
	}
	require.NoError(t, mountOverlay(h.imageFolder("node"), d))
	require.FileExists(t, d.path("root", "sbin", "init"))

	other, err := New(Config{StateDir: h.folder, CgroupParent: h.parent})
	require.NoError(t, err)
	require.NoError(t, other.DeleteAll(ctx))
	requireNoTraces(t, h)
	require.NoDirExists(t, h.folder)
	require.NoError(t, other.DeleteAll(ctx), "deleting nothing")
}

func TestAServerGetsOnlyTheRightsThatTheMachineHas(t *testing.T) {
	require.Empty(t, among(0))
	require.Equal(t, []string{"CAP_CHOWN", "CAP_SYS_ADMIN"}, among(1|1<<21))
	require.Contains(t, among(^uint64(0)), "CAP_SYS_RESOURCE")
	require.NotContains(t, among(^uint64(0)), "CAP_SYS_MODULE")

	// Root of some machines cannot raise limits; a server must not be made to try.
	require.NotContains(t, among(^uint64(0)&^(1<<24)), "CAP_SYS_RESOURCE")
}

func TestAServersMemoryIsItsOwn(t *testing.T) {
	require.Contains(t, memoryInfo(2048), "MemTotal:        2097152 kB\n")
	require.Contains(t, memoryInfo(2048), "SwapTotal:             0 kB\n")
}

// tarOf is an archive of empty files.
func tarOf(t *testing.T, names ...string) *bytes.Buffer {
	t.Helper()
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	for _, name := range names {
		require.NoError(t, writer.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755}))
	}
	require.NoError(t, writer.Close())
	return &archive
}
