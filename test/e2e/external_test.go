package e2e

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/security/groups"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/security/rules"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// TestAMachineBesideTheCloudIsANode takes a machine that Burano did not make, in a network of its own, into a cluster. Pods on it answer through the gateway, and it
// is taken out again. This happens three times: by the actions with Burano's key, by a token, and by the end of the environment with a key of its owner's.
func TestAMachineBesideTheCloudIsANode(t *testing.T) { machineBesideTheCloud(t, "") }

// TestAMachineBesideTheCloudIsANodeWhereCalicoIsInKubernetes is the same in a cluster whose Calico has its store in Kubernetes, and encapsulates only traffic to and from the machine's
// network.
func TestAMachineBesideTheCloudIsANodeWhereCalicoIsInKubernetes(t *testing.T) {
	soakOnly(t, "`make soak` runs this: it is an option that clusters have by asking for it")
	machineBesideTheCloud(t, "    calicoDatastore: kubernetes\n    podEncapsulation: crossSubnet\n")
}

// machineBesideTheCloud has a cluster with further lines in its model; without them its network of pods is the usual
// one.
func machineBesideTheCloud(t *testing.T, lines string) {
	l := start(t)
	demo, admin := l.user(t, "burano-demo"), l.user(t, "burano-admin")
	router := demo.router(t)
	lan := netip.MustParsePrefix("10.79.0.0/24")
	l.stop(t)
	_, port, err := net.SplitHostPort(l.address)
	require.NoError(t, err)
	l.launch(t, "--machine-networks", lan.String(), "--listen", net.JoinHostPort("0.0.0.0", port)) // where machines reach it, too
	l.healthy(t)
	admin.network(t, router, "machines", lan)
	found := inventory(t, demo)
	machine := admin.machine(t, "bare", "machines")
	text, err := os.ReadFile("testdata/scaling.yaml")
	require.NoError(t, err)
	alone, _, _ := strings.Cut(string(text), `  - "?": {type: com.mirantis.docker.kubernetes.KubernetesPod`)
	file := filepath.Join(t.TempDir(), "scaling.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.NewReplacer("name: scaling-cluster\n", "name: scaling-cluster\n"+lines, "applications:\n",
		"defaultNetworks:\n  flat: null\n  environment: {\"?\": {type: io.murano.resources.NeutronNetwork}, name: own, externalRouterId: "+router+"}\n\napplications:\n").Replace(alone)), 0o600))
	burano := func(args ...string) string {
		t.Helper()
		began := time.Now()
		output := l.run(t, l.as("burano-demo"), "burano", args...)
		t.Logf("%s: %.1f s\n%s", strings.Join(args[:min(len(args), 4)], " "), time.Since(began).Seconds(), output)
		return output
	}
	burano("deploy", file, "--follow")
	l.deleteIfFailed(t, "scaling")
	environment := environmentNamed(t, demo, "scaling")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string), registered: lines != ""}
	s.cluster.servers["bare"] = machine.id
	onMachine := func(command string) string {
		t.Helper()
		output, err := s.cluster.on("bare", "/bin/bash", "-c", command)
		require.NoError(t, err, output)
		return strings.TrimSpace(output)
	}
	address := netip.MustParseAddr(machine.address)

	t.Run("a machine that does not let Burano in is refused, with the key that it needs", func(t *testing.T) {
		output, err := l.try(l.as("burano-demo"), "burano", "node", "add", "scaling", "lab-1", "--address", address.String(), "--follow")
		require.Error(t, err)
		key := strings.TrimSpace(l.run(t, l.as("burano-demo"), "burano", "cluster", "ssh-key", "scaling"))
		require.Contains(t, output, "authorized_keys there, and do the same again: "+key)
		require.NotContains(t, s.cluster.kubectl(t, "", "get", "nodes"), "lab-1")
	})

	t.Run("it joins with Burano's key, and pods on it answer through the gateway", func(t *testing.T) {
		key := strings.TrimSpace(l.run(t, l.as("burano-demo"), "burano", "cluster", "ssh-key", "scaling"))
		onMachine("mkdir -p -m 700 /root/.ssh && echo '" + key + "' >>/root/.ssh/authorized_keys")
		output := burano("node", "add", "scaling", "lab-1", "--address", address.String(), "--follow")
		require.Contains(t, output, "was shown at the first connection and is trusted from now on")
		require.Equal(t, "true", s.cluster.kubectl(t, "", "get", "node", "lab-1", "-o", `jsonpath={.metadata.labels.burano\.io/external}`))
		members, err := s.cluster.on("murano-kube-1", etcdctl("apiserver-etcd", "member", "list")...)
		require.NoError(t, err, members)
		require.NotContains(t, members, "lab-1")
		machinesPodsAnswer(t, s)
		if s.registered {
			wrappedToTheMachineOnly(t, s)
			require.NotEmpty(t, s.affine(t, "lab-1"))
		}
	})

	t.Run("it is looked after, labelled and locked like others, and replaced by hand only", func(t *testing.T) {
		burano("node", "label", "scaling", "lab-1", "room=lab", "--follow")
		require.Equal(t, "lab", s.cluster.kubectl(t, "", "get", "node", "lab-1", "-o", "jsonpath={.metadata.labels.room}"))
		burano("node", "lock", "scaling", "lab-1", "--follow")
		s.emptied(t, "lab-1")
		burano("node", "unlock", "scaling", "lab-1", "--follow")
		result, _ := s.call(t, "scaling-cluster", "replaceNode", map[string]any{"node": "lab-1"})
		require.Contains(t, fmt.Sprint(result["result"]), "set the machine or another one up, and add it again")
		status := demo.must(t, "GET", "/burano/v1/environments/"+s.environment+"/clusters/"+s.clusterID(t)+"/nodes/lab-1", nil)
		require.Equal(t, true, status["external"])
		require.Equal(t, true, status["ready"])
		require.Equal(t, "", status["server"])
	})

	isNone := func() {
		t.Helper()
		for _, unit := range []string{"kubelet", "kube-proxy", "containerd", "calico-node", "etcd-forwarder", "api-forwarder"} {
			require.Equal(t, "inactive", onMachine("systemctl is-active "+unit+" || true"), unit)
		}
		require.Equal(t, "", onMachine("ls -d /etc/burano /etc/kubernetes /var/lib/kubelet/* /var/lib/burano /etc/cni/net.d/10-calico.conflist /etc/systemd/system/kubelet.service 2>/dev/null || true"))
		require.Equal(t, "0", onMachine("{ iptables-save; ip -o link; ip route; } 2>/dev/null | grep -cE 'KUBE-|cali|vxlan' || true"))
		require.NotContains(t, onMachine("cat /etc/hosts"), "burano")
		server, err := servers.Get(t.Context(), admin.nova(t), machine.id).Extract()
		require.NoError(t, err)
		require.Equal(t, "ACTIVE", server.Status)
	}
	t.Run("it leaves without a trace, and is there", func(t *testing.T) {
		burano("node", "remove", "scaling", "lab-1", "--follow")
		require.NotContains(t, s.cluster.kubectl(t, "", "get", "nodes"), "lab-1")
		isNone()
		if s.registered {
			s.freed(t, "lab-1")
		}
	})

	t.Run("it joins by a token of one use, and has pods", func(t *testing.T) {
		onMachine("echo '# others' >/root/.ssh/authorized_keys; chmod go-w /root /root/.ssh")
		program, err := os.Open(l.program("burano"))
		require.NoError(t, err)
		defer program.Close()
		copied := s.cluster.command("bare", "/bin/bash", "-c", "cat >/usr/local/bin/burano && chmod 755 /usr/local/bin/burano")
		copied.Stdin = program
		output, err := copied.CombinedOutput()
		require.NoError(t, err, string(output))
		token := func(life string) string {
			t.Helper()
			made := l.run(t, l.as("burano-demo"), "burano", "node", "token", "create", "scaling", "--ttl", life, "--server", "http://"+net.JoinHostPort(outside("1"), port))
			command, _, _ := strings.Cut(made, "\n")
			return command + " --name lab-1"
		}
		const short = 10 * time.Second
		late, command := token(short.String()), token("1h")
		expires := time.Now().Add(short)

		onMachine("mv /opt/burano/bin/kubelet /opt/kubelet")
		refused, err := s.cluster.on("bare", "/bin/bash", "-c", command)
		require.Error(t, err)
		require.Contains(t, refused, "nothing was changed on it")
		require.Contains(t, refused, "it lacks what a node image has: /opt/burano/bin/kubelet")
		require.Equal(t, "# others", onMachine("cat /root/.ssh/authorized_keys; mv /opt/kubelet /opt/burano/bin/kubelet"))

		began := time.Now()
		said := onMachine(command)
		t.Logf("%.1f s\n%s", time.Since(began).Seconds(), said)
		require.Contains(t, said, "lab-1 is a node of cluster")
		require.NotContains(t, said, "murano-kube", "what is about others")
		require.Contains(t, s.cluster.kubectl(t, "", "get", "node", "lab-1", "--no-headers"), " Ready ")
		require.Equal(t, "1", onMachine("grep -c 'burano: logs in to node lab-1 of cluster' /root/.ssh/authorized_keys"))
		machinesPodsAnswer(t, s)

		l.eventually(t, short, "the short token's life is over", func() error {
			if left := time.Until(expires); left > 0 {
				return fmt.Errorf("%s of it is left", left)
			}
			return nil
		})
		for once, says := range map[string]string{command: "this machine joined by it at", late: "The join token expired at"} {
			refused, err := s.cluster.on("bare", "/bin/bash", "-c", once)
			require.Error(t, err)
			require.Contains(t, refused, says)
		}
		again := onMachine(token("1h"))
		require.Contains(t, again, "lab-1 is a node of cluster")
		require.Equal(t, "lab-1", s.cluster.kubectl(t, "", "get", "nodes", "-l", "burano.io/external=true", "-o", "jsonpath={.items..metadata.name}"))
		burano("node", "remove", "scaling", "lab-1", "--follow")
		isNone()
	})

	t.Run("it joins with a key of its owner's, by sudo, and the end of the environment leaves it", func(t *testing.T) {
		onMachine("echo >/root/.ssh/authorized_keys")
		key := filepath.Join(t.TempDir(), "key")
		require.NoError(t, os.WriteFile(key, machine.key, 0o600))
		host := onMachine("cat /etc/ssh/ssh_host_ed25519_key.pub")
		burano("node", "add", "scaling", "lab-1", "--address", address.String(), "--user", "ops", "--private-key", key, "--host-key", host, "--follow")
		require.Contains(t, s.cluster.kubectl(t, "", "get", "node", "lab-1"), "Ready")
		burano("environment", "delete", "--yes", "scaling")
		isNone()
	})
	asBefore(t, demo, found)
}

