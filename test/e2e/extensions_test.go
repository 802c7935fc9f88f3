package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// networkPolicies closes an application's pods by a NetworkPolicy, and opens them again.
func networkPolicies(t *testing.T, l *lab, c *cluster, where string) {
	address, _, _ := strings.Cut(where, ":")
	closePods(t, l, c, address)
	openPods(t, l, c, address)
}

const (
	closedPort = "8124" // where gateways lead to the pods of closedPods
	closedPods = `
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
	closingPolicy = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: closed}
spec: {podSelector: {matchLabels: {app: closed}}, policyTypes: [Ingress]}
`
)

// closePods creates pods that answer through the gateway with this address, and then a policy that denies all ingress.
func closePods(t *testing.T, l *lab, c *cluster, gateway string) {
	t.Helper()
	c.kubectl(t, closedPods, "apply", "-f", "-")
	l.eventually(t, 30*time.Second, "the application answers", func() error { return closedAnswer(gateway) })
	c.kubectl(t, closingPolicy, "apply", "-f", "-")
	l.eventually(t, 30*time.Second, "nobody may come in", func() error {
		if closedAnswer(gateway) == nil {
			return fmt.Errorf("it still answers")
		}
		return nil
	})
}

// openPods removes that policy, after which the pods answer, and then the pods.
func openPods(t *testing.T, l *lab, c *cluster, gateway string) {
	t.Helper()
	require.Error(t, closedAnswer(gateway), "nobody may come in")
	c.kubectl(t, closingPolicy, "delete", "-f", "-")
	l.eventually(t, 30*time.Second, "the application answers again", func() error { return closedAnswer(gateway) })
	c.kubectl(t, closedPods, "delete", "--wait=false", "-f", "-")
}

func closedAnswer(gateway string) error {
	_, err := get("http://" + net.JoinHostPort(gateway, closedPort) + "/")
	return err
}

// extension is the configuration of HAProxy as a webhook that denies every review, and as an extension API server that has one empty
// group. AdmissionReview is of https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/.
const extension = `global
  tune.bufsize 65536
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend extension
  bind :8443 ssl crt /etc/extension/tls.pem
  option http-buffer-request
  http-request return status 200 content-type application/json lf-string '{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"uid": "%[req.body,json_query($.request.uid)]", "allowed": false, "status": {"message": "the extension does not want it"}}}' if { path /validate }
  http-request return status 200 content-type application/json string '{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "test.burano.io/v1", "resources": []}' if { path -m beg /apis/test.burano.io/v1 }
  http-request return status 404
`

// extensions runs a webhook and an extension API server in a pod behind a Service, and has the API server call both. The pod is made of an image that
// the node has, with the node's own programs.
func extensions(t *testing.T, l *lab, c *cluster) {
	authority, pair := selfSigned(t, "extension.extension.svc")
	manifest := `
apiVersion: v1
kind: Namespace
metadata: {name: extension}
---
apiVersion: v1
kind: Secret
metadata: {name: extension, namespace: extension}
data: {tls.pem: ` + base64.StdEncoding.EncodeToString(pair) + `, haproxy.cfg: ` + base64.StdEncoding.EncodeToString([]byte(extension)) + `}
---
apiVersion: v1
kind: Pod
metadata: {name: extension, namespace: extension, labels: {app: extension}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - name: extension
      image: registry.local/demo:1
      imagePullPolicy: IfNotPresent
      command: [/usr/sbin/haproxy, -db, -f, /etc/extension/haproxy.cfg]
      readinessProbe: {tcpSocket: {port: 8443}, periodSeconds: 1}
      volumeMounts:
        - {name: files, mountPath: /etc/extension}
        - {name: usr, mountPath: /usr, readOnly: true}
        - {name: lib, mountPath: /lib, readOnly: true}
        - {name: lib64, mountPath: /lib64, readOnly: true}
  volumes:
    - {name: files, secret: {secretName: extension}}
    - {name: usr, hostPath: {path: /usr}}
    - {name: lib, hostPath: {path: /usr/lib}}
    - {name: lib64, hostPath: {path: /usr/lib64}}
---
apiVersion: v1
kind: Service
metadata: {name: extension, namespace: extension}
spec:
  selector: {app: extension}
  ports: [{name: https, port: 443, targetPort: 8443}]
`
	registered := `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.test.burano.io}
spec:
  group: test.burano.io
  version: v1
  groupPriorityMinimum: 1000
  versionPriority: 10
  caBundle: AUTHORITY
  service: {name: extension, namespace: extension}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: extension}
webhooks:
  - name: extension.test.burano.io
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: Fail
    objectSelector: {matchLabels: {asked: "yes"}}
    rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
    clientConfig: {service: {name: extension, namespace: extension, path: /validate}, caBundle: AUTHORITY}
`
	registered = strings.ReplaceAll(registered, "AUTHORITY", base64.StdEncoding.EncodeToString(authority))
	c.kubectl(t, manifest, "apply", "-f", "-")
	c.kubectl(t, "", "wait", "--namespace=extension", "--for=condition=Ready", "pod/extension", "--timeout=60s")
	c.kubectl(t, registered, "apply", "-f", "-")

	c.kubectl(t, "", "wait", "--for=condition=Available", "apiservice/v1.test.burano.io", "--timeout=60s")
	require.Contains(t, c.kubectl(t, "", "get", "--raw", "/apis/test.burano.io/v1"), `"groupVersion": "test.burano.io/v1"`)

	config := func(name, asked string) string {
		return `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "` + name + `", "namespace": "extension", "labels": {"asked": "` + asked + `"}}}`
	}
	l.eventually(t, 30*time.Second, "the webhook refuses", func() error { // the API server learns of it by and by
		output, err := c.tryKubectl(config("refused", "yes"), "create", "-f", "-")
		if err == nil {
			c.kubectl(t, "", "delete", "configmap", "refused", "--namespace=extension")
			return errors.New("it was not asked")
		}
		if !strings.Contains(output, "the extension does not want it") {
			return fmt.Errorf("%w: %s", err, output)
		}
		return nil
	})
	c.kubectl(t, config("admitted", "no"), "create", "-f", "-")
	c.kubectl(t, registered, "delete", "-f", "-")
	c.kubectl(t, manifest, "delete", "--wait=false", "-f", "-")
}

// selfSigned is a certificate for a name, and the certificate with its key.
func selfSigned(t *testing.T, name string) (certificate, pair []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour),
		NotBefore: time.Now().Add(-time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return certificate, append(slices.Clone(certificate), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
}

// imagesArePinned looks at a node for the images that came with it: no registry has them, so its kubelet must never collect them.
func imagesArePinned(t *testing.T, c *cluster) {
	output, err := c.on("murano-kube-2", "ctr", "-n", "k8s.io", "images", "ls")
	require.NoError(t, err, output)
	var found []string
	for line := range strings.Lines(output) {
		if name := strings.Fields(line)[0]; strings.HasPrefix(name, "registry.local/") {
			require.Contains(t, line, "io.cri-containerd.pinned=pinned", "%s", output)
			found = append(found, name)
		}
	}
	require.Contains(t, found, "registry.local/demo:1")
}
