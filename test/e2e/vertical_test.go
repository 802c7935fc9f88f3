package e2e

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/volumes"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/trusts"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/floatingips"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/routers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/security/groups"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stacks"
	"github.com/stretchr/testify/require"
)

// TestAnApplicationAnswersThroughAGateway does everything that a user does, from an empty cloud to an application of an uploaded
// package that answers through a gateway of a Kubernetes cluster, and back to an empty cloud.
func TestAnApplicationAnswersThroughAGateway(t *testing.T) {
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)

	t.Run("wrong use", func(t *testing.T) { wrongUse(t, l, found) })

	output := l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")
	require.Contains(t, output, "io.burano.demo.Hello")
	output = l.run(t, l.as("burano-demo"), "burano", "package", "list")
	for _, name := range []string{"io.burano.demo.Hello", "com.mirantis.docker.kubernetes.KubernetesCluster", "io.murano"} {
		require.Contains(t, output, name)
	}

	began := time.Now()
	output = l.run(t, l.as("burano-demo"), "burano", "deploy", "test/environments/demo.yaml", "--follow")
	require.Contains(t, output, "Deployment finished")
	require.NotContains(t, output, "container images imported", "they are in the store of the node image")
	t.Logf("what the user saw:\n%s", output)

	environment := environmentNamed(t, demo, "demo")
	l.deleteIfFailed(t, "demo")
	require.Equal(t, "ready", environment["status"])
	where := endpointOf(t, environment)
	bothReplicasAnswer(t, l, where)
	l.printTimeline(t, demo, environment["id"].(string), began, time.Now())

	cluster := l.clusterOf(t, demo, environment)
	measured := measures(t, l, cluster)
	t.Run("the nodes are ready and named like their servers", func(t *testing.T) { nodesAreReady(t, cluster, demo) })
	t.Run("a Service made with kubectl alone is reachable through the gateway", func(t *testing.T) { serviceByKubectl(t, l, cluster, where) })
	t.Run("a UDP Service made with kubectl alone is reachable through the gateway", func(t *testing.T) { udpByKubectl(t, l, cluster, where) })
	t.Run("an Ingress with a host and a certificate answers through the gateway", func(t *testing.T) { ingressByKubectl(t, l, cluster, where) })
	t.Run("a Gateway and its routes answer, by header and by TLS", func(t *testing.T) { gatewayByKubectl(t, l, cluster, where) })
	t.Run("a NetworkPolicy closes pods, for gateways too", func(t *testing.T) { networkPolicies(t, l, cluster, where) })
	t.Run("the API server reaches a webhook and an extension API server in a pod", func(t *testing.T) { extensions(t, l, cluster) })
	t.Run("container images that came with a node are pinned", func(t *testing.T) { imagesArePinned(t, cluster) })
	t.Run("a server reaches the cloud's metadata, a pod on it does not", func(t *testing.T) { metadataIsForServers(t, cluster) })
	t.Run("each etcd certificate opens its own prefix and no other", func(t *testing.T) { etcdPermissions(t, cluster, etcdCalico) })
	t.Run("each certificate opens its own ports and no other", func(t *testing.T) { certificatesAndPorts(t, cluster) })
	t.Run("Secrets are not readable in etcd", func(t *testing.T) { secretsAreEncrypted(t, cluster) })
	t.Run("deploying the same again restarts nothing", func(t *testing.T) { deployAgain(t, l, cluster, where) })
	t.Run("another name of a node's server in the file destroys nothing", func(t *testing.T) { anotherName(t, l, cluster) })
	t.Run("it measures what nodes and pods use, for HorizontalPodAutoscalers too", measured)
	t.Run("another project sees nothing of it", func(t *testing.T) { foreignProject(t, l, environment["id"].(string)) })
	t.Run("the cluster tells how it is", func(t *testing.T) { clusterTells(t, l, cluster, demo, environment, where) })

	t.Run("who may read sees what runs in it, and its logs", func(t *testing.T) { whatRuns(t, l) })
	t.Run("who has the role reader signs in by Keystone, lists, and writes nothing", func(t *testing.T) { readersRead(t, l, cluster) })

	output = l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "demo")
	require.Contains(t, output, "is deleted")
	asBefore(t, demo, found)
	l.noGuests(t, l.program("burano"))
	if l.ownCloud {
		l.run(t, nil, "localcloud", "down", "--state", l.cloud)
		l.eventually(t, 10*time.Second, "the machine is as it was before the local cloud", func() error {
			if left := l.before.differences(look(t)); len(left) > 0 {
				return fmt.Errorf("%s", strings.Join(left, "\n"))
			}
			return nil
		})
		l.noGuests(t, l.program(""))
	}
}

