package cloud

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	gossh "golang.org/x/crypto/ssh"

	"github.com/burano/burano/nodes/access"
	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/nodes/ssh"
)

// member is a server with an etcd member.
type member struct {
	etcd.Node
	shell *ssh.Client
}

// TestThreeEtcdMembersVoteOnServersOfTheDisk starts etcd as a deployment does, on three servers that Nova's QEMU driver makes of the disk: its
// kernel, its systemd, its etcd, and the network between them, by VXLAN too. One of them is then switched off, and the others go on.
func TestThreeEtcdMembersVoteOnServersOfTheDisk(t *testing.T) {
	path := os.Getenv(diskVariable)
	if path == "" || os.Getenv(cloudsVariable) == "" {
		t.Skipf("%s or %s is not set: `make test-openstack-disk` sets them", diskVariable, cloudsVariable)
	}
	c := open(t)
	members := threeServers(t, c, path)
	// An emulated server is slow, and its clock may be off by the duration of its boot.
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience())
	defer cancel()

	authorities, err := pki.Open(ctx, &access.Memory{}, time.Now())
	require.NoError(t, err)
	client := func(of ...member) *clientv3.Client {
		t.Helper()
		pair, err := authorities.Etcd.Issue(etcd.ClientRequest(etcd.Root), time.Now())
		require.NoError(t, err)
		var urls []string
		for _, one := range of {
			urls = append(urls, one.ClientURL())
		}
		made, err := etcd.Client(urls, authorities.Etcd.Trusted(), pair, func(ctx context.Context, network, address string) (net.Conn, error) {
			return of[len(of)-1].shell.DialContext(ctx, network, address)
		})
		require.NoError(t, err)
		t.Cleanup(func() { made.Close() })
		return made
	}
	start := func(one member, all map[string]string, state string, id uint64) {
		t.Helper()
		pair, err := authorities.Etcd.Issue(one.CertificateRequest(), time.Now())
		require.NoError(t, err)
		peer, err := authorities.EtcdPeers.Issue(one.PeerRequest(), time.Now())
		require.NoError(t, err)
		unit := etcd.Member(one.Node, authorities.Etcd.Trusted(), pair, etcd.Peers{Stage: etcd.TrustPeers, Authority: authorities.EtcdPeers.Trusted(), Pair: peer})
		require.NoError(t, one.shell.Upload(ctx, append(unit.Install(), etcd.Join(all, state, id))))
		one.does(t, "systemctl daemon-reload; systemctl start etcd")
	}

	began := time.Now()
	first := members[0]
	start(first, map[string]string{first.Name: first.PeerURL()}, "new", 0)
	root := client(first)
	require.NoError(t, etcd.Authorize(ctx, root))
	t.Logf("%5.1f s: one member serves", time.Since(began).Seconds())
	var list []etcd.Node
	for _, one := range members {
		list = append(list, one.Node)
	}
	known, err := etcd.AddLearners(ctx, root, list[1:])
	require.NoError(t, err)
	for _, one := range members[1:] {
		start(one, known.PeerURLs(list), "existing", known.Of(one.Node).ID)
		require.NoError(t, etcd.Promote(ctx, root, one.Node))
		t.Logf("%5.1f s: %s votes", time.Since(began).Seconds(), one.Name)
	}
	known, err = etcd.Members(ctx, root)
	require.NoError(t, err)
	require.Len(t, known.Voters(list), 3)
	_, err = root.Put(ctx, "/registry/word", "swordfish")
	require.NoError(t, err)
	read := func(from *clientv3.Client) string {
		t.Helper()
		found, err := from.Get(ctx, "/registry/word")
		require.NoError(t, err)
		require.Len(t, found.Kvs, 1)
		return string(found.Kvs[0].Value)
	}
	require.Equal(t, "swordfish", read(client(members[2])))

	// The network of pods is VXLAN between the nodes.
	for i, one := range members[:2] {
		other := members[1-i]
		one.does(t, fmt.Sprintf("modprobe vxlan; ip link add overlay type vxlan id 4096 dstport 4789 local %s remote %s; ip address add 10.244.0.%d/24 dev overlay; ip link set overlay up",
			one.Address, other.Address, i+1))
	}
	for _, one := range members {
		for _, other := range members {
			one.reaches(t, other.Address)
		}
	}
	members[0].reaches(t, netip.MustParseAddr("10.244.0.2"))

	// The first one, the leader, dies as machines do.
	first.does(t, "systemctl kill --signal=KILL etcd; systemctl stop etcd")
	rest := client(members[1], members[2])
	eventually(t, "the two others take a write", func() bool {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		_, err := rest.Put(ctx, "/registry/word", "herring")
		return err == nil
	})
	first.does(t, "systemctl start etcd")
	require.Equal(t, "herring", read(client(first)))
	t.Logf("%5.1f s: a member that was away has what the others wrote", time.Since(began).Seconds())
}

// threeServers are servers of the disk, with root logged in.
func threeServers(t *testing.T, c *cloud, path string) (members []member) {
	admin, demo := c.as(t, "admin"), c.as(t, "demo")
	project := demo.project(t, c.service(t))
	node, size := admin.nodeImage(t, path), admin.flavor(t, 1024)
	own, host := newSSHKey(t), newSSHKey(t)
	userData := fmt.Sprintf("#cloud-config\nusers: [{name: root, ssh_authorized_keys: [%q]}]\nssh_keys:\n  ed25519_public: %q\n  ed25519_private: %q\n",
		own.public(), host.public(), host.private)
	name := begin(t, project, "members")
	template := plan(t, project)
	outside, err := project.ExternalNetwork(t.Context(), "")
	require.NoError(t, err)
	ids := []string{"one", "two", "three"}
	for _, id := range ids {
		template.addServer(serverPlan{ID: id, Name: "burano-test-" + id, Flavor: size, Image: node, UserData: userData, SecurityGroup: "group", FloatingIP: true, External: outside.ID})
	}
	began := time.Now()
	stack, err := project.ApplyStack(t.Context(), name, template.content(t))
	require.NoError(t, err)
	t.Logf("%5.1f s: the stack is complete", time.Since(began).Seconds())
	for _, id := range ids {
		addresses, ok := stack.Addresses(id)
		require.True(t, ok)
		shell, err := ssh.Dial(t.Context(), ssh.Config{Address: net.JoinHostPort(addresses.Floating.String(), "22"), Signer: own.signer,
			HostKeys: []gossh.PublicKey{host.signer.PublicKey()}, Patience: patience()})
		require.NoError(t, err)
		t.Cleanup(func() { shell.Close() })
		members = append(members, member{etcd.Node{Name: "burano-test-" + id, Address: addresses.Fixed}, shell})
		t.Logf("%5.1f s: root is logged in to %s", time.Since(began).Seconds(), id)
	}
	return members
}

// does runs commands on the server, which must succeed.
func (m member) does(t *testing.T, commands string) {
	t.Helper()
	said, err := m.shell.Run(t.Context(), ssh.Script{Name: strings.Fields(commands)[0], Body: "set -e\n" + commands + "\n"})
	require.NoError(t, err, "%s: %s: %s", m.Name, commands, said)
}

// reaches fails unless the other server's sshd takes a connection of this one; the image has no ping.
func (m member) reaches(t *testing.T, address netip.Addr) {
	t.Helper()
	m.does(t, fmt.Sprintf("timeout 60 bash -c '</dev/tcp/%s/22'", address))
}
