package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// addressed are lines of a cluster whose pods and Services have nothing where others have it.
const addressed = `
    podRange: 172.20.0.0/18
    serviceRange: 172.21.4.0/22
    clusterDomain: k8s.example.org
    podMtu: 1300
    podEncapsulation: crossSubnet
`

// onNode is a pod on a node, whatever that is tainted with.
const onNode = `
apiVersion: v1
kind: Pod
metadata: {name: on-%[1]s, labels: {app: placed}}
spec:
  nodeName: %[1]s
  containers: [{name: demo, image: "registry.local/demo:1", imagePullPolicy: IfNotPresent}]
---
`

// podsAreAddressed looks from pods on two nodes whether they, Services, names and packets are as a cluster with the lines of addressed has them.
func podsAreAddressed(t *testing.T, l *lab, c *cluster, nodes ...string) {
	manifests := "apiVersion: v1\nkind: Service\nmetadata: {name: placed}\nspec: {selector: {app: placed}, ports: [{port: 80, targetPort: 8080}]}\n---\n"
	for _, node := range nodes {
		manifests += fmt.Sprintf(onNode, node)
	}
	c.kubectl(t, manifests, "apply", "-f", "-")
	c.kubectl(t, "", "wait", "--for=condition=Ready", "pod", "-l", "app=placed", "--timeout=60s")
	require.Regexp(t, `^172\.21\.[4-7]\.`, c.kubectl(t, "", "get", "service", "placed", "-o", "jsonpath={.spec.clusterIP}"))
	require.Equal(t, "172.21.4.1", c.kubectl(t, "", "get", "service", "kubernetes", "-o", "jsonpath={.spec.clusterIP}"))
	for i, node := range nodes {
		other := nodes[(i+1)%len(nodes)]
		address := c.kubectl(t, "", "get", "pod", "on-"+other, "-o", "jsonpath={.status.podIP}")
		require.Regexp(t, `^172\.20\.([0-9]|[1-5][0-9]|6[0-3])\.`, address)
		inPod := func(command string) (string, error) { // in its network, with its way to ask for names
			out, err := c.on(node, "/bin/bash", "-c", `set -e; pid=$(pidof -s demo); cat "/proc/$pid/root/etc/resolv.conf" >/run/names-of-pod
exec nsenter --net --target "$pid" unshare --mount bash -c 'mount --bind /run/names-of-pod /etc/resolv.conf && `+command+`'`)
			return strings.TrimSpace(out), err
		}
		out, err := inPod("ip link show eth0")
		require.NoError(t, err, out)
		require.Contains(t, out, " mtu 1300 ")
		out, err = inPod("curl --silent --show-error --max-time 5 http://" + address + ":8080/")
		require.NoError(t, err, out)
		require.Contains(t, out, "on-"+other, "a pod of the other node")
		l.eventually(t, 60*time.Second, "a Service answers by its name in the cluster's domain", func() error {
			for _, name := range []string{"placed", "placed.default.svc.k8s.example.org"} {
				if out, err := inPod("curl --silent --show-error --max-time 5 http://" + name + "/"); err != nil || !strings.Contains(out, "Hello from on-") {
					return fmt.Errorf("%s says %q: %v", name, out, err)
				}
			}
			return nil
		})
		ways, err := c.on(node, "ip", "route", "show", "proto", "80")
		require.NoError(t, err, ways)
		require.NotContains(t, ways, "vxlan", "all nodes stand in one subnet: no packet is wrapped")
		require.Regexp(t, `172\.20\.\S+ via \S+ dev \S+`, ways)
	}
	c.kubectl(t, "", "delete", "service/placed", "pod/on-"+nodes[0], "pod/on-"+nodes[1], "--now")
}

// staysAddressed asks for other addresses of a cluster with the lines of addressed, in vain, in a preview and in a deployment.
func staysAddressed(t *testing.T, l *lab, model string) {
	file := filepath.Join(t.TempDir(), "other.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.NewReplacer("172.21.4.0/22", "172.21.8.0/22", "k8s.example.org", "cluster.local").Replace(model)), 0o600))
	for _, flag := range []string{"--dry-run", "--follow"} {
		output, err := l.try(l.as("burano-demo"), "burano", "deploy", file, flag)
		require.Error(t, err, output)
		require.Contains(t, output, "serviceRange cannot be changed: cluster scaling-cluster was made with 172.21.4.0/22, and its Services have their addresses from it")
		require.Contains(t, output, "clusterDomain cannot be changed: cluster scaling-cluster was made with k8s.example.org")
	}
}