// whatRuns lists pods and reads a log by the command line.
func whatRuns(t *testing.T, l *lab) {
	list := l.run(t, l.as("burano-demo"), "burano", "cluster", "pods", "demo")
	require.Regexp(t, `(?m)^Deployment +kube-system +coredns +1/1$`, list)
	dns := regexp.MustCompile(`(?m)^coredns-\S+`).FindString(list)
	require.Regexp(t, `(?m)^`+dns+` +kube-system +1/1 +Running +\d+ +\S+$`, list)
	require.Contains(t, l.run(t, l.as("burano-demo"), "burano", "cluster", "pod", "demo", dns, "-n", "kube-system"), "CONTAINER")
	require.Contains(t, l.run(t, l.as("burano-demo"), "burano", "cluster", "logs", "demo", dns, "-n", "kube-system"), "CoreDNS-")
	missing, err := l.try(l.as("burano-demo"), "burano", "cluster", "logs", "demo", "nobody")
	require.Error(t, err)
	require.Contains(t, missing, "not found")
}

// clusterTells asks Burano for the cluster's nodes, members and routes, also while a member of etcd does not answer.
func clusterTells(t *testing.T, l *lab, c *cluster, demo *user, environment map[string]any, where string) {
	path := "/burano/v1/environments/" + environment["id"].(string) + "/clusters/"
	for _, one := range environment["services"].([]any) {
		header := one.(map[string]any)["?"].(map[string]any)
		if strings.HasPrefix(header["type"].(string), "com.mirantis.docker.kubernetes.KubernetesCluster") {
			path += header["id"].(string)
		}
	}
	status := demo.must(t, http.MethodGet, path, nil)
	require.Equal(t, []any{}, status["problems"])
	require.Equal(t, true, status["healthy"])
	roles, members := map[string]string{}, []string{}
	gateway := ""
	for _, one := range status["nodes"].([]any) {
		node := one.(map[string]any)
		name, role := node["name"].(string), node["role"].(string)
		roles[name] = role
		require.Equal(t, c.servers[name], node["server"])
		require.Equal(t, true, node["reachable"])
		if role == "minion" {
			require.Equal(t, true, node["ready"])
			require.Regexp(t, `^v1\.`, node["version"])
		} else {
			require.Nil(t, node["ready"])
		}
		if role == "gateway" {
			gateway = name
		}
	}
	for _, one := range status["members"].([]any) {
		member := one.(map[string]any)
		require.Equal(t, true, member["healthy"])
		require.Equal(t, false, member["learner"])
		require.Contains(t, roles, member["name"])
		members = append(members, member["name"].(string))
	}
	require.Len(t, members, 3)
	ports := map[string]bool{}
	for _, one := range status["routes"].([]any) {
		published := one.(map[string]any)
		require.NotEmpty(t, published["backends"])
		ports[fmt.Sprint(published["gateway_port"])] = true
	}
	port := where[strings.LastIndex(where, ":")+1:]
	require.Contains(t, ports, port)

	told, err := c.on(gateway, "/opt/burano/bin/burano", "gateway", "status")
	require.NoError(t, err, told)
	require.Regexp(t, `(?m)^`+port+` +\S+ +yes `, told)
	address, err := c.on(gateway, "hostname", "-I")
	require.NoError(t, err)
	metrics, err := c.on("murano-kube-1", "curl", "--silent", "--fail", "--max-time", "5", "http://"+strings.Fields(address)[0]+":10249/metrics")
	require.NoError(t, err, metrics)
	require.Contains(t, metrics, `burano_gateway_connections_total{port="`+port+`"`)
	_, err = get("http://" + where[:strings.LastIndex(where, ":")] + ":10249/metrics")
	require.Error(t, err, "from outside nobody asks a gateway for its metrics")

	_, err = c.on(gateway, "systemctl", "stop", "etcd")
	require.NoError(t, err)
	status = demo.must(t, http.MethodGet, path, nil)
	require.Equal(t, false, status["healthy"])
	require.Equal(t, []any{"etcd member " + gateway + ": it does not answer", "node " + gateway + ": etcd does not run (dead): journalctl -u etcd on the node says why"}, status["problems"])
	_, err = c.on(gateway, "systemctl", "start", "etcd")
	require.NoError(t, err)
	l.eventually(t, 30*time.Second, "all is well again", func() error {
		if problems := demo.must(t, http.MethodGet, path, nil)["problems"].([]any); len(problems) > 0 {
			return fmt.Errorf("%v", problems)
		}
		return nil
	})
}

