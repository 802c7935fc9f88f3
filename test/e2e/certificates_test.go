package e2e

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

//go:embed testdata/try-certificates.sh
var tryCertificates string

// certificatesAndPorts has each node try each of its certificates, its own and the ones in its kubeconfigs, on the ports of every node.
// These are the members of etcd for clients (2379) and for each other (2380), the API server (6443), and kubelets (10250).
func certificatesAndPorts(t *testing.T, c *cluster) {
	opens := map[string]string{
		"etcd-member": "2379", "apiserver-etcd": "2379", "calico": "2379", "publisher": "2379", "gateway": "2379",
		"etcd-peer": "2380", "apiserver-kubelet": "6443 10250",
		// Certificates signed by its key open everything of Kubernetes. Only the master has it.
		"kubernetes-ca":        "6443",
		"root.conf.kubeconfig": "6443 10250", // of root of a master, who administers the cluster
		"apiserver":            "", "front-proxy": "", "kubelet-server": "", "metrics-server": "",
	}
	tried := map[string]int{}
	for server := range c.servers {
		found := c.opened(t, server, "")
		for name, ports := range found {
			tried[name]++
			want, known := opens[name]
			if !known && strings.HasSuffix(name, ".kubeconfig") {
				want, known = "6443", true
			}
			slices.SortFunc(ports, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
			require.Truef(t, known, "%s has a certificate %s that nobody thought of", server, name)
			require.Equal(t, want, strings.Join(ports, " "), "%s on %s", name, server)
		}
	}
	for name := range opens {
		require.NotZero(t, tried[name], "%s was tried", name)
	}
	t.Log(fmt.Sprint(tried))
}

// opened has a node try its certificates, or the ones below a folder, on all nodes, and returns the ports that each of them opens.
func (c *cluster) opened(t *testing.T, server, from string) map[string][]string {
	t.Helper()
	var addresses []string
	for other := range c.servers {
		output, err := c.on(other, "hostname", "-I")
		require.NoError(t, err, output)
		addresses = append(addresses, strings.Fields(output)[0])
	}
	output, err := c.on(server, "env", "ADDRESSES="+strings.Join(addresses, " "), "FROM="+from, "/bin/bash", "-c", tryCertificates)
	require.NoError(t, err, output)
	found := map[string][]string{}
	for line := range strings.Lines(output) {
		fields := strings.Fields(line)
		require.Len(t, fields, 4, "%s", output)
		name, port, code := fields[0], fields[2], fields[3]
		if _, known := found[name]; !known {
			found[name] = []string{}
		}
		if code == "200" && !slices.Contains(found[name], port) {
			found[name] = append(found[name], port)
		}
	}
	return found
}