// machinesPodsAnswer has a Service whose only pods are on machines answer on a port of the gateway.
func machinesPodsAnswer(t *testing.T, s *scaling) {
	t.Helper()
	manifest := `
apiVersion: apps/v1
kind: Deployment
metadata: {name: bare}
spec:
  selector: {matchLabels: {app: bare}}
  template:
    metadata: {labels: {app: bare}}
    spec:
      nodeSelector: {burano.io/external: "true"}
      containers: [{name: demo, image: "registry.local/demo:1", imagePullPolicy: IfNotPresent}]
---
apiVersion: v1
kind: Service
metadata: {name: bare}
spec:
  selector: {app: bare}
  ports: [{port: 8123, targetPort: 8080}]
`
	s.cluster.kubectl(t, manifest, "apply", "-f", "-")
	gateway := s.floating(t, "murano-gateway-1")["murano-gateway-1"]
	s.lab.eventually(t, time.Minute, "pods on the machine answer through the gateway", func() error {
		_, err := get("http://" + net.JoinHostPort(gateway, "8123") + "/")
		return err
	})
	require.Equal(t, "lab-1", s.cluster.kubectl(t, "", "get", "pods", "-l", "app=bare", "-o", "jsonpath={.items[*].spec.nodeName}"))
	s.cluster.kubectl(t, manifest, "delete", "--timeout=60s", "-f", "-")
}

