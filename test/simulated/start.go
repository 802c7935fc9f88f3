// Package simulated answers as a cloud and as the nodes of its clusters, down to SSH, etcd and the API servers: no unit runs, and nothing takes time by itself.
package simulated

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"

	"github.com/burano/burano/gateway/etcdtest"
	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/kube"
)

// repository is the module's folder, above the test's.
func repository(t testing.TB) string {
	folder, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder
		}
		require.NotEqual(t, "/", folder, "the test runs outside of the repository")
		folder = filepath.Dir(folder)
	}
}

// TakeNetwork makes this machine answer at the addresses of all nodes. It refuses to do so in a shared network.
func TakeNetwork(t testing.TB) {
	t.Helper()
	links, err := netlink.LinkList()
	require.NoError(t, err)
	require.Len(t, links, 1, "it wants a network of its own (unshare --net)")
	require.NoError(t, netlink.LinkSetUp(links[0]))
	nodes := &net.IPNet{IP: floatingNetwork.Addr().AsSlice(), Mask: net.CIDRMask(floatingNetwork.Bits(), 32)}
	require.NoError(t, netlink.RouteAdd(&netlink.Route{LinkIndex: links[0].Attrs().Index, Dst: nodes, Type: unix.RTN_LOCAL, Table: unix.RT_TABLE_LOCAL, Scope: unix.RT_SCOPE_HOST}))
}

// Start starts everything that answers the server. The node image holds the program.
func Start(t testing.TB, program string) (w *World, endpoint string) {
	t.Helper()
	root := repository(t)
	w, err := newWorld(root)
	require.NoError(t, err)
	content, err := os.ReadFile(program)
	require.NoError(t, err, "BURANO_PROGRAM is the server's program")
	w.gatewayAPI = gatewayAPI(t, root)
	w.image = map[string]string{remoteProgram: digest(content), kube.GatewayAPIFile: digest(w.gatewayAPI)}
	w.snapshot = snapshot(t)
	w.kinds, err = discover()
	require.NoError(t, err)
	sshd, err := net.Listen("tcp", ":22")
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	endpoint = "http://" + listener.Addr().String()
	handler, err := w.newCloud(t.TempDir(), endpoint)
	require.NoError(t, err)
	for _, serve := range []func() error{func() error { return w.serveSSH(sshd) }, w.serveEtcd, w.serveAPI, func() error { return http.Serve(listener, handler) }} {
		go func() {
			if err := serve(); err != nil && t.Context().Err() == nil {
				t.Errorf("what is simulated ended: %v", err)
			}
		}()
	}
	return w, endpoint
}

// gatewayAPI is the file of the node image.
func gatewayAPI(t testing.TB, root string) []byte {
	t.Helper()
	folder, err := exec.Command("go", "list", "-C", filepath.Join(root, "images/modules/gatewayapi"), "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	require.NoError(t, err)
	var whole bytes.Buffer
	for _, kind := range []string{"backendtlspolicies", "gatewayclasses", "gateways", "grpcroutes", "httproutes", "listenersets", "referencegrants", "tcproutes", "tlsroutes"} {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "config/crd/standard", "gateway.networking.k8s.io_"+kind+".yaml"))
		require.NoError(t, err)
		fmt.Fprintf(&whole, "---\n%s", text)
	}
	return whole.Bytes()
}

// snapshot is a snapshot of an etcd with the content of a new cluster.
func snapshot(t testing.TB) []byte {
	t.Helper()
	real := etcdtest.New(t)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{real.URL}, DialTimeout: 10 * time.Second})
	require.NoError(t, err)
	defer client.Close()
	for i := range 500 {
		_, err := client.Put(t.Context(), fmt.Sprintf("/registry/things/%d", i), strings.Repeat(strconv.Itoa(i)+"something", 200))
		require.NoError(t, err)
	}
	var to bytes.Buffer
	require.NoError(t, etcd.Snapshot(t.Context(), client, &to))
	return to.Bytes()
}

// Cluster is a cluster in a user's model.
func Cluster(number, minions int) map[string]any {
	object := func(class, id string, properties map[string]any) map[string]any {
		made := map[string]any{"?": map[string]any{"id": fmt.Sprintf("%08d-%s", number, id), "type": class}}
		for name, value := range properties {
			made[name] = value
		}
		return made
	}
	node := func(role, name string) map[string]any {
		instance := object("io.murano.resources.LinuxMuranoInstance", "i-"+name, map[string]any{"name": name, "flavor": "m1.medium", "image": ImageName, "assignFloatingIp": true})
		return object("com.mirantis.docker.kubernetes.Kubernetes"+role+"Node", "n-"+name, map[string]any{"instance": instance})
	}
	var list []any
	for i := range minions {
		list = append(list, node("Minion", fmt.Sprintf("murano-kube-%d", i+2)))
	}
	return object("com.mirantis.docker.kubernetes.KubernetesCluster", "cluster", map[string]any{"name": "many", "masterNode": node("Master", "murano-kube-1"),
		"minionNodes": list, "nodeCount": minions, "gatewayNodes": []any{node("Gateway", "murano-gateway-1")}, "gatewayCount": 1})
}
