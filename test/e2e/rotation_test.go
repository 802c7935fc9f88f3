package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// rotated exchanges all authorities and keys of a cluster, while a user writes to its API. Objects from before are there afterwards, pods' tokens work,
// and no former certificate or key opens anything.
func rotated(t *testing.T, l *lab, demo *user, environment map[string]any) {
	const former, minion = "/root/former", "murano-kube-2"
	name := environment["name"].(string)
	c := l.clusterOf(t, demo, environment)
	c.kubectl(t, "", "create", "secret", "generic", "kept", "--from-literal=what=remains")
	c.kubectl(t, `
apiVersion: v1
kind: Secret
metadata: {name: machine, annotations: {kubernetes.io/service-account.name: default}}
type: kubernetes.io/service-account-token
`, "apply", "-f", "-")
	tokenOfSecret := func() string {
		return c.kubectl(t, "", "get", "secret", "machine", "-o", "jsonpath={.data.token}")
	}
	l.eventually(t, 30*time.Second, "the Secret has a token", func() error {
		if tokenOfSecret() == "" {
			return fmt.Errorf("it has none")
		}
		return nil
	})
	formerToken := c.kubectl(t, "", "create", "token", "default", "--duration=24h")
	formerOfSecret := tokenOfSecret()
	for server := range c.servers {
		output, err := c.on(server, "/bin/bash", "-c", "mkdir "+former+" && cp -a --parents /etc/burano/pki "+former+" && { [ ! -d /etc/kubernetes ] || cp -a --parents /etc/kubernetes "+former+"; }")
		require.NoError(t, err, output)
	}

	ctx, stop := context.WithCancel(t.Context())
	writes := make(chan string, 1)
	go func() { writes <- l.write(ctx, name, filepath.Join(t.TempDir(), "kubeconfig")) }()
	for _, what := range []string{"certificates", "keys"} {
		output, err := l.try(l.as("burano-demo"), "burano", "cluster", "rotate", what, name)
		require.Error(t, err, "nothing is done before it is known what becomes invalid")
		require.Contains(t, output, "stop working")
		began := time.Now()
		t.Logf("%s", l.run(t, l.as("burano-demo"), "burano", "cluster", "rotate", what, name, "--yes", "--follow"))
		t.Logf("%s rotated in %.1f s", what, time.Since(began).Seconds())
	}
	stop()
	t.Log(<-writes)

	_, err := c.tried("get", "namespaces")
	require.Error(t, err, "a kubeconfig that was downloaded before ends")
	c = l.clusterOf(t, demo, environment)
	require.Equal(t, "cmVtYWlucw==", c.kubectl(t, "", "get", "secret", "kept", "-o", "jsonpath={.data.what}"))
	for server := range c.servers {
		for certificate, ports := range c.opened(t, server, former) {
			require.Empty(t, ports, "%s on %s is of a former authority", certificate, server)
		}
	}
	certificatesAndPorts(t, c)
	c.kubectl(t, "", "logs", "--tail=1", "deployment/web") // the API server gets it from the kubelet

	// The pods' programs use these very files for their requests.
	ask := `cd /var/lib/kubelet/pods; for folder in */volumes/kubernetes.io~projected/kube-api-access-*; do
	echo "$(curl --silent --output /dev/null --write-out '%{http_code}' --cacert "$folder/ca.crt" --resolve kubernetes.default.svc:6443:API --header "Authorization: Bearer $(cat "$folder/token")" https://kubernetes.default.svc:6443/version)"
done`
	api, err := c.on("murano-kube-1", "hostname", "-I")
	require.NoError(t, err, api)
	output, err := c.on(minion, "/bin/bash", "-c", strings.ReplaceAll(ask, "API", strings.Fields(api)[0]))
	require.NoError(t, err, output)
	require.GreaterOrEqual(t, strings.Count(output, "200"), 2, "the tokens of pods are taken")
	require.Equal(t, strings.Count(output, "200"), len(strings.Fields(output)), "%s", output)

	asToken := func(token string) string {
		output, err := c.on("murano-kube-1", "curl", "--silent", "--insecure", "--output", "/dev/null", "--write-out", "%{http_code}", "--header", "Authorization: Bearer "+token, "https://127.0.0.1:6443/version")
		require.NoError(t, err, output)
		return output
	}
	require.Equal(t, "200", asToken(c.kubectl(t, "", "create", "token", "default")))
	require.Equal(t, "401", asToken(formerToken), "of the former key")
	require.NotEqual(t, formerOfSecret, tokenOfSecret(), "a token in a Secret is renewed")
	encryption, err := c.on("murano-kube-1", "cat", "/etc/kubernetes/encryption.yaml")
	require.NoError(t, err)
	require.NotContains(t, encryption, "key1", "the former key is gone")

	var status struct{ Rotation *struct{ Stage string } }
	require.NoError(t, json.Unmarshal([]byte(l.run(t, l.as("burano-demo"), "burano", "cluster", "show", name, "-o", "json")), &status))
	require.Nil(t, status.Rotation)
	c.kubectl(t, "", "delete", "secret", "kept", "machine")
}

// write changes an object again and again until ctx ends, like a user who downloads a new kubeconfig when the old one expires, and returns a summary.
func (l *lab) write(ctx context.Context, environment, kubeconfig string) string {
	var longest time.Duration
	written, refused := 0, 0
	last := time.Now()
	c := &cluster{lab: l, kubeconfig: kubeconfig}
	for i := 0; ctx.Err() == nil; i++ {
		if written == 0 || time.Since(last) > time.Second {
			_, _ = l.try(l.as("burano-demo"), "burano", "cluster", "kubeconfig", environment, "--output", kubeconfig)
		}
		_, err := c.tried("annotate", "namespace", "default", "--overwrite", "--request-timeout=2s", fmt.Sprintf("written=%d", i))
		if err != nil {
			refused++
			continue
		}
		longest = max(longest, time.Since(last))
		last = time.Now()
		written++
	}
	return fmt.Sprintf("%d writes to the Kubernetes API, %d refused, %.1f s without one at most", written, refused, longest.Seconds())
}

// tried is kubectl where it may fail.
func (c *cluster) tried(args ...string) (string, error) {
	return c.tryKubectl("", args...)
}
