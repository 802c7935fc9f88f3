package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/routers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/subnets"
	"github.com/stretchr/testify/require"
)

// outside6 is the range of IPv6 outside of the slot's local cloud; this machine has its first address.
func outside6() string { return "fd00:89:" + slot() + "::" }

// TestADualStackClusterAnswersByIPv4AndIPv6 deploys the demonstration with pods, Services and nodes of both versions of IP.
func TestADualStackClusterAnswersByIPv4AndIPv6(t *testing.T) {
	soakOnly(t, "`make soak` runs it")
	model := dualEnvironment(t)
	s := deployedWithSix(t, "dual", model)
	l, c := s.lab, s.cluster
	gateway, _, err := net.SplitHostPort(s.where)
	require.NoError(t, err)

	t.Run("nodes, pods and Services have addresses of both", func(t *testing.T) { hasBoth(t, l, c) })
	t.Run("pods reach pods, Services and the world by both", func(t *testing.T) { podsReachBoth(t, l, c) })
	t.Run("gateways are reached by both, and lead to pods of both", func(t *testing.T) { gatewaysLeadToBoth(t, l, c, gateway) })
	t.Run("a node that leaves is forgotten, and one that comes has both", func(t *testing.T) { comesAndGoesWith(t, l, c, "dual") })
	t.Run("a deployment that changes nothing restarts nothing, and one without IPv6 is refused", func(t *testing.T) {
		before := c.processes(t)
		output := l.run(t, l.as("burano-demo"), "burano", "deploy", s.file, "--follow")
		require.Contains(t, output, "Deployment finished")
		require.Equal(t, before, c.processes(t))
		other := filepath.Join(t.TempDir(), "other.yaml")
		require.NoError(t, os.WriteFile(other, []byte(strings.Replace(model, ",fd00:10:244::/64", "", 1)), 0o600))
		output, err := l.try(l.as("burano-demo"), "burano", "deploy", other, "--dry-run")
		require.Error(t, err, output)
		require.Contains(t, output, "give both a range of IPv6, or none")
	})

	s.deleted(t)
	t.Run("so does one in a network that was there before", func(t *testing.T) { dualInExistingNetwork(t, l, s.user) })
}

// withSix is a cluster in a network with IPv6, on a local cloud with IPv6 outside.
type withSix struct {
	lab        *lab
	user       *user
	cluster    *cluster
	found      map[string][]string // the cloud's content before
	name, file string              // of the environment, and of its model
	where      string              // the application answers there
}

// deployedWithSix deploys the model of an environment with the demonstration on a local cloud of its own, and waits until both replicas answer.
func deployedWithSix(t *testing.T, name, model string) withSix {
	l := startIn(t, []string{"--external-ipv6", outside6() + "/64"})
	demo := l.user(t, "burano-demo")
	s := withSix{lab: l, user: demo, found: inventory(t, demo), name: name, file: filepath.Join(t.TempDir(), name+".yaml")}
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")
	require.NoError(t, os.WriteFile(s.file, []byte(model), 0o600))
	began := time.Now()
	output := l.run(t, l.as("burano-demo"), "burano", "deploy", s.file, "--follow")
	require.Contains(t, output, "Deployment finished")
	t.Logf("deployed after %.1f s:\n%s", time.Since(began).Seconds(), output)
	l.deleteIfFailed(t, name)
	environment := environmentNamed(t, demo, name)
	s.where = endpointOf(t, environment)
	bothReplicasAnswer(t, l, s.where)
	s.cluster = l.clusterOf(t, demo, environment)
	return s
}

// deleted deletes the environment, which must leave nothing.
func (s withSix) deleted(t *testing.T) {
	output := s.lab.run(t, s.lab.as("burano-demo"), "burano", "environment", "delete", "--yes", s.name)
	require.Contains(t, output, "is deleted")
	asBefore(t, s.user, s.found)
}

