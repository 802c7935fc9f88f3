package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// networkPolicies closes an application's pods by a NetworkPolicy, and opens them again.
func networkPolicies(t *testing.T, l *lab, c *cluster, where string) {
	address, _, _ := strings.Cut(where, ":")
	application := `
apiVersion: apps/v1
kind: Deployment
metadata: {name: closed}
spec:
  selector: {matchLabels: {app: closed}}
  template:
    metadata: {labels: {app: closed}}
    spec:
      containers: [{name: demo, image: "registry.local/demo:1", imagePullPolicy: IfNotPresent}]
---
apiVersion: v1
kind: Service
metadata: {name: closed}
spec:
  selector: {app: closed}
  ports: [{port: 8124, targetPort: 8080}]
`
	policy := `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: closed}
spec: {podSelector: {matchLabels: {app: closed}}, policyTypes: [Ingress]}
`
	answers := func() error {
		_, err := get("http://" + address + ":8124/")
		return err
	}
	c.kubectl(t, application, "apply", "-f", "-")
	l.eventually(t, 30*time.Second, "the application answers", answers)
	c.kubectl(t, policy, "apply", "-f", "-")
	l.eventually(t, 30*time.Second, "nobody may come in", func() error {
		if answers() == nil {
			return fmt.Errorf("it still answers")
		}
		return nil
	})
	c.kubectl(t, policy, "delete", "-f", "-")
	l.eventually(t, 30*time.Second, "the application answers again", answers)
	c.kubectl(t, application, "delete", "--wait=false", "-f", "-")
}

// aggregation registers an extension API server, which runs on a minion, and asks the API server for what it has. Webhooks are called in the
// same way.
func aggregation(t *testing.T, c *cluster) {
	const minion, unit = "murano-kube-2", "extension-api-server"
	script := `set -e
mkdir -p /run/extension/apis/test.burano.io
printf 'HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "test.burano.io/v1", "resources": []}' >/run/extension/apis/test.burano.io/v1
systemd-run --quiet --unit ` + unit + ` --working-directory /run/extension openssl s_server -accept 8443 -HTTP -cert /etc/burano/pki/kubelet-server.crt -key /etc/burano/pki/kubelet-server.key
hostname -I`
	output, err := c.on(minion, "/bin/bash", "-c", script)
	require.NoError(t, err, output)
	manifest := `
apiVersion: v1
kind: Service
metadata: {name: extension, namespace: kube-system}
spec:
  ports: [{name: https, port: 443, targetPort: 8443}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: extension, namespace: kube-system, labels: {kubernetes.io/service-name: extension}}
addressType: IPv4
ports: [{name: https, port: 8443}]
endpoints: [{addresses: [ADDRESS], conditions: {ready: true}}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.test.burano.io}
spec:
  group: test.burano.io
  version: v1
  groupPriorityMinimum: 1000
  versionPriority: 10
  insecureSkipTLSVerify: true
  service: {name: extension, namespace: kube-system}
`
	manifest = strings.Replace(manifest, "ADDRESS", strings.Fields(output)[0], 1)
	c.kubectl(t, manifest, "apply", "-f", "-")
	c.kubectl(t, "", "wait", "--for=condition=Available", "apiservice/v1.test.burano.io", "--timeout=60s")
	require.Contains(t, c.kubectl(t, "", "get", "--raw", "/apis/test.burano.io/v1"), `"groupVersion": "test.burano.io/v1"`)
	c.kubectl(t, manifest, "delete", "-f", "-")
	output, err = c.on(minion, "systemctl", "stop", unit)
	require.NoError(t, err, output)
}