func bothReplicasAnswer(t *testing.T, l *lab, where string) {
	t.Helper()
	replicas := map[string]bool{}
	l.eventually(t, time.Minute, "both replicas answer through the gateway", func() error {
		text, err := get("http://" + where + "/")
		if err != nil {
			return err
		}
		replicas[strings.SplitN(text, "\n", 2)[0]] = true
		if len(replicas) < 2 {
			return fmt.Errorf("only %v answered", replicas)
		}
		return nil
	})
}

// noGuests demands that soon no process of servers and of our programs is left, except the Burano server itself and this test, which
// make test builds beside our programs.
func (l *lab) noGuests(t *testing.T, programs string) {
	t.Helper()
	l.eventually(t, 10*time.Second, "no process is left", func() error {
		if left := guests(t, programs, l.server.Process.Pid, os.Getpid()); len(left) > 0 {
			return fmt.Errorf("%s", strings.Join(left, "\n"))
		}
		return nil
	})
}

// inventory lists the resources of a project in its cloud, by kind.
func inventory(t *testing.T, u *user) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	note := func(kind string, names ...string) {
		slices.Sort(names)
		found[kind] = append([]string{}, names...)
	}
	ctx := t.Context()

	pages, err := servers.List(u.nova(t), nil).AllPages(ctx)
	require.NoError(t, err)
	allServers, err := servers.ExtractServers(pages)
	require.NoError(t, err)
	note("servers", mapped(allServers, func(s servers.Server) string { return s.Name })...)

	pages, err = stacks.List(u.heat(t), nil).AllPages(ctx)
	require.NoError(t, err)
	allStacks, err := stacks.ExtractStacks(pages)
	require.NoError(t, err)
	note("stacks", mapped(allStacks, func(s stacks.ListedStack) string { return s.Name })...)

	pages, err = networks.List(u.neutron(t), nil).AllPages(ctx)
	require.NoError(t, err)
	allNetworks, err := networks.ExtractNetworks(pages)
	require.NoError(t, err)
	note("networks", mapped(allNetworks, func(n networks.Network) string { return n.Name })...)

	pages, err = ports.List(u.neutron(t), nil).AllPages(ctx)
	require.NoError(t, err)
	allPorts, err := ports.ExtractPorts(pages)
	require.NoError(t, err)
	note("ports", mapped(allPorts, func(p ports.Port) string { return p.ID })...)

	pages, err = routers.List(u.neutron(t), nil).AllPages(ctx)
	require.NoError(t, err)
	allRouters, err := routers.ExtractRouters(pages)
	require.NoError(t, err)
	note("routers", mapped(allRouters, func(r routers.Router) string { return r.Name })...)

	pages, err = floatingips.List(u.neutron(t), nil).AllPages(ctx)
	require.NoError(t, err)
	allFloating, err := floatingips.ExtractFloatingIPs(pages)
	require.NoError(t, err)
	note("floating IPs", mapped(allFloating, func(f floatingips.FloatingIP) string { return f.FloatingIP })...)

	pages, err = groups.List(u.neutron(t), groups.ListOpts{}).AllPages(ctx)
	require.NoError(t, err)
	allGroups, err := groups.ExtractGroups(pages)
	require.NoError(t, err)
	// Neutron makes the project's default group at the first request for it.
	note("security groups", mapped(slices.DeleteFunc(allGroups, func(g groups.SecGroup) bool { return g.Name == "default" }), func(g groups.SecGroup) string { return g.Name })...)

	if cinder, err := openstack.NewBlockStorageV3(u.provider, u.endpoint); err == nil { // not every cloud has it
		pages, err := volumes.List(cinder, volumes.ListOpts{}).AllPages(ctx)
		require.NoError(t, err)
		all, err := volumes.ExtractVolumes(pages)
		require.NoError(t, err)
		note("volumes", mapped(all, func(v volumes.Volume) string { return v.Name })...)
	}

	admin := u.lab.user(t, "burano-admin")
	pages, err = trusts.List(admin.keystone(t), trusts.ListOpts{}).AllPages(ctx)
	require.NoError(t, err)
	allTrusts, err := trusts.ExtractTrusts(pages)
	require.NoError(t, err)
	note("trusts", mapped(allTrusts, func(trust trusts.Trust) string { return trust.ID })...)
	return found
}

