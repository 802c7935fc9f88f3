package etcd_test

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdmain"

	"github.com/burano/burano/nodes/access"
	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/pki"
)

// The test binary is etcd itself when it is called as such: the members of these tests are real processes.
func TestMain(m *testing.M) {
	if os.Getenv("BURANO_TEST_ETCD") != "" {
		etcdmain.Main(os.Args)
		return
	}
	// Members mostly wait for each other: more tests than processors fit beside each other.
	if err := flag.Set("test.parallel", "12"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// cluster runs members on loopback addresses of their own with the files that nodes would have.
type cluster struct {
	t     testing.TB
	vault *access.Memory
	pki   *pki.Cluster
	nodes []etcd.Node
	dirs  map[string]string

	peers    etcd.Stage        // of members that are started
	settings map[string]string // settings of started members, in place of the nodes' settings

	running map[string]*process // members by node
}

// places are the last bytes of clusters' addresses, so that tests can run at the same time.
var places = make(chan byte, 15)

func init() {
	for i := range cap(places) {
		places <- byte(i * 16)
	}
}

func newCluster(t testing.TB, size int) *cluster {
	secrets := &access.Memory{}
	authorities, err := pki.Open(t.Context(), secrets, time.Now())
	require.NoError(t, err)
	c := &cluster{t: t, vault: secrets, pki: authorities, peers: etcd.TrustPeers, dirs: map[string]string{}, running: map[string]*process{}}
	pid, place := os.Getpid(), <-places
	t.Cleanup(func() { places <- place }) // comes after the ends of the members
	for i := range size {
		node := etcd.Node{Name: fmt.Sprintf("node-%d", i+1), Address: netip.AddrFrom4([4]byte{127, byte(64 + pid>>8&63), byte(pid), place + byte(1+i)})}
		c.nodes = append(c.nodes, node)
		c.dirs[node.Name] = t.TempDir()
	}
	return c
}

// start runs a node's member as its unit would, with every file below the node's folder.
func (c *cluster) start(node etcd.Node, members map[string]string, state string) {
	c.t.Helper()
	dir := c.dirs[node.Name]
	pair, err := c.pki.Etcd.Issue(node.CertificateRequest(), time.Now())
	require.NoError(c.t, err)
	peer, err := c.pki.EtcdPeers.Issue(node.PeerRequest(), time.Now())
	require.NoError(c.t, err)
	unit := etcd.Member(node, c.pki.Etcd.Trusted(), pair, etcd.Peers{Stage: c.peers, Authority: c.pki.EtcdPeers.Trusted(), Pair: peer})
	env := []string{"BURANO_TEST_ETCD=1", "ETCD_HEARTBEAT_INTERVAL=100"}
	for _, file := range append(unit.Files, etcd.Join(members, state, 0)) {
		path := filepath.Join(dir, file.Path)
		require.NoError(c.t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(c.t, os.WriteFile(path, file.Content, 0o600))
		if strings.HasSuffix(path, ".env") {
			for _, line := range strings.Split(strings.TrimSpace(string(file.Content)), "\n") {
				if strings.HasPrefix(line, "#") {
					continue
				}
				name, value, _ := strings.Cut(line, "=")
				if strings.HasSuffix(name, "_FILE") || strings.HasSuffix(name, "_DIR") {
					value = filepath.Join(dir, value)
				}
				if other, there := c.settings[name]; there {
					value = other
				}
				env = append(env, name+"="+value)
			}
		}
	}
	c.running[node.Name] = c.run(node.Name, env, "etcd")
}

// runs is true if the node's member was started and not stopped since.
func (c *cluster) runs(node etcd.Node) bool { return c.running[node.Name] != nil }

// stop ends a node's member as a power failure would.
func (c *cluster) stop(node etcd.Node) {
	if process := c.running[node.Name]; process != nil {
		process.kill()
		delete(c.running, node.Name)
	}
}

// silence makes the node's peer address answer nothing at all, not even a refusal, until the test ends or speak is called. The queue of its listener is
// full, so that the kernel drops all other connections.
func (c *cluster) silence(node etcd.Node) (speak func()) {
	c.t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	require.NoError(c.t, err)
	address := &syscall.SockaddrInet4{Port: etcd.PeerPort, Addr: node.Address.As4()}
	require.NoError(c.t, syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1))
	require.NoError(c.t, syscall.Bind(socket, address))
	require.NoError(c.t, syscall.Listen(socket, 0))
	open := []int{socket}
	speak = sync.OnceFunc(func() {
		for _, one := range open {
			_ = syscall.Close(one)
		}
	})
	c.t.Cleanup(speak)
	for range 4 {
		caller, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
		require.NoError(c.t, err)
		open = append(open, caller)
		if err := syscall.Connect(caller, address); err != nil {
			require.ErrorIs(c.t, err, syscall.EINPROGRESS)
		}
	}
	_, err = net.DialTimeout("tcp4", net.JoinHostPort(node.Address.String(), fmt.Sprint(etcd.PeerPort)), 500*time.Millisecond)
	var refusal net.Error
	require.ErrorAs(c.t, err, &refusal)
	require.True(c.t, refusal.Timeout(), "the address answers nothing: %v", err)
	return speak
}

// answers demands that the cluster takes a write. A cluster without a leader ends a request after some seconds, an election on a busy machine may take
// longer, and a lost quorum does not come back.
func (c *cluster) answers(client *clientv3.Client) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	for {
		_, err := client.Put(ctx, "/registry/probe", fmt.Sprint(time.Now()))
		if err == nil {
			return
		}
		require.NoError(c.t, ctx.Err(), "the quorum is lost: %v", err)
		c.t.Logf("the cluster did not take a write: %v", err)
	}
}

// process is a program that is started again when it ends by itself, as systemd does with our units.
type process struct{ kill func() }

func (c *cluster) run(name string, env []string, args ...string) *process {
	c.t.Helper()
	program, err := os.Executable()
	require.NoError(c.t, err)
	logFile := filepath.Join(c.dirs[name], "log-"+filepath.Base(args[0]))
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(c.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			command := exec.CommandContext(ctx, program, args[1:]...) // ends it by SIGKILL
			command.Env = env
			command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			command.Stdout, command.Stderr = log, log
			fmt.Fprintln(log, "it ended:", command.Run())
			select {
			case <-ctx.Done():
			case <-time.After(500 * time.Millisecond): // RestartSec
			}
		}
	}()
	p := &process{kill: func() { cancel(); <-ended }}
	c.t.Cleanup(func() {
		p.kill()
		log.Close()
		if c.t.Failed() {
			text, _ := os.ReadFile(logFile)
			c.t.Logf("%s %v:\n%s", name, args, text[max(0, len(text)-4000):])
		}
	})
	return p
}

