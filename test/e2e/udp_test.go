package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// udpByKubectl publishes the cluster's DNS over UDP by a Service.
func udpByKubectl(t *testing.T, l *lab, c *cluster, where string) {
	address, _, _ := strings.Cut(where, ":")
	const manifest = `
apiVersion: v1
kind: Service
metadata: {name: names, namespace: kube-system}
spec:
  type: LoadBalancer
  selector: {k8s-app: kube-dns}
  ports: [{port: 8153, targetPort: 53, protocol: UDP}]
`
	output, err := c.on("murano-gateway-1", "hostname", "-I")
	require.NoError(t, err, output)
	own, _, _ := strings.Cut(strings.TrimSpace(output), " ")
	answers := func() error { return askNameFrom(c, "murano-kube-1", own, 8153) }
	c.kubectl(t, manifest, "apply", "-f", "-")
	l.eventually(t, 30*time.Second, "the Service answers on its UDP port of the gateway", answers)
	l.eventually(t, 10*time.Second, "its status has the gateway's address", func() error {
		has := c.kubectl(t, "", "get", "service", "names", "--namespace=kube-system", "--output", `jsonpath={.status.loadBalancer.ingress[*].ip} {.status.conditions[?(@.type=="burano.io/Published")].status}`)
		if strings.TrimSpace(has) != address+" True" {
			return fmt.Errorf("it has %q, and the gateway is %s", has, address)
		}
		return nil
	})
	c.kubectl(t, "", "patch", "service", "names", "--namespace=kube-system", "--patch", `{"spec": {"loadBalancerSourceRanges": ["192.0.2.0/24"]}}`)
	l.eventually(t, 10*time.Second, "who comes from elsewhere is not let in", func() error { return silent(answers) })
	c.kubectl(t, manifest, "delete", "--wait=false", "-f", "-")
	l.eventually(t, 30*time.Second, "the port is closed again", func() error { return silent(answers) })
}

func silent(answers func() error) error {
	if answers() == nil {
		return fmt.Errorf("it answers")
	}
	return nil
}

// askNameFrom asks a server of DNS from a node over UDP for the API server's name, once. It sends the question as one datagram: bash alone would end one at
// the question's byte 10.
func askNameFrom(c *cluster, node, server string, port int) error {
	question := `\x00\x36\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x0akubernetes\x07default\x03svc\x07cluster\x05local\x00\x00\x01\x00\x01`
	output, err := c.on(node, "timeout", "3", "bash", "-euc", fmt.Sprintf(`exec 3<>/dev/udp/%s/%d; printf '%s' | dd bs=512 iflag=fullblock status=none >&3; dd bs=512 count=1 status=none <&3 | od -An -v -tx1`, server, port, question))
	if err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	if answer := strings.Fields(output); len(answer) < 12 || answer[3][1:] != "0" || answer[7] != "01" {
		return fmt.Errorf("the answer is %s", output)
	}
	return nil
}