// withoutTrusts is an inventory without trusts, which end a moment after their task.
func withoutTrusts(found map[string][]string) map[string][]string {
	delete(found, "trusts")
	return found
}

// asBefore waits until the cloud has the former content again; trusts end a moment after their tasks.
func asBefore(t *testing.T, u *user, found map[string][]string) {
	t.Helper()
	u.lab.eventually(t, 10*time.Second, "the cloud holds what it held before", func() error {
		if now := inventory(t, u); fmt.Sprint(now) != fmt.Sprint(found) {
			return fmt.Errorf("%v, and not %v", now, found)
		}
		return nil
	})
}

func mapped[T any](values []T, name func(T) string) []string {
	names := make([]string, len(values))
	for i, value := range values {
		names[i] = name(value)
	}
	return names
}

// environmentNamed returns the whole environment of that name.
func environmentNamed(t *testing.T, u *user, name string) map[string]any {
	t.Helper()
	for _, one := range u.must(t, http.MethodGet, "/v1/environments", nil)["environments"].([]any) {
		if environment := one.(map[string]any); environment["name"] == name {
			return u.must(t, http.MethodGet, "/v1/environments/"+environment["id"].(string), nil)
		}
	}
	require.FailNowf(t, "no such environment", "the project has no environment %s", name)
	return nil
}

// endpointOf returns address and port in the applicationEndpoints of the environment's first application that has them.
func endpointOf(t *testing.T, environment map[string]any) string {
	t.Helper()
	for _, one := range environment["services"].([]any) {
		endpoints, _ := one.(map[string]any)["applicationEndpoints"].([]any)
		for _, endpoint := range endpoints {
			if endpoint := endpoint.(map[string]any); endpoint["scope"] == "public" {
				return fmt.Sprintf("%v:%v", endpoint["address"], endpoint["port"])
			}
		}
	}
	require.FailNow(t, "no application has a public endpoint", "%v", environment)
	return ""
}

// get returns the body of a page on a connection of its own.
func get(url string) (string, error) { return getOf(url, "") }

// getOf is get of a host that a gateway serves; "" is the address itself.
func getOf(url, host string) (string, error) {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	request.Host = cmp.Or(host, request.Host)
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %d", url, response.StatusCode)
	}
	return string(body), err
}

// cluster is a deployed Kubernetes cluster, with the access of its user and of the machine's owner.
type cluster struct {
	lab        *lab
	kubeconfig string
	servers    map[string]string // name → Nova's id
}

func (l *lab) clusterOf(t *testing.T, u *user, environment map[string]any) *cluster {
	t.Helper()
	c := &cluster{lab: l, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), servers: map[string]string{}}
	l.run(t, l.as(u.entry), "burano", "cluster", "kubeconfig", environment["name"].(string), "--output", c.kubeconfig)
	pages, err := servers.List(u.nova(t), nil).AllPages(t.Context())
	require.NoError(t, err)
	all, err := servers.ExtractServers(pages)
	require.NoError(t, err)
	for _, server := range all {
		c.servers[server.Name] = server.ID
	}
	return c
}

// kubectl is the program from the node image.
func (l *lab) kubectl() string { return filepath.Join(filepath.Dir(l.image()), "bin", "kubectl") }

// kubectl runs the real kubectl with the downloaded kubeconfig.
func (c *cluster) kubectl(t *testing.T, input string, args ...string) string {
	t.Helper()
	output, err := c.tryKubectl(input, args...)
	require.NoErrorf(t, err, "kubectl %s:\n%s", strings.Join(args, " "), output)
	return output
}

func (c *cluster) tryKubectl(input string, args ...string) (string, error) {
	command := exec.Command(c.lab.kubectl(), append([]string{"--kubeconfig", c.kubeconfig}, args...)...)
	command.Stdin = strings.NewReader(input)
	return outputOf(command)
}

// outputOf runs a program whose output is read on. Errors of a program that succeeds are no part of it: kubectl complains of the API of metrics while its
// server starts.
func outputOf(command *exec.Cmd) (string, error) {
	var errs bytes.Buffer
	command.Stderr = &errs
	output, err := command.Output()
	if err != nil {
		output = append(output, errs.Bytes()...)
	}
	return string(output), err
}

// on runs a command inside a server, from the host.
func (c *cluster) on(server string, args ...string) (string, error) {
	output, err := c.command(server, args...).CombinedOutput()
	return string(output), err
}