// dualEnvironment is the demonstration's environment under the name dual, with two minions and ranges of both versions of IP.
func dualEnvironment(t *testing.T) string {
	return environmentWithSix(t, "dual", "10.244.0.0/16,fd00:10:244::/64", "10.96.0.0/16,fd00:10:96::/112")
}

// environmentWithSix is the demonstration's environment under another name, in a network that has IPv6, with two minions and these ranges.
func environmentWithSix(t *testing.T, name, pods, services string) string {
	t.Helper()
	text, err := os.ReadFile("../environments/demo.yaml")
	require.NoError(t, err)
	changed := string(text)
	for old, with := range map[string]string{
		"\nname: demo\n": "\nname: " + name + "\ndefaultNetworks:\n  environment:\n    ?: {type: io.murano.resources.CustomNeutronNetwork, id: network}\n" +
			"    name: " + name + "-network\n    ipv6Cidr: fd00:20:" + slot() + "::/64\n  flat: null\n",
		"name: demo-cluster\n": "name: demo-cluster\n    podRange: " + pods + "\n    serviceRange: " + services + "\n",
		"nodeCount: 1\n":       "nodeCount: 2\n",
	} {
		require.Equal(t, 1, strings.Count(changed, old), old)
		changed = strings.Replace(changed, old, with, 1)
	}
	return changed
}

// Services of both versions, and of IPv6 alone, over a pod on each minion.
const dualServices = `
apiVersion: v1
kind: Service
metadata: {name: both}
spec: {type: LoadBalancer, ipFamilyPolicy: RequireDualStack, selector: {app: placed}, ports: [{port: 8126, targetPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: six}
spec: {type: LoadBalancer, ipFamilyPolicy: SingleStack, ipFamilies: [IPv6], selector: {app: placed}, ports: [{port: 8127, targetPort: 8080}]}
---
`

var dualNodes = []string{"murano-kube-2", "murano-kube-3"}

func hasBoth(t *testing.T, l *lab, c *cluster) {
	manifests := dualServices
	for _, node := range dualNodes {
		manifests += fmt.Sprintf(onNode, node)
	}
	c.kubectl(t, manifests, "apply", "-f", "-")
	c.kubectl(t, "", "wait", "--for=condition=Ready", "pod", "-l", "app=placed", "--timeout=60s")
	require.Regexp(t, `^10\.96\.\S+ fd00:10:96::\S+$`, c.kubectl(t, "", "get", "service", "both", "-o", "jsonpath={.spec.clusterIPs[*]}"))
	for _, node := range dualNodes {
		require.Regexp(t, `^10\.244\.\S+ fd00:10:244:\S+$`, c.kubectl(t, "", "get", "pod", "on-"+node, "-o", "jsonpath={.status.podIPs[*].ip}"))
		require.Regexp(t, `^10\.20\.\S+ fd00:20:\S+$`, c.kubectl(t, "", "get", "node", node, "-o", `jsonpath={.status.addresses[?(@.type=="InternalIP")].address}`))
	}
	require.Equal(t, "10.96.0.1", c.kubectl(t, "", "get", "service", "kubernetes", "-o", "jsonpath={.spec.clusterIP}"), "the API server is asked by IPv4")
}