// wrappedToTheMachineOnly demands that packets to pods are encapsulated where a router is between the nodes, and only there, and arrive in
// both cases.
func wrappedToTheMachineOnly(t *testing.T, s *scaling) {
	t.Helper()
	names := []string{"lab-1", "murano-kube-2"}
	for _, name := range names {
		s.cluster.kubectl(t, fmt.Sprintf(onNode, name), "apply", "-f", "-")
	}
	s.cluster.kubectl(t, "", "wait", "--for=condition=Ready", "pod", "-l", "app=placed", "--timeout=60s")
	for _, name := range names {
		address := s.cluster.kubectl(t, "", "get", "pod", "on-"+name, "-o", "jsonpath={.status.podIP}")
		for _, from := range []string{"bare", "murano-kube-1", "murano-kube-2", "murano-gateway-1"} {
			own := from == name || from == "bare" && name == "lab-1"
			wrapped := (from == "bare") != (name == "lab-1")
			s.lab.eventually(t, 30*time.Second, from+" reaches the pod of "+name, func() error {
				way, err := s.cluster.on(from, "ip", "-4", "route", "get", address)
				if err != nil || !own && strings.Contains(way, " dev vxlan.calico ") != wrapped {
					return fmt.Errorf("it is to be wrapped: %t, and the way is %s: %w", wrapped, way, err)
				}
				if said, err := s.cluster.on(from, "curl", "--silent", "--show-error", "--max-time", "3", "http://"+address+":8080/"); err != nil {
					return fmt.Errorf("%s: %w", said, err)
				}
				return nil
			})
		}
		s.cluster.kubectl(t, "", "delete", "pod", "on-"+name, "--now")
	}
}