// command returns a command that runs inside a server, for callers that need more than on.
func (c *cluster) command(server string, args ...string) *exec.Cmd {
	return exec.Command("runc", append([]string{"--root", filepath.Join(c.lab.cloud, "hypervisor", "runc"), "exec", "blc-" + c.servers[server]}, args...)...)
}

func nodesAreReady(t *testing.T, c *cluster, u *user) {
	require.ElementsMatch(t, []string{"murano-kube-1", "murano-kube-2", "murano-gateway-1"}, mapKeys(c.servers))
	var nodes struct {
		Items []struct {
			Metadata struct{ Name string }
			Status   struct {
				Conditions []struct{ Type, Status string }
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(c.kubectl(t, "", "get", "nodes", "-o", "json")), &nodes))
	require.NotEmpty(t, nodes.Items)
	for _, node := range nodes.Items {
		require.Contains(t, c.servers, node.Metadata.Name)
		ready := false
		for _, condition := range node.Status.Conditions {
			ready = ready || condition.Type == "Ready" && condition.Status == "True"
		}
		require.Truef(t, ready, "node %s is Ready", node.Metadata.Name)
	}
	members, err := c.on("murano-kube-1", etcdctl("apiserver-etcd", "member", "list", "-w", "json")...)
	require.NoError(t, err, members)
	var list struct {
		Members []struct {
			Name      string
			IsLearner bool
		}
	}
	require.NoError(t, json.Unmarshal([]byte(members), &list))
	require.Len(t, list.Members, 3, "one master, one minion and one gateway have three etcd members")
	for _, member := range list.Members {
		require.False(t, member.IsLearner, member.Name)
	}
}

// serviceByKubectl makes a Service and an application with kubectl alone, on a port of their own.
func serviceByKubectl(t *testing.T, l *lab, c *cluster, where string) {
	address, _, _ := strings.Cut(where, ":")
	manifest := `
apiVersion: apps/v1
kind: Deployment
metadata: {name: plain}
spec:
  selector: {matchLabels: {app: plain}}
  template:
    metadata: {labels: {app: plain}}
    spec:
      containers: [{name: demo, image: "registry.local/demo:1", imagePullPolicy: IfNotPresent}]
---
apiVersion: v1
kind: Service
metadata: {name: plain}
spec:
  type: LoadBalancer
  selector: {app: plain}
  ports: [{port: 8123, targetPort: 8080}]
`
	c.kubectl(t, manifest, "apply", "-f", "-")
	answers := func() error {
		_, err := get("http://" + address + ":8123/")
		return err
	}
	l.eventually(t, 30*time.Second, "the Service answers on its port of the gateway", answers)
	l.eventually(t, 10*time.Second, "its status has the gateway's address", func() error {
		if has := c.kubectl(t, "", "get", "service", "plain", "--output", "jsonpath={.status.loadBalancer.ingress[*].ip}"); strings.TrimSpace(has) != address {
			return fmt.Errorf("it has %q, and the gateway is %s", has, address)
		}
		return nil
	})
	c.kubectl(t, "", "patch", "service", "plain", "--patch", `{"spec": {"loadBalancerSourceRanges": ["192.0.2.0/24"]}}`)
	l.eventually(t, 10*time.Second, "who comes from elsewhere is not let in", func() error {
		if answers() == nil {
			return fmt.Errorf("it answers")
		}
		return nil
	})
	c.kubectl(t, "", "patch", "service", "plain", "--patch", `{"spec": {"loadBalancerSourceRanges": null}}`)
	l.eventually(t, 10*time.Second, "everybody is let in again", answers)
	c.kubectl(t, manifest, "delete", "--wait=false", "-f", "-")
	l.eventually(t, 30*time.Second, "the port is closed again", func() error {
		if _, err := get("http://" + address + ":8123/"); err == nil {
			return fmt.Errorf("it still answers")
		}
		return nil
	})
}

// ingressByKubectl has the demo answer by TLS for a host. Its Service occupies port 80 of the gateways, which the Ingress reports.
func ingressByKubectl(t *testing.T, l *lab, c *cluster, where string) {
	address, _, _ := strings.Cut(where, ":")
	const host = "shop.example.com"
	certificate, pair := selfSigned(t, host)
	directory := t.TempDir()
	for name, content := range map[string][]byte{"tls.crt": certificate, "tls.key": pair} {
		require.NoError(t, os.WriteFile(filepath.Join(directory, name), content, 0o600))
	}
	service := strings.Fields(c.kubectl(t, "", "get", "services", "--namespace", "default", "--selector", "!provider", "--output", "jsonpath={.items[0].metadata.name} {.items[0].spec.ports[0].port}"))
	c.kubectl(t, "", "create", "secret", "tls", "shop", "--cert", filepath.Join(directory, "tls.crt"), "--key", filepath.Join(directory, "tls.key"))
	manifest := fmt.Sprintf(`
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop}
spec:
  ingressClassName: burano
  tls: [{hosts: [%[1]s], secretName: shop}]
  rules:
  - host: %[1]s
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: %[2]s, port: {number: %[3]s}}}}]}
`, host, service[0], service[1])
	c.kubectl(t, manifest, "apply", "-f", "-")
	trusted := x509.NewCertPool()
	require.True(t, trusted.AppendCertsFromPEM(certificate))
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: trusted},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address+":443")
		},
	}}
	began := time.Now()
	l.eventually(t, 30*time.Second, "the host answers by TLS with its own certificate", func() error {
		response, err := client.Get("https://" + host + "/")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK || response.ProtoMajor != 2 {
			return fmt.Errorf("%s %s", response.Proto, response.Status)
		}
		return nil
	})
	t.Logf("the host answered %s after its Ingress was made", time.Since(began).Round(time.Millisecond))
	c.kubectl(t, "", "annotate", "ingressclass", "burano", "burano.io/access-log=json", "burano.io/compression=gzip")
	l.eventually(t, 10*time.Second, "requests are in the gateway's log", func() error {
		if _, err := client.Get("https://" + host + "/logged?secret"); err != nil {
			return err
		}
		line, err := c.on("murano-gateway-1", "/bin/bash", "-c", "journalctl --unit haproxy --output cat | grep logged | tail -1")
		if err != nil {
			return fmt.Errorf("%w: %s", err, line)
		}
		var said struct{ Client, Host, URI, Version string }
		if err := json.Unmarshal([]byte(line), &said); err != nil {
			return fmt.Errorf("%w: %s", err, line)
		}
		if said.Client == "" || said.Host != host || said.URI != "/logged" || said.Version != "HTTP/2.0" {
			return fmt.Errorf("it says %s", line)
		}
		return nil
	})
	c.kubectl(t, "", "annotate", "ingressclass", "burano", "burano.io/access-log-", "burano.io/compression-")
	l.eventually(t, 10*time.Second, "its status has the gateway's address, and says that port 80 is another's", func() error {
		has := strings.TrimSpace(c.kubectl(t, "", "get", "ingress", "shop", "--output", `jsonpath={.status.loadBalancer.ingress[*].ip} {.status.loadBalancer.ingress[*].ports[*].error}`))
		if has != address+" burano.io/GatewayPortConflict" {
			return fmt.Errorf("it says %q, and the gateway is %s", has, address)
		}
		return nil
	})
	stored, err := c.on("murano-kube-1", etcdctl("publisher", "get", "/burano/v1/certificates/", "--prefix")...)
	require.NoError(t, err, stored)
	require.Contains(t, stored, "/default/shop")
	require.NotContains(t, stored, "PRIVATE KEY")
	c.kubectl(t, manifest, "delete", "--wait=false", "-f", "-")
	c.kubectl(t, "", "delete", "secret", "shop")
	l.eventually(t, 30*time.Second, "the port is closed again", func() error {
		if _, err := client.Get("https://" + host + "/"); err == nil {
			return fmt.Errorf("it still answers")
		}
		return nil
	})
}