func podsReachBoth(t *testing.T, l *lab, c *cluster) {
	world := outsideBySix(t)
	services := strings.Fields(c.kubectl(t, "", "get", "service", "both", "-o", "jsonpath={.spec.clusterIPs[*]}"))
	for i, node := range dualNodes {
		other := "on-" + dualNodes[(i+1)%2]
		ask := func(url string) (string, error) {
			return c.on(node, "/bin/bash", "-c", "nsenter --net --target $(pidof -s demo) curl --globoff --silent --show-error --max-time 3 "+url)
		}
		for _, address := range strings.Fields(c.kubectl(t, "", "get", "pod", other, "-o", "jsonpath={.status.podIPs[*].ip}")) {
			l.eventually(t, 20*time.Second, "the pod of the other node answers at "+address, func() error {
				if out, err := ask("http://" + net.JoinHostPort(address, "8080") + "/"); err != nil || !strings.Contains(out, other) {
					return fmt.Errorf("%q: %v", out, err)
				}
				return nil
			})
			out, err := c.on("murano-gateway-1", "curl", "--globoff", "--silent", "--show-error", "--max-time", "3", "http://"+net.JoinHostPort(address, "8080")+"/")
			require.NoError(t, err, out)
		}
		for _, address := range services {
			replicas := map[string]bool{}
			l.eventually(t, 20*time.Second, "both pods answer at the Service's address "+address, func() error {
				out, err := ask("http://" + net.JoinHostPort(address, "8126") + "/")
				if err != nil {
					return fmt.Errorf("%s: %w", out, err)
				}
				if replicas[out] = true; len(replicas) < 2 {
					return errors.New("one has answered")
				}
				return nil
			})
		}
		out, err := ask("http://" + world + "/")
		require.NoError(t, err, out)
		require.Contains(t, out, "seen as [fd00:20:", "who leaves the cluster is seen as the node")
	}
}

// outsideBySix is the address of a server outside of the cloud that answers by IPv6 with the address of its client.
func outsideBySix(t *testing.T) string {
	world := &httptest.Server{Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "seen as "+r.RemoteAddr) })}}
	listener, err := net.Listen("tcp6", "["+outside6()+"1]:0")
	require.NoError(t, err)
	world.Listener = listener
	world.Start()
	t.Cleanup(world.Close)
	return listener.Addr().String()
}

func gatewaysLeadToBoth(t *testing.T, l *lab, c *cluster, gateway string) {
	out, err := c.on("murano-gateway-1", "/bin/bash", "-c", "ip -6 -o address show dev eth0 scope global | grep -o 'fd00:20:[^/]*'")
	require.NoError(t, err, out)
	six := strings.TrimSpace(out)
	for _, place := range []string{gateway, six} {
		for _, port := range []string{"8126", "8127", "8080"} {
			at := net.JoinHostPort(place, port)
			if port == "8080" { // of the application
				at = net.JoinHostPort(place, applicationPort(t, c))
			}
			l.eventually(t, 20*time.Second, "the gateway answers at "+at, func() error {
				_, err := get("http://" + at + "/")
				return err
			})
		}
	}
	for _, port := range []string{"22", "179", "2379", "10256"} {
		connection, err := net.DialTimeout("tcp6", net.JoinHostPort(six, port), time.Second)
		if err == nil {
			_ = connection.Close()
		}
		var failure net.Error
		require.Truef(t, errors.As(err, &failure) && failure.Timeout(), "port %s of the gateway: %v", port, err)
	}
	c.kubectl(t, "", "delete", "service/both", "service/six", "pod/on-"+dualNodes[0], "pod/on-"+dualNodes[1], "--now")
}

// blocksOf are the blocks of addresses of IPv6 that a node holds.
func blocksOf(t *testing.T, c *cluster, node string) []string {
	out, err := c.on("murano-gateway-1", etcdctl("calico", "get", "--prefix", "/calico/ipam/v2/host/"+node+"/ipv6/block/", "--keys-only")...)
	require.NoError(t, err, out)
	return strings.Fields(out)
}

