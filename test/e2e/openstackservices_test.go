package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// openStack is an environment with services of OpenStack, and its Keystone.
func (l *lab) openStack(t *testing.T, owner *user, name string) (*scaling, *applications, identity) {
	t.Helper()
	environment := environmentNamed(t, owner, name)
	s := &scaling{lab: l, user: owner, cluster: l.clusterOf(t, owner, environment), environment: environment["id"].(string)}
	a := &applications{lab: l, user: owner}
	shown, _ := s.call(t, "keystone", "showPassword", map[string]any{})
	return s, a, identity{address: "http://" + s.published(t, a, "keystone"), password: shown["result"].(string)}
}

// besideKeystone returns the model of a cluster with Keystone, to which a service is added, and a function that deploys it and returns the log.
func (l *lab) besideKeystone(t *testing.T, service string) (model string, deploy func(model string) string) {
	text, err := os.ReadFile(filepath.Join(l.root, "test/e2e/testdata/keystone.yaml"))
	require.NoError(t, err)
	model = strings.Replace(strings.Replace(string(text), "name: keystone\n", "name: "+service+"\n", 1), "murano-kube-2, flavor: m1.medium", "murano-kube-2, flavor: m1.large", 1)
	model = strings.Replace(model, "type: io.burano.Keystone}", "type: io.burano.Keystone, id: keystone}", 1)
	file := filepath.Join(t.TempDir(), service+".yaml")
	return model, func(model string) string {
		t.Helper()
		require.NoError(t, os.WriteFile(file, []byte(model), 0o600))
		began := time.Now()
		defer func() { t.Logf("the deployment took %.1f s", time.Since(began).Seconds()) }()
		return l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	}
}

// conceals demands that secrets stand neither in the log of a deployment nor in the cluster's descriptions.
func (s *scaling) conceals(t *testing.T, log string, secrets ...string) {
	t.Helper()
	described := s.cluster.kubectl(t, "", "get", "deployment,job,pod,configmap", "-o", "yaml")
	for _, secret := range secrets {
		require.NotEmpty(t, secret)
		require.NotContains(t, log, secret)
		require.NotContains(t, described, secret)
	}
}

// isConfined demands that a pod does not run as root, and cannot write a file of its image.
func (s *scaling) isConfined(t *testing.T, pod, file string) {
	t.Helper()
	require.Equal(t, "64000", s.inPod(t, pod, "id -u"), pod)
	require.Contains(t, s.inPod(t, pod, "touch "+file+" 2>&1 || true"), "Read-only file system", pod)
}

// hasOptions demands that a service's package lists the options of the image that its pod has.
func (s *scaling) hasOptions(t *testing.T, service, pod string) {
	t.Helper()
	listed, err := os.ReadFile(filepath.Join(s.lab.root, "catalog/apps/io.burano."+service+"/Resources/options.json"))
	require.NoError(t, err)
	require.JSONEq(t, string(listed), s.inPod(t, pod, "cat /usr/share/openstack/"+strings.ToLower(service)+".json"))
}