// gatewayByKubectl has the demo answer on ports of a Gateway: to requests with a header, with a header of the route's in the answer, and by TLS.
func gatewayByKubectl(t *testing.T, l *lab, c *cluster, where string) {
	address, _, _ := strings.Cut(where, ":")
	const host = "edge.example.com"
	certificate, pair := selfSigned(t, host)
	directory := t.TempDir()
	for name, content := range map[string][]byte{"tls.crt": certificate, "tls.key": pair} {
		require.NoError(t, os.WriteFile(filepath.Join(directory, name), content, 0o600))
	}
	service := strings.Fields(c.kubectl(t, "", "get", "services", "--namespace", "default", "--selector", "!provider", "--output", "jsonpath={.items[0].metadata.name} {.items[0].spec.ports[0].port}"))
	c.kubectl(t, "", "create", "secret", "tls", "edge", "--cert", filepath.Join(directory, "tls.crt"), "--key", filepath.Join(directory, "tls.key"))
	manifest := fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  gatewayClassName: burano
  listeners:
  - {name: plain, port: 8088, protocol: HTTP}
  - {name: safe, port: 8443, protocol: HTTPS, hostname: %[1]s, tls: {certificateRefs: [{name: edge}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: demo}
spec:
  parentRefs: [{name: edge}]
  hostnames: [%[1]s]
  rules:
  - matches: [{headers: [{name: X-Demo, value: "yes"}]}]
    filters: [{type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: X-Edge, value: here}]}}]
    backendRefs: [{name: %[2]s, port: %[3]s}]
