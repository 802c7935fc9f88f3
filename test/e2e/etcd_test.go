package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// etcdUser is a user of etcd: a certificate on a node, the keys it may read and write, and the keys it may only read.
type etcdUser struct {
	name        string
	server      string
	certificate string // below /etc/burano/pki, without extension
	prefix      string
	readOnly    bool
}

var etcdUsers = []etcdUser{
	{name: "API server", server: "murano-kube-1", certificate: "apiserver-etcd", prefix: "/registry/"},
	{name: "publisher", server: "murano-kube-1", certificate: "publisher", prefix: "/burano/v1/"},
	{name: "gateway", server: "murano-gateway-1", certificate: "gateway", prefix: "/burano/v1/", readOnly: true},
}

// The users that only one of the networks has.
var (
	etcdCalico  = etcdUser{name: "Calico", server: "murano-kube-2", certificate: "calico", prefix: "/calico/"}
	etcdFlannel = etcdUser{name: "Flannel", server: "murano-kube-2", certificate: "flannel", prefix: "/coreos.com/network/"}
)

// etcdctl is a command line for etcd through a node's own forwarder, with a certificate on the node.
func etcdctl(certificate string, args ...string) []string {
	const keys = "/etc/burano/pki/"
	return append([]string{"/opt/burano/bin/etcdctl", "--endpoints=https://127.0.0.1:2379", "--command-timeout=5s", "--cacert=" + keys + "etcd-ca.crt",
		"--cert=" + keys + certificate + ".crt", "--key=" + keys + certificate + ".key"}, args...)
}

func etcdPermissions(t *testing.T, c *cluster, network etcdUser) {
	const denied = "permission denied"
	for _, user := range append(slices.Clone(etcdUsers), network) {
		for _, prefix := range []string{"/registry/", "/calico/", "/coreos.com/network/", "/burano/v1/", "/", "/else/"} {
			own := prefix == user.prefix
			output, err := c.on(user.server, etcdctl(user.certificate, "get", prefix, "--prefix", "--keys-only", "--limit=3")...)
			if own {
				require.NoErrorf(t, err, "%s reads %s: %s", user.name, prefix, output)
			} else {
				require.Errorf(t, err, "%s must not read %s: %s", user.name, prefix, output)
				require.Containsf(t, output, denied, "%s reads %s", user.name, prefix)
			}
			key := prefix + "test-of-permissions"
			output, err = c.on(user.server, etcdctl(user.certificate, "put", key, "x")...)
			if own && !user.readOnly {
				require.NoErrorf(t, err, "%s writes %s: %s", user.name, key, output)
				output, err = c.on(user.server, etcdctl(user.certificate, "del", key)...)
				require.NoErrorf(t, err, "%s deletes %s: %s", user.name, key, output)
			} else {
				require.Errorf(t, err, "%s must not write %s: %s", user.name, key, output)
				require.Containsf(t, output, denied, "%s writes %s", user.name, key)
			}
		}
	}
	output, err := c.on("murano-kube-1", etcdctl("apiserver-etcd", "get", "compact_rev_key")...)
	require.NoErrorf(t, err, "the API server reads the key under which it compacts: %s", output)

	// A kubelet's certificate is of another authority: it is refused before permissions matter.
	output, err = c.on("murano-kube-2", "/bin/sh", "-c", strings.Join([]string{"/opt/burano/bin/etcdctl", "--endpoints=https://127.0.0.1:2379", "--command-timeout=5s",
		"--cacert=/etc/burano/pki/etcd-ca.crt", "--cert=/etc/burano/pki/kubelet-server.crt", "--key=/etc/burano/pki/kubelet-server.key", "get", "/registry/"}, " "))
	require.Error(t, err)
	// With TLS 1.3 the client may write before it hears of the refusal, and then finds the connection closed.
	require.Regexp(t, "(?i)(certificate|authentication handshake failed|tls|broken pipe|connection reset)", output)
	require.NotContains(t, output, denied, "it is refused at the handshake")
}

// secretsAreEncrypted reads a Secret from the store, as etcd's own administrator would.
func secretsAreEncrypted(t *testing.T, c *cluster) {
	c.kubectl(t, "", "create", "secret", "generic", "hidden", "--from-literal=word=swordfish")
	output, err := c.on("murano-kube-1", etcdctl("apiserver-etcd", "get", "/registry/secrets/default/hidden", "--print-value-only")...)
	require.NoError(t, err, output)
	require.True(t, strings.HasPrefix(output, "k8s:enc:"), "the stored value says that it is encrypted")
	require.NotContains(t, output, "swordfish")
	c.kubectl(t, "", "delete", "secret", "hidden")
}
