package e2e

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// steadyRoutes are the routes that clients use: a port of a Service, a route of Gateway API, and one whose pods are replaced again and
// again.
const steadyRoutes = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Service
metadata: {name: port, namespace: shop}
spec: {type: LoadBalancer, selector: {app: kept}, ports: [{port: 8123, targetPort: 8080}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec:
  gatewayClassName: burano
  listeners:
  - {name: kept, port: 8088, protocol: HTTP}
  - {name: moving, port: 8089, protocol: HTTP}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: kept, namespace: shop}
spec:
  parentRefs: [{name: edge, sectionName: kept}]
  rules: [{backendRefs: [{name: kept, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: moving, namespace: shop}
spec:
  parentRefs: [{name: edge, sectionName: moving}]
  rules: [{backendRefs: [{name: moving, port: 80}]}]
`

// steadyPorts are the gateways' ports of these routes.
var steadyPorts = []string{"8123", "8088", "8089"}

func application(name string, replicas int) string {
	return fmt.Sprintf(`
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: shop}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      containers:
      - {name: demo, image: "registry.local/demo:1", imagePullPolicy: IfNotPresent, readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1}}
---
apiVersion: v1
kind: Service
metadata: {name: %[1]s, namespace: shop}
spec: {selector: {app: %[1]s}, ports: [{port: 80, targetPort: 8080}]}
`, name, replicas)
}

// TestNothingIsDroppedWhileAClusterChanges sends requests through two gateways of three, on new and on open connections. Meanwhile routes, backends,
// hosts, certificates and ports change at random in Kubernetes, pods behind one of the routes are replaced, and the third gateway is drained and comes
// back. No request may fail. `make soak` runs it; TestNothingIsDroppedWhileRoutesChange in package gateway has more changes a second.
func TestNothingIsDroppedWhileAClusterChanges(t *testing.T) {
	soakOnly(t, "make soak runs this")
	l := start(t)
	demo := l.user(t, "burano-demo")
	l.deleteIfFailed(t, "gatewayapi")
	l.run(t, l.as("burano-demo"), "burano", "deploy", "test/e2e/testdata/gatewayapi.yaml", "--follow")
	environment := environmentNamed(t, demo, "gatewayapi")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string)}
	gateways := s.floating(t, "murano-gateway-1", "murano-gateway-2")
	manifest := steadyRoutes + application("kept", 2) + application("moving", 2) + application("one", 1) + application("two", 1)
	s.cluster.kubectl(t, manifest, "apply", "-f", "-")
	s.cluster.kubectl(t, "", "--namespace", "shop", "wait", "--for=condition=Available", "deployment", "--all", "--timeout=120s")
	loads := map[string]*load{}
	for _, port := range steadyPorts {
		for _, address := range gateways {
			l.eventually(t, time.Minute, "port "+port+" of a gateway answers", func() error {
				_, err := get("http://" + address + ":" + port + "/")
				return err
			})
		}
	}
	for _, port := range steadyPorts {
		for name, one := range startLoads(t, gateways, port, loadRate) {
			loads[name+", port "+port] = one
		}
	}

	c := newRandomChanges(t, s.cluster)
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- c.run(stop) }()
	for range 2 {
		s.act(t, "scaling-cluster", "scaleGatewaysDown", map[string]any{"count": 1})
		s.act(t, "scaling-cluster", "scaleGatewaysUp", map[string]any{"count": 1})
	}
	close(stop)
	require.NoError(t, <-ended)
	for _, name := range slices.Sorted(maps.Keys(loads)) {
		loads[name].end()
		t.Logf("%s: %s", name, loads[name])
	}
	t.Logf("%d changes: %v", c.count, c.made)
	for name, one := range loads {
		require.Empty(t, one.failed, name)
		require.Positive(t, one.fresh, name)
		require.Positive(t, one.kept, name)
	}
	require.Greater(t, c.count, 20)
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "gatewayapi")
}

// randomChanges makes random changes with kubectl.
type randomChanges struct {
	cluster     *cluster
	random      *rand.Rand
	certificate [2]string // and its key, in base64
	count       int
	made        map[string]int
}

func newRandomChanges(t *testing.T, c *cluster) *randomChanges {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	certificate, pair := selfSigned(t, "*.example.org")
	return &randomChanges{
		cluster: c, random: rand.New(rand.NewPCG(seed, 0)), made: map[string]int{},
		certificate: [2]string{base64.StdEncoding.EncodeToString(certificate), base64.StdEncoding.EncodeToString(pair)},
	}
}

// run makes changes one after the other until it is stopped.
func (c *randomChanges) run(stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		kind, manifest, args := c.next()
		if output, err := c.cluster.tryKubectl(manifest, append([]string{"--namespace", "shop"}, args...)...); err != nil {
			return fmt.Errorf("%s: %w: %s", kind, err, output)
		}
		c.count++
		c.made[kind]++
	}
}

// next is kubectl's next command.
func (c *randomChanges) next() (kind, manifest string, args []string) {
	number := c.random.IntN(6)
	host := fmt.Sprintf("host-%d.example.org", number)
	backend := func() string { return []string{"one", "two"}[c.random.IntN(2)] }
	apply := []string{"apply", "-f", "-"}
	switch c.random.IntN(8) {
	case 0:
		return "an Ingress", fmt.Sprintf(`
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: ingress-%d}
spec:
  ingressClassName: burano
  tls: [{hosts: [%s], secretName: secret-%d}]
  rules: [{host: %s, http: {paths: [{path: /%d, pathType: Prefix, backend: {service: {name: %s, port: {number: 80}}}}]}}]
`, number, host, c.random.IntN(3), host, c.random.IntN(3), backend()), apply
	case 1:
		return "an Ingress that goes", "", []string{"delete", "ingress", fmt.Sprintf("ingress-%d", number), "--ignore-not-found"}
	case 2:
		return "a route", fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: route-%d}
spec:
  parentRefs: [{name: other}]
  hostnames: [%s]
  rules:
  - matches: [{path: {value: /%d}, headers: [{name: x-%d, value: "1"}]}]
    backendRefs: [{name: one, port: 80, weight: %d}, {name: two, port: 80, weight: 1}]
`, number, host, c.random.IntN(3), c.random.IntN(3), 1+c.random.IntN(9)), apply
	case 3:
		return "a route that goes", "", []string{"delete", "httproute", fmt.Sprintf("route-%d", number), "--ignore-not-found"}
	case 4:
		return "a port", fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: other}
spec: {gatewayClassName: burano, listeners: [{name: one, port: 8090, protocol: HTTP}, {name: two, port: %d, protocol: HTTP}]}
`, 8091+number), apply
	case 5:
		return "a certificate", fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {name: secret-%d, annotations: {changed: "%d"}}
type: kubernetes.io/tls
data: {tls.crt: %s, tls.key: %s}
`, c.random.IntN(3), c.count, c.certificate[0], c.certificate[1]), apply
	case 6:
		return "backends", "", []string{"scale", "deployment", backend(), fmt.Sprintf("--replicas=%d", 1+c.random.IntN(3))}
	default:
		return "pods that are replaced", "", strings.Fields("rollout restart deployment moving")
	}
}
