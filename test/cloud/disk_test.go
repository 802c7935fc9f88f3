package cloud

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/imagedata"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// diskVariable names the node image as a qcow2 file.
const diskVariable = "BURANO_DISK_IMAGE"

// The whole cluster is not tested where servers are emulated: Kubernetes' API server does not become ready within its own minute
// there.
func TestTheDiskBootsAsAServerOfNova(t *testing.T) {
	path := os.Getenv(diskVariable)
	if path == "" || os.Getenv(cloudsVariable) == "" {
		t.Skipf("%s or %s is not set: `make test-openstack-disk` sets them", diskVariable, cloudsVariable)
	}
	c := open(t)
	admin, demo := c.as(t, "admin"), c.as(t, "demo")
	project := demo.project(t, c.service(t))
	node := admin.nodeImage(t, path)
	own, host := newSSHKey(t), newSSHKey(t)
	userData := fmt.Sprintf("#cloud-config\nusers: [{name: root, ssh_authorized_keys: [%q]}]\nssh_keys:\n  ed25519_public: %q\n  ed25519_private: %q\n"+
		"write_files: [{path: /opt/note, content: written}]\nruncmd: ['touch /opt/ran']\n", own.public(), host.public(), host.private)

	name := begin(t, project, "disk")
	template := plan(t, project)
	outside, err := project.ExternalNetwork(t.Context(), "")
	require.NoError(t, err)
	template.addServer(serverPlan{ID: "node", Name: "burano-test-node", Flavor: admin.flavor(t, 1024), Image: node, UserData: userData,
		SecurityGroup: "group", FloatingIP: true, External: outside.ID})
	began := time.Now()
	stack, err := project.ApplyStack(t.Context(), name, template.content(t))
	require.NoError(t, err)
	t.Logf("%5.1f s: the stack is complete", time.Since(began).Seconds())
	addresses, ok := stack.Addresses("node")
	require.True(t, ok)

	client := login(t, addresses.Floating, own.signer, host.signer.PublicKey())
	t.Logf("%5.1f s: root is logged in", time.Since(began).Seconds())
	output := func(command string) string {
		t.Helper()
		session, err := client.NewSession()
		require.NoError(t, err)
		defer session.Close()
		said, err := session.CombinedOutput(command)
		require.NoError(t, err, "%s: %s", command, said)
		return strings.TrimSpace(string(said))
	}
	require.Equal(t, "running", output("systemctl is-system-running --wait"))
	t.Logf("%5.1f s: the system is running", time.Since(began).Seconds())
	require.Equal(t, "burano-test-node", output("hostname"))
	require.Equal(t, "written", output("cat /opt/note; test -e /opt/ran"))
	mebibytes, err := strconv.Atoi(output("df --output=size --block-size=1M / | tail -n 1 | tr -d ' '"))
	require.NoError(t, err)
	require.Greater(t, mebibytes, 9*1024, "the root file system has grown to the flavor's disk")
	require.Contains(t, output("ip -4 -o address show eth0"), addresses.Fixed.String())
	require.NotEmpty(t, output("curl -sf --max-time 60 http://169.254.169.254/openstack/latest/meta_data.json"))
}

// nodeImage uploads the disk until the test ends, and returns its id.
func (u user) nodeImage(t *testing.T, path string) string {
	client := u.client(t, openstack.NewImageV2)
	public := images.ImageVisibilityPublic
	made, err := images.Create(t.Context(), client, images.CreateOpts{Name: "burano-test-node", DiskFormat: "qcow2", ContainerFormat: "bare", Visibility: &public,
		Properties: map[string]string{"hw_rng_model": "virtio"}}).Extract()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, images.Delete(context.Background(), client, made.ID).ExtractErr()) })
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	require.NoError(t, imagedata.Upload(t.Context(), client, made.ID, file).ExtractErr())
	return made.ID
}

// sshKey is a key pair; private is its private half as OpenSSH writes it.
type sshKey struct {
	signer  ssh.Signer
	private string
}

func newSSHKey(t *testing.T) sshKey {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	require.NoError(t, err)
	return sshKey{signer: signer, private: string(pem.EncodeToMemory(block))}
}

func (k sshKey) public() string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k.signer.PublicKey())))
}

// login waits until root can log in.
func login(t *testing.T, address netip.Addr, key ssh.Signer, host ssh.PublicKey) *ssh.Client {
	var client *ssh.Client
	var last error
	settings := &ssh.ClientConfig{User: "root", Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: ssh.FixedHostKey(host)}
	eventually(t, "root can log in", func() bool {
		at := netip.AddrPortFrom(address, 22).String()
		connection, err := net.DialTimeout("tcp", at, 30*time.Second)
		if err != nil {
			last = err
			return false
		}
		_ = connection.SetDeadline(time.Now().Add(time.Minute))
		session, channels, requests, err := ssh.NewClientConn(connection, at, settings)
		if err != nil {
			last = errors.Join(err, connection.Close())
			return false
		}
		_ = connection.SetDeadline(time.Time{})
		client = ssh.NewClient(session, channels, requests)
		return true
	})
	require.NotNil(t, client, "%v", last)
	t.Cleanup(func() { client.Close() })
	return client
}