func comesAndGoesWith(t *testing.T, l *lab, c *cluster, environment string) {
	const node = "murano-kube-3"
	require.NotEmpty(t, blocksOf(t, c, node))
	l.run(t, l.as("burano-demo"), "burano", "action", "call", environment, "demo-cluster", "scaleNodesDown", "--follow")
	require.Empty(t, blocksOf(t, c, node))
	l.run(t, l.as("burano-demo"), "burano", "action", "call", environment, "demo-cluster", "scaleNodesUp", "--follow")
	c.kubectl(t, fmt.Sprintf(onNode, node), "apply", "-f", "-")
	c.kubectl(t, "", "wait", "--for=condition=Ready", "pod/on-"+node, "--timeout=60s")
	for _, address := range strings.Fields(c.kubectl(t, "", "get", "pod", "on-"+node, "-o", "jsonpath={.status.podIPs[*].ip}")) {
		l.eventually(t, 20*time.Second, "the gateway reaches the pod of the new node at "+address, func() error {
			out, err := c.on("murano-gateway-1", "curl", "--globoff", "--silent", "--show-error", "--max-time", "3", "http://"+net.JoinHostPort(address, "8080")+"/")
			if err != nil {
				return fmt.Errorf("%s: %w", out, err)
			}
			return nil
		})
	}
	c.kubectl(t, "", "delete", "pod/on-"+node, "--now")
}

// dualInExistingNetwork deploys a cluster in an existing network, with addresses of IPv6 that servers make themselves.
func dualInExistingNetwork(t *testing.T, l *lab, demo *user) {
	api := demo.neutron(t)
	made, err := networks.Create(t.Context(), api, networks.CreateOpts{Name: "dual-there"}).Extract()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, networks.Delete(context.Background(), api, made.ID).ExtractErr()) })
	router := demo.router(t)
	for _, opts := range []subnets.CreateOpts{
		{Name: "dual-four", CIDR: "10.77.0.0/24", IPVersion: gophercloud.IPv4},
		{Name: "dual-six", CIDR: "fd00:77::/64", IPVersion: gophercloud.IPv6, IPv6AddressMode: "slaac", IPv6RAMode: "slaac"},
	} {
		opts.NetworkID = made.ID
		subnet, err := subnets.Create(t.Context(), api, opts).Extract()
		require.NoError(t, err)
		_, err = routers.AddInterface(t.Context(), api, router, routers.AddInterfaceOpts{SubnetID: subnet.ID}).Extract()
		require.NoError(t, err)
		t.Cleanup(func() {
			_, err := routers.RemoveInterface(context.Background(), api, router, routers.RemoveInterfaceOpts{SubnetID: subnet.ID}).Extract()
			require.NoError(t, err)
		})
	}
	model := dualEnvironment(t)
	for old, with := range map[string]string{
		"CustomNeutronNetwork": "ExistingNeutronNetwork", "name: dual-network\n": "internalNetworkName: dual-there\n    internalSubnetworkName: dual-four\n",
		"ipv6Cidr: fd00:20:" + slot() + "::/64": "ipv6SubnetworkName: dual-six", "\nname: dual\n": "\nname: dual-there\n", "nodeCount: 2\n": "nodeCount: 1\n",
	} {
		require.Equal(t, 1, strings.Count(model, old), old)
		model = strings.Replace(model, old, with, 1)
	}
	file := filepath.Join(t.TempDir(), "there.yaml")
	require.NoError(t, os.WriteFile(file, []byte(model), 0o600))
	l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	l.deleteIfFailed(t, "dual-there")
	environment := environmentNamed(t, demo, "dual-there")
	bothReplicasAnswer(t, l, endpointOf(t, environment))
	c := l.clusterOf(t, demo, environment)
	out, err := c.on("murano-gateway-1", "/bin/bash", "-c", "ip -6 -o address show dev eth0 scope global | grep -o 'fd00:77:[^/]*'")
	require.NoError(t, err, out)
	_, err = get("http://" + net.JoinHostPort(strings.TrimSpace(out), applicationPort(t, c)) + "/")
	require.NoError(t, err)
	pods := c.kubectl(t, "", "get", "pods", "-o", "jsonpath={.items[*].status.podIPs[*].ip}")
	require.Equal(t, 2, strings.Count(pods, "fd00:10:244:"), pods)
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "dual-there")
}

func applicationPort(t *testing.T, c *cluster) string {
	return c.kubectl(t, "", "get", "service", "demo-hello", "-o", "jsonpath={.spec.ports[0].port}")
}
