package disk

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/burano/burano/internal/wait"
)

// Firmware and buses of a machine.
const (
	bios   = "BIOS"
	uefi   = "UEFI"
	virtio = "virtio"
	scsi   = "SCSI"
	sata   = "SATA"
)

// hardware is the kind of a machine, and its source of metadata.
type hardware struct {
	firmware, bus string
	// metadataService has the machine ask the metadata service; otherwise it has a config drive.
	metadataService bool
}

// machine is a machine in QEMU.
type machine struct {
	t       *testing.T
	folder  string
	address string // of its sshd
	began   time.Time
	ended   chan struct{}
	monitor string
	disk    string
	// arguments are QEMU's.
	arguments []string
}

// patience is for a machine without hardware virtualisation on a busy host.
const patience = 20 * time.Minute

const diskGiB = 10

// metadata is a server's metadata, by file.
type metadata map[string][]byte

func newMetadata(t *testing.T, name string, publicKeys map[string]string, userData []byte) metadata {
	t.Helper()
	encode := func(value any) []byte {
		content, err := json.Marshal(value)
		require.NoError(t, err)
		return content
	}
	return metadata{
		"meta_data.json": encode(map[string]any{"uuid": name + "-instance", "hostname": name + ".novalocal", "name": name, "public_keys": publicKeys}),
		"network_data.json": encode(map[string]any{
			"links":    []any{map[string]any{"id": "l0", "ethernet_mac_address": hardwareAddress, "mtu": 1450, "type": "phy"}},
			"networks": []any{map[string]any{"id": "n0", "link": "l0", "type": "ipv4_dhcp"}},
		}),
		"user_data": userData,
	}
}

const hardwareAddress = "52:54:00:00:00:01"

// boot starts a machine with a disk of its own over the image, and ends it with the test.
func boot(t *testing.T, h hardware, data metadata) *machine {
	t.Helper()
	image := os.Getenv(imageVariable)
	if image == "" {
		t.Skipf("%s is not set: `make test-disk` sets it", imageVariable)
	}
	image, err := filepath.Abs(image)
	require.NoError(t, err)
	folder := t.TempDir()
	m := &machine{t: t, folder: folder, monitor: filepath.Join(folder, "monitor"), disk: filepath.Join(folder, "disk.qcow2")}
	runProgram(t, "qemu-img", "create", "-q", "-f", "qcow2", "-b", image, "-F", "qcow2", m.disk, fmt.Sprintf("%dG", diskGiB))
	port := freePort(t)
	m.address = fmt.Sprintf("127.0.0.1:%d", port)
	accelerator := "tcg,thread=multi,tb-size=256"
	if os.Getenv("BURANO_DISK_KVM") != "" {
		accelerator = "kvm"
	}
	arguments := []string{
		"-accel", accelerator, "-smp", "2", "-m", "1024", "-display", "none", "-nodefaults", "-no-user-config",
		"-serial", "file:" + m.consolePath(), "-qmp", "unix:" + m.monitor + ",server=on,wait=off",
		"-drive", "file=" + m.disk + ",if=none,id=disk,cache=unsafe,discard=unmap", "-device", "virtio-rng-pci",
		"-device", "virtio-net-pci,netdev=net,romfile=,mac=" + hardwareAddress,
	}
	switch h.bus {
	case virtio:
		arguments = append(arguments, "-machine", "pc", "-device", "virtio-blk-pci,drive=disk,bootindex=1")
	case scsi:
		arguments = append(arguments, "-machine", "q35", "-device", "virtio-scsi-pci", "-device", "scsi-hd,drive=disk,bootindex=1")
	case sata:
		arguments = append(arguments, "-machine", "q35", "-device", "ide-hd,drive=disk,bus=ide.0,bootindex=1")
	}
	if h.firmware == uefi {
		variables := filepath.Join(folder, "variables.fd")
		content, err := os.ReadFile("/usr/share/OVMF/OVMF_VARS.fd")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(variables, content, 0o600))
		arguments = append(arguments, "-drive", "if=pflash,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE.fd", "-drive", "if=pflash,format=raw,file="+variables)
	}
	network := fmt.Sprintf("user,id=net,hostfwd=tcp:%s-:22", m.address)
	if h.metadataService {
		// The machine's network must contain the service's address: QEMU forwards no other.
		network += ",net=169.254.0.0/16,dhcpstart=169.254.0.15,guestfwd=tcp:169.254.169.254:80-cmd:" + connectCommand(t, serveMetadata(t, data))
	} else {
		arguments = append(arguments, "-drive", "file="+configDrive(t, folder, data)+",if=none,id=drive,media=cdrom,readonly=on", "-device", "ide-cd,drive=drive,bus=ide.1")
	}
	m.arguments = append(arguments, "-netdev", network)
	m.start()
	return m
}

// start switches the machine on.
func (m *machine) start() {
	m.t.Helper()
	var said bytes.Buffer
	command := exec.Command("qemu-system-x86_64", m.arguments...)
	command.Stdout, command.Stderr = &said, &said
	require.NoError(m.t, command.Start())
	ended := make(chan struct{})
	m.began, m.ended = time.Now(), ended
	go func() {
		defer close(ended)
		_ = command.Wait()
	}()
	t := m.t
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("QEMU said: %s\nthe end of the console:\n%s", said.String(), m.consoleEnd())
		}
	})
}

