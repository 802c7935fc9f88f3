package e2e

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAClusterOfIPv6AloneAnswersByBoth deploys the demonstration with pods and Services of IPv6 alone. Its nodes have both versions: Burano reaches them by IPv4.
func TestAClusterOfIPv6AloneAnswersByBoth(t *testing.T) {
	soakOnly(t, "`make soak` runs it")
	s := deployedWithSix(t, "six", environmentWithSix(t, "six", "fd00:10:244::/64", "fd00:10:96::/112"))
	l, c := s.lab, s.cluster

	t.Run("Kubernetes knows IPv6 alone, of nodes, pods and Services", func(t *testing.T) {
		manifests := placedService
		for _, node := range dualNodes {
			manifests += fmt.Sprintf(onNode, node)
		}
		c.kubectl(t, manifests, "apply", "-f", "-")
		c.kubectl(t, "", "wait", "--for=condition=Ready", "pod", "-l", "app=placed", "--timeout=60s")
		require.Equal(t, "fd00:10:96::1", c.kubectl(t, "", "get", "service", "kubernetes", "-o", "jsonpath={.spec.clusterIPs[*]}"))
		require.Regexp(t, `^fd00:20:\S+$`, c.kubectl(t, "", "get", "endpointslice", "kubernetes", "-n", "default", "-o", "jsonpath={.endpoints[*].addresses[*]}"))
		for _, node := range dualNodes {
			require.Regexp(t, `^fd00:10:244:\S+$`, c.kubectl(t, "", "get", "pod", "on-"+node, "-o", "jsonpath={.status.podIPs[*].ip}"))
			require.Regexp(t, `^fd00:20:\S+$`, c.kubectl(t, "", "get", "node", node, "-o", `jsonpath={.status.addresses[?(@.type=="InternalIP")].address}`))
		}
	})
	t.Run("pods reach pods, names, the API and the world", func(t *testing.T) {
		world := outsideBySix(t)
		for i, node := range dualNodes {
			other := c.kubectl(t, "", "get", "pod", "on-"+dualNodes[(i+1)%2], "-o", "jsonpath={.status.podIP}")
			for _, url := range []string{"http://" + net.JoinHostPort(other, "8080") + "/", "--insecure https://[fd00:10:96::1]/healthz", "http://" + world + "/"} {
				l.eventually(t, 20*time.Second, "a pod of "+node+" reaches "+url, func() error {
					if out, err := c.inPod(node, "curl --globoff --silent --show-error --max-time 3 "+url); err != nil {
						return fmt.Errorf("%q: %w", out, err)
					}
					return nil
				})
			}
			l.eventually(t, 60*time.Second, "a Service answers a pod of "+node+" by its name", func() error {
				if out, err := c.inPod(node, "curl --silent --show-error --max-time 5 http://placed:8126/"); err != nil || !strings.Contains(out, "Hello from on-") {
					return fmt.Errorf("%q: %w", out, err)
				}
				return nil
			})
		}
	})
	t.Run("the API server reaches kubelets and metrics", func(t *testing.T) {
		c.kubectl(t, "", "logs", "on-"+dualNodes[0])
		l.eventually(t, 90*time.Second, "kubectl top nodes", func() error {
			out := c.kubectl(t, "", "get", "--raw", "/apis/metrics.k8s.io/v1beta1/nodes")
			for _, node := range dualNodes {
				if !strings.Contains(out, node) {
					return errors.New("no figures of " + node)
				}
			}
			return nil
		})
	})
	t.Run("gateways are reached by both, and lead to pods of IPv6", func(t *testing.T) {
		gateway, _, err := net.SplitHostPort(s.where)
		require.NoError(t, err)
		out, err := c.on("murano-gateway-1", "/bin/bash", "-c", "ip -6 -o address show dev eth0 scope global | grep -o 'fd00:20:[^/]*'")
		require.NoError(t, err, out)
		for _, place := range []string{gateway, strings.TrimSpace(out)} {
			for _, port := range []string{"8126", applicationPort(t, c)} {
				at := net.JoinHostPort(place, port)
				l.eventually(t, 20*time.Second, "the gateway answers at "+at, func() error {
					_, err := get("http://" + at + "/")
					return err
				})
			}
		}
	})
	t.Run("a node that leaves is forgotten, and one that comes has IPv6", func(t *testing.T) {
		c.kubectl(t, "", "delete", "service/placed", "pod/on-"+dualNodes[0], "pod/on-"+dualNodes[1], "--now")
		comesAndGoesWith(t, l, c, "six")
	})
	t.Run("a deployment that changes nothing restarts nothing", func(t *testing.T) {
		before := c.processes(t)
		output := l.run(t, l.as("burano-demo"), "burano", "deploy", s.file, "--follow")
		require.Contains(t, output, "Deployment finished")
		require.Equal(t, before, c.processes(t))
	})

	s.deleted(t)
}

// placedService is over a pod on each minion, with the default versions of IP.
const placedService = `
apiVersion: v1
kind: Service
metadata: {name: placed}
spec: {type: LoadBalancer, selector: {app: placed}, ports: [{port: 8126, targetPort: 8080}]}
---
`