func (c *cluster) client(user string, endpoints ...string) *clientv3.Client {
	c.t.Helper()
	if len(endpoints) == 0 {
		endpoints = []string{c.nodes[0].ClientURL()}
	}
	pair, err := c.pki.Etcd.Issue(etcd.ClientRequest(user), time.Now())
	require.NoError(c.t, err)
	client, err := etcd.Client(endpoints, c.pki.Etcd.Trusted(), pair, (&net.Dialer{}).DialContext)
	require.NoError(c.t, err)
	c.t.Cleanup(func() { client.Close() })
	return client
}

func (c *cluster) bootstrap() *clientv3.Client {
	c.t.Helper()
	c.start(c.nodes[0], map[string]string{c.nodes[0].Name: c.nodes[0].PeerURL()}, "new")
	root := c.client(etcd.Root)
	require.EventuallyWithT(c.t, func(t *assert.CollectT) {
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Second)
		defer cancel()
		_, err := root.Get(ctx, "x")
		require.NoError(t, err)
	}, 20*time.Second, 50*time.Millisecond)
	require.NoError(c.t, etcd.Authorize(c.t.Context(), root))
	return root
}

func TestAMemberIsAddedAgainRightAfterItWasRemoved(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	root := c.bootstrap()
	for range 3 { // at least two additions are in one second
		members, err := etcd.AddLearners(t.Context(), root, c.nodes[1:])
		require.NoError(t, err)
		require.NoError(t, etcd.Remove(t.Context(), root, members.Of(c.nodes[1]).ID))
	}
}

func TestMembersJoinAsLearnersAndBecomeVotersOneAfterAnother(t *testing.T) {
	t.Parallel()
	for _, size := range []int{3, 5} {
		t.Run(fmt.Sprintf("%d members", size), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, size)
			root := c.bootstrap()
			_, err := root.Put(t.Context(), "/registry/before", "joined")
			require.NoError(t, err)
			started := time.Now()
			members, err := etcd.AddLearners(t.Context(), root, c.nodes[1:])
			require.NoError(t, err)
			require.Len(t, members, size)
			again, err := etcd.AddLearners(t.Context(), root, c.nodes[1:])
			require.NoError(t, err)
			require.Len(t, again, size, "adding again adds nothing")
			require.Equal(t, []etcd.Node{c.nodes[0]}, members.Voters(c.nodes))
			for _, node := range c.nodes[1:] {
				c.start(node, members.PeerURLs(c.nodes), "existing")
				require.NoError(t, etcd.Promote(t.Context(), root, node))
				require.NoError(t, etcd.Promote(t.Context(), root, node), "promoting again is no error")
			}
			t.Logf("%d members joined in %s", size-1, time.Since(started))
			members, err = etcd.Members(t.Context(), root)
			require.NoError(t, err)
			require.Equal(t, c.nodes, members.Voters(c.nodes))
			answer, err := c.client(etcd.APIServer, c.nodes[size-1].ClientURL()).Get(t.Context(), "/registry/before")
			require.NoError(t, err)
			require.Equal(t, "joined", string(answer.Kvs[0].Value))
		})
	}
}

func TestSettingsAreWrittenOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	root := c.bootstrap()
	for _, value := range []string{"first", "second"} {
		require.NoError(t, etcd.PutOnce(t.Context(), root, map[string]string{"/coreos.com/network/config": value}))
	}
	require.NoError(t, etcd.PutOnce(t.Context(), root, nil))
	answer, err := c.client(etcd.Flannel).Get(t.Context(), "/coreos.com/network/config")
	require.NoError(t, err)
	require.Equal(t, "first", string(answer.Kvs[0].Value))
}

func TestEachUserIsAcceptedOnItsOwnKeysAndRefusedOnAllOthers(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	root := c.bootstrap()
	require.NoError(t, etcd.Authorize(t.Context(), root), "authorizing again is no error")
	for _, key := range []string{"/registry/a", "compact_rev_key", "/calico/v1/a", "/coreos.com/network/a", "/burano/v1/a"} {
		_, err := root.Put(t.Context(), key, "1")
		require.NoError(t, err)
	}
	// The permissions table of the design: r may read, w may write.
	table := map[string]map[string]string{
		etcd.APIServer: {"/registry/a": "rw", "compact_rev_key": "rw", "compact_rev_key2": "", "/calico/v1/a": "", "/burano/v1/a": ""},
		etcd.Calico:    {"/registry/a": "", "compact_rev_key": "", "/calico/v1/a": "rw", "/calico": "", "/coreos.com/network/a": "", "/burano/v1/a": ""},
		etcd.Flannel:   {"/registry/a": "", "compact_rev_key": "", "/calico/v1/a": "", "/coreos.com/network/a": "rw", "/coreos.com/a": "", "/burano/v1/a": ""},
		etcd.Publisher: {"/registry/a": "", "compact_rev_key": "", "/calico/v1/a": "", "/burano/v1/a": "rw", "/burano/v2/a": ""},
		etcd.Gateway:   {"/registry/a": "", "compact_rev_key": "", "/calico/v1/a": "", "/burano/v1/a": "r"},
	}
	for user, keys := range table {
		client := c.client(user)
		for key, allowed := range keys {
			_, err := client.Get(t.Context(), key)
			requireAllowed(t, strings.Contains(allowed, "r"), err, "%s reads %s", user, key)
			_, err = client.Put(t.Context(), key, "2")
			requireAllowed(t, strings.Contains(allowed, "w"), err, "%s writes %s", user, key)
			_, err = client.Delete(t.Context(), key+"-none")
			if key != "compact_rev_key" {
				requireAllowed(t, strings.Contains(allowed, "w"), err, "%s deletes %s", user, key)
			}
		}
		_, err := client.Get(t.Context(), "", clientv3.WithPrefix())
		requireAllowed(t, false, err, "%s reads everything", user)
		_, err = client.MemberAddAsLearner(t.Context(), []string{"https://127.0.0.1:1"})
		require.Error(t, err, "%s adds a member", user)
		_, err = client.UserAdd(t.Context(), "mallory", "x")
		require.Error(t, err, "%s adds a user", user)
		_, err = client.Compact(t.Context(), 2)
		require.ErrorIs(t, err, rpctypes.ErrPermissionDenied, "%s compacts", user)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err := c.client("etcd-member-node-1").Get(ctx, "/registry/a")
	require.Error(t, err, "a member's certificate is no user")
	foreign, err := c.pki.Kubernetes.Issue(etcd.ClientRequest(etcd.Root), time.Now())
	require.NoError(t, err)
	outsider, err := etcd.Client([]string{c.nodes[0].ClientURL()}, c.pki.Etcd.Certificate, foreign, (&net.Dialer{}).DialContext)
	require.NoError(t, err)
	defer outsider.Close()
	_, err = outsider.Get(ctx, "/registry/a")
	require.Error(t, err, "a certificate of another authority is refused at the handshake")
}

func requireAllowed(t *testing.T, allowed bool, err error, format string, args ...any) {
	t.Helper()
	if allowed {
		require.NoError(t, err, append([]any{format}, args...)...)
		return
	}
	require.ErrorIs(t, err, rpctypes.ErrPermissionDenied, append([]any{format}, args...)...)
}

func TestTheForwarderPassesCertificatesThrough(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	root := c.bootstrap()
	_, err := root.Put(t.Context(), "/registry/a", "1")
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	command := etcd.Forwarder(c.nodes).Command
	for i, word := range command {
		if strings.HasPrefix(word, "--listen-addr=") {
			command[i] = "--listen-addr=" + address
		}
	}
	c.run(c.nodes[0].Name, []string{"BURANO_TEST_ETCD=1"}, append([]string{"forwarder"}, command[1:]...)...)
	server, gateway := c.client(etcd.APIServer, "https://"+address), c.client(etcd.Gateway, "https://"+address)
	require.EventuallyWithT(t, func(collect *assert.CollectT) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := server.Get(ctx, "/registry/a")
		require.NoError(collect, err)
	}, 10*time.Second, 50*time.Millisecond)
	_, err = gateway.Get(t.Context(), "/registry/a")
	require.ErrorIs(t, err, rpctypes.ErrPermissionDenied)
}