func (m *machine) consolePath() string { return filepath.Join(m.folder, "console") }

func (m *machine) consoleEnd() string {
	content, err := os.ReadFile(m.consolePath())
	if err != nil {
		return err.Error()
	}
	return string(content[max(0, len(content)-6000):])
}

func runProgram(t *testing.T, name string, arguments ...string) {
	t.Helper()
	output, err := exec.Command(name, arguments...).CombinedOutput()
	require.NoError(t, err, "%s: %s", name, output)
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// configDrive is made as Nova makes one.
func configDrive(t *testing.T, folder string, data metadata) string {
	t.Helper()
	tree, drive := filepath.Join(folder, "drive"), filepath.Join(folder, "drive.iso")
	latest := filepath.Join(tree, "openstack", "latest")
	require.NoError(t, os.MkdirAll(latest, 0o755))
	for name, content := range data {
		require.NoError(t, os.WriteFile(filepath.Join(latest, name), content, 0o644))
	}
	runProgram(t, "genisoimage", "-quiet", "-J", "-r", "-V", "config-2", "-o", drive, tree)
	return drive
}

func serveMetadata(t *testing.T, data metadata) (address string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, there := data[strings.TrimPrefix(r.URL.Path, "/openstack/latest/")]
		if !there || r.Host != "169.254.169.254" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(content)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// connectVariable makes this program copy between its standard streams and an address: QEMU runs one for each connection.
const connectVariable = "BURANO_DISK_CONNECT"

func connectCommand(t *testing.T, address string) string {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	return "env " + connectVariable + "=" + address + " " + program
}

func connect(address string) error {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(connection, os.Stdin)
		_ = connection.(*net.TCPConn).CloseWrite()
	}()
	_, err = io.Copy(os.Stdout, connection)
	return err
}

func TestMain(m *testing.M) {
	if address := os.Getenv(connectVariable); address != "" {
		if err := connect(address); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// keyPair is an SSH key: its signer, and its private half as OpenSSH writes it.
type keyPair struct {
	signer  ssh.Signer
	private []byte
}

func newKey(t *testing.T) keyPair {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	require.NoError(t, err)
	return keyPair{signer: signer, private: pem.EncodeToMemory(block)}
}

func (k keyPair) public() string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k.signer.PublicKey())))
}

// login waits until a user can log in. A nil host key accepts any.
func (m *machine) login(user string, key keyPair, hostKey ssh.PublicKey) *ssh.Client {
	m.t.Helper()
	check := ssh.InsecureIgnoreHostKey()
	if hostKey != nil {
		check = ssh.FixedHostKey(hostKey)
	}
	config := &ssh.ClientConfig{User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(key.signer)}, HostKeyCallback: check, Timeout: time.Minute}
	var client *ssh.Client
	m.until(func() error {
		// The forwarder of QEMU accepts before the machine does: the time limit is on the whole sign-in.
		connection, err := net.DialTimeout("tcp", m.address, time.Minute)
		if err != nil {
			return err
		}
		_ = connection.SetDeadline(time.Now().Add(time.Minute))
		session, channels, requests, err := ssh.NewClientConn(connection, m.address, config)
		if err != nil {
			return errors.Join(err, connection.Close())
		}
		_ = connection.SetDeadline(time.Time{})
		client = ssh.NewClient(session, channels, requests)
		return nil
	})
	m.t.Cleanup(func() { client.Close() })
	m.t.Logf("%5.1f s: %s is logged in", time.Since(m.began).Seconds(), user)
	return client
}

// until waits for a condition of the machine, and fails when the machine has ended.
func (m *machine) until(check func() error) {
	m.t.Helper()
	ctx, cancel := context.WithCancelCause(m.t.Context())
	defer cancel(nil)
	go func() {
		select {
		case <-m.ended:
			cancel(errors.New("the machine has ended"))
		case <-ctx.Done():
		}
	}()
	err := wait.Every(500*time.Millisecond).For(patience).Until(ctx, func(context.Context) error {
		if err := check(); err != nil {
			return wait.Again(err)
		}
		return nil
	})
	require.NoError(m.t, err)
}

// output is the output of a command, whose failure fails the test.
func output(t *testing.T, client *ssh.Client, command string) string {
	t.Helper()
	said, err := try(client, command)
	require.NoError(t, err, "%s: %s", command, said)
	return said
}

func try(client *ssh.Client, command string) (string, error) {
	session, err := client.NewSession()
	if err != nil {
		return "", err
	}
	defer session.Close()
	said, err := session.CombinedOutput(command)
	return strings.TrimSpace(string(said)), err
}

// powerDown presses the machine's power button, as a cloud does to stop a server.
func (m *machine) powerDown() {
	m.t.Helper()
	connection, err := net.Dial("unix", m.monitor)
	require.NoError(m.t, err)
	defer connection.Close()
	_, err = connection.Write([]byte(`{"execute": "qmp_capabilities"}` + "\n" + `{"execute": "system_powerdown"}` + "\n"))
	require.NoError(m.t, err)
	select {
	case <-m.ended:
	case <-time.After(patience):
		require.Fail(m.t, "the machine does not power down")
	}
}