`, host, service[0], service[1])
	c.kubectl(t, manifest, "apply", "-f", "-")
	trusted := x509.NewCertPool()
	require.True(t, trusted.AppendCertsFromPEM(certificate))
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: trusted},
		DialContext: func(ctx context.Context, network, to string) (net.Conn, error) {
			_, port, _ := net.SplitHostPort(to)
			return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(address, port))
		},
	}}
	ask := func(url, header string) (*http.Response, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		require.NoError(t, err)
		request.Header.Set("X-Demo", header)
		response, err := client.Do(request)
		if err == nil {
			response.Body.Close()
		}
		return response, err
	}
	began := time.Now()
	for _, url := range []string{"http://" + host + ":8088/", "https://" + host + ":8443/"} {
		l.eventually(t, time.Minute, url+" answers", func() error {
			response, err := ask(url, "yes")
			if err == nil && (response.StatusCode != http.StatusOK || response.Header.Get("X-Edge") != "here") {
				err = fmt.Errorf("%s %v", response.Status, response.Header)
			}
			return err
		})
	}
	t.Logf("the Gateway answered %s after it was made", time.Since(began).Round(time.Millisecond))
	l.eventually(t, 10*time.Second, "another header leads nowhere", func() error {
		response, err := ask("http://"+host+":8088/", "no")
		if err == nil && response.StatusCode != http.StatusNotFound {
			err = fmt.Errorf("it answers %s", response.Status)
		}
		return err
	})
	l.eventually(t, 10*time.Second, "the statuses say so", func() error {
		has := strings.TrimSpace(c.kubectl(t, "", "get", "gateway", "edge", "--output", `jsonpath={.status.addresses[*].value} {.status.conditions[?(@.type=="Programmed")].status} {.status.listeners[*].attachedRoutes}`))
		if has != address+" True 1 1" {
			return fmt.Errorf("it says %q, and the gateway is %s", has, address)
		}
		return nil
	})
	c.kubectl(t, manifest, "delete", "--wait=false", "-f", "-")
	c.kubectl(t, "", "delete", "secret", "edge")
	l.eventually(t, 30*time.Second, "the port is closed again", func() error {
		if _, err := ask("http://"+host+":8088/", "yes"); err == nil {
			return fmt.Errorf("it still answers")
		}
		return nil
	})
}

func mapKeys(m map[string]string) (keys []string) {
	for key := range m {
		keys = append(keys, key)
	}
	return keys
}

// foreignProject asks for the environment as a user of another project.
func foreignProject(t *testing.T, l *lab, environment string) {
	other := l.user(t, "burano-other")
	for _, path := range []string{"", "/services", "/deployments", "/sessions/x"} {
		got := other.call(t, http.MethodGet, "/v1/environments/"+environment+path, nil)
		require.Containsf(t, []int{http.StatusForbidden, http.StatusNotFound}, got.Status, "GET %s: %s", path, got.Body)
	}
	got := other.call(t, http.MethodDelete, "/v1/environments/"+environment, nil)
	require.Equal(t, http.StatusForbidden, got.Status)
	require.Empty(t, other.must(t, http.MethodGet, "/v1/environments", nil)["environments"])
}

// deployAgain deploys the unchanged file once more: every process on the nodes, also in containers, lives on with its former start
// time.
func deployAgain(t *testing.T, l *lab, c *cluster, where string) {
	before, units := c.processes(t), c.startTimes(t)
	// A process that is gone a moment later was a short-lived helper.
	later := c.processes(t)
	maps.DeleteFunc(before, func(process, started string) bool { return later[process] != started })
	for _, program := range []string{"etcd", "kube-apiserver", "kube-controller", "kube-scheduler", "kubelet", "kube-proxy", "containerd", "calico-node", "haproxy", "burano", "demo", "coredns"} {
		require.True(t, slices.ContainsFunc(slices.Collect(maps.Keys(before)), func(process string) bool { return strings.Contains(process, program) }), "%s runs: %v", program, before)
	}
	l.run(t, l.as("burano-demo"), "burano", "deploy", "test/environments/demo.yaml", "--follow")
	require.Equal(t, units, c.startTimes(t), "no unit was restarted")
	after := c.processes(t)
	for process, started := range before {
		require.Equalf(t, started, after[process], "%s was started when it was", process)
	}
	t.Logf("%d processes of %d servers were left alone", len(before), len(c.servers))
	_, err := get("http://" + where + "/")
	require.NoError(t, err)
}

// anotherName changes names and ids of nodes in a deployed file. The preview lists the node as replaced whose name changes. Another node
// of the same name is refused, since it would delete the server.
func anotherName(t *testing.T, l *lab, c *cluster) {
	c.kubectl(t, "", "create", "configmap", "precious", "--from-literal=word=swordfish")
	before, units := c.processes(t), c.startTimes(t)
	later := c.processes(t)
	maps.DeleteFunc(before, func(process, started string) bool { return later[process] != started })
	text, err := os.ReadFile(filepath.Join(l.root, "test/environments/demo.yaml"))
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "demo.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "murano-kube-2", "murano-kube-9")), 0o600))
	// With a UUID as its id a node is another one, with only the same name.
	others := filepath.Join(t.TempDir(), "demo.yaml")
	const head, tail = "io.murano.resources.LinuxMuranoInstance", "}\n        name: murano-kube-1\n"
	require.Contains(t, string(text), head+tail)
	require.NoError(t, os.WriteFile(others, []byte(strings.Replace(string(text), head+tail, head+", id: 0fc7ac48-3d4b-4f0e-8f2f-2f1f3f4f5f6f"+tail, 1)), 0o600))
	output := l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--dry-run")
	require.Contains(t, output, "1 node is replaced (a new one joins before the former one goes): murano-kube-2, then called murano-kube-9-r2")
	for _, flags := range [][]string{{"--dry-run"}, {"--follow"}} {
		output, err := l.try(l.as("burano-demo"), "burano", append([]string{"deploy", others}, flags...)...)
		require.Error(t, err, output)
		require.Contains(t, output, "server murano-kube-1 ("+c.servers["murano-kube-1"]+") was made with id")
	}
	l.run(t, l.as("burano-demo"), "burano", "deploy", "test/environments/demo.yaml", "--follow")
	require.Equal(t, units, c.startTimes(t), "no unit was restarted")
	after := c.processes(t)
	for process, started := range before {
		require.Equalf(t, started, after[process], "%s was started when it was", process)
	}
	require.Equal(t, "swordfish", c.kubectl(t, "", "get", "configmap", "precious", "-o", "jsonpath={.data.word}"))
	c.kubectl(t, "", "delete", "configmap", "precious")
}

// startTimes returns for each unit of ours on each node when its process was started.
func (c *cluster) startTimes(t *testing.T) map[string]string {
	t.Helper()
	times := map[string]string{}
	for server := range c.servers {
		output, err := c.on(server, "systemctl", "show", "--property=Id,ExecMainStartTimestampMonotonic", "etcd*", "kube*", "calico*", "containerd.service", "burano*", "haproxy.service")
		require.NoError(t, err, output)
		times[server] = output
	}
	return times
}

// processes lists the processes of all servers, except SSH sessions, as "server pid name", with their start times in ticks of the
// machine's clock (field 22 of /proc/PID/stat).
func (c *cluster) processes(t *testing.T) map[string]string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	found := map[string]string{}
	for _, entry := range entries {
		folder := filepath.Join("/proc", entry.Name())
		groups, err := os.ReadFile(filepath.Join(folder, "cgroup"))
		if err != nil {
			continue // no process, or one that has ended
		}
		for server, id := range c.servers {
			if !strings.Contains(string(groups), "/"+id) || strings.Contains(string(groups), "/ssh.service") || strings.Contains(string(groups), "/session-") {
				continue
			}
			if stat, err := os.ReadFile(filepath.Join(folder, "stat")); err == nil {
				// The name in parentheses may hold spaces; the text after the last one begins with field 3 (proc(5)).
				end := bytes.LastIndexByte(stat, ')')
				name := string(stat[bytes.IndexByte(stat, '(')+1 : end])
				found[server+" "+entry.Name()+" "+name] = strings.Fields(string(stat[end+1:]))[19]
			}
		}
	}
	return found
}