// bare is an owner's view of a machine.
type bare struct {
	id, address string
	key         []byte // of its user ops, which becomes root by sudo
}

// machine starts a machine with the content of the node image, which only its owner's key opens, until the test ends.
func (u *user) machine(t *testing.T, name, network string) bare {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	require.NoError(t, err)
	authorized, err := ssh.NewPublicKey(public)
	require.NoError(t, err)
	ctx := t.Context()

	open, err := groups.Create(ctx, u.neutron(t), groups.CreateOpts{Name: name}).Extract()
	require.NoError(t, err)
	neutron, nova := u.neutron(t), u.nova(t)
	_, err = rules.Create(ctx, neutron, rules.CreateOpts{Direction: rules.DirIngress, EtherType: rules.EtherType4, SecGroupID: open.ID, RemoteIPPrefix: "0.0.0.0/0"}).Extract()
	require.NoError(t, err)
	pages, err := networks.List(neutron, networks.ListOpts{Name: network}).AllPages(ctx)
	require.NoError(t, err)
	nets, err := networks.ExtractNetworks(pages)
	require.NoError(t, err)
	require.Len(t, nets, 1)
	data := "#cloud-config\nusers:\n- {name: ops, shell: /bin/bash, sudo: 'ALL=(ALL) NOPASSWD:ALL', ssh_authorized_keys: ['" + strings.TrimSpace(string(ssh.MarshalAuthorizedKey(authorized))) + "']}\nruncmd: [ssh-keygen -A, systemctl reset-failed ssh, systemctl restart ssh]\n"
	made, err := servers.Create(ctx, nova, servers.CreateOpts{Name: name, FlavorRef: flavorNamed(t, nova, "m1.medium"), ImageRef: u.imageNamed(t, "burano-node"),
		Networks: []servers.Network{{UUID: nets[0].ID}}, SecurityGroups: []string{open.ID}, UserData: []byte(data)}, nil).Extract()
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, servers.Delete(context.Background(), nova, made.ID).ExtractErr())
		u.lab.eventually(t, time.Minute, "the machine is gone", func() error {
			if _, err := servers.Get(context.Background(), nova, made.ID).Extract(); err == nil {
				return fmt.Errorf("it is there")
			}
			return nil
		})
		require.NoError(t, groups.Delete(context.Background(), neutron, open.ID).ExtractErr())
	})
	ready := bare{id: made.ID, key: pem.EncodeToMemory(block)}
	u.lab.eventually(t, 2*time.Minute, "the machine runs", func() error {
		server, err := servers.Get(ctx, nova, made.ID).Extract()
		if err != nil || server.Status != "ACTIVE" {
			return fmt.Errorf("it is %v, %w", server, err)
		}
		for _, list := range server.Addresses {
			text, err := json.Marshal(list)
			require.NoError(t, err)
			var addresses []struct{ Addr string }
			require.NoError(t, json.Unmarshal(text, &addresses))
			ready.address = addresses[0].Addr
		}
		return nil
	})
	return ready
}

func flavorNamed(t *testing.T, nova *gophercloud.ServiceClient, name string) string {
	t.Helper()
	pages, err := flavors.ListDetail(nova, nil).AllPages(t.Context())
	require.NoError(t, err)
	all, err := flavors.ExtractFlavors(pages)
	require.NoError(t, err)
	for _, one := range all {
		if one.Name == name {
			return one.ID
		}
	}
	require.Failf(t, "no such flavor", "%s", name)
	return ""
}

func (u *user) imageNamed(t *testing.T, name string) string {
	t.Helper()
	pages, err := images.List(u.service(t, openstack.NewImageV2), images.ListOpts{Name: name}).AllPages(t.Context())
	require.NoError(t, err)
	all, err := images.ExtractImages(pages)
	require.NoError(t, err)
	require.Len(t, all, 1)
	return all[0].ID
}
