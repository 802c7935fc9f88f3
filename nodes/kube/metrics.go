package kube

import (
	_ "embed"
	"encoding/base64"
	"fmt"
	"net/netip"
	"strings"

	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/systemd"
)

const (
	metricsPair       = "metrics-server"        // of its server
	metricsClientPair = "metrics-server-client" // with which it asks kubelets and the API server
	metricsUser       = "burano:metrics-server"
	metricsName       = "burano-metrics-server" // of its Service: users may have one called metrics-server
	metricsService    = metricsName + ".kube-system.svc"
	// MetricsAPI is the APIService of metrics.
	MetricsAPI = "v1beta1.metrics.k8s.io"
	// MetricsUnit is the unit of metrics-server, on masters whose image has it.
	MetricsUnit = "metrics-server"
	// MetricsPort is where the API servers reach it, on the masters' addresses.
	MetricsPort = 10270
)

//go:embed manifests/metrics-rights.yaml
var metricsRights []byte

//go:embed manifests/metrics-server.yaml
var metricsManifests string

// MetricsRights are the objects that metrics-server needs before it starts.
func MetricsRights() []byte { return metricsRights }

// MetricsObjects have the API server ask metrics-server, which it does as long as the first of them is there.
func MetricsObjects() []Ref {
	return []Ref{
		{APIVersion: "apiregistration.k8s.io/v1", Kind: "APIService", Name: MetricsAPI},
		{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice", Namespace: "kube-system", Name: metricsName},
		{APIVersion: "v1", Kind: "Service", Namespace: "kube-system", Name: metricsName},
	}
}

// MetricsOrders are the certificates of a master's metrics-server.
func (c Cluster) MetricsOrders(node Node) map[string]pki.Order {
	return map[string]pki.Order{
		metricsPair: {Authority: c.Authorities.Kubernetes, Request: pki.Request{CommonName: metricsService, DNS: []string{metricsService}, IP: []netip.Addr{c.Primary(node)},
			Usage: pki.Server}},
		metricsClientPair: {Authority: c.Authorities.Kubernetes, Request: pki.Request{CommonName: metricsUser, Usage: pki.Client}},
	}
}

// MetricsServer is the unit of metrics-server. It runs on masters, which have no pods, and asks every kubelet; the API server shows it users by the front
// proxy's certificate.
func (c Cluster) MetricsServer(node Node, pairs map[string]pki.Pair) (systemd.Unit, error) {
	// It would expect a server name that is written there of kubelets too. That of the address does for the API server.
	content, err := pki.Kubeconfig(c.Name, APIServerURL(c.Name), "", metricsUser, c.Authorities.Kubernetes.Trusted(), pairs[metricsClientPair])
	if err != nil {
		return systemd.Unit{}, err
	}
	access := ssh.File{Path: configs + "metrics-server.conf", Content: content, Mode: 0o600}
	var podless []string
	if c.Podless {
		podless = append(podless, "--node-selector=!"+PodlessLabel) // they have no kubelet to ask
	}
	return systemd.Unit{
		Name:        MetricsUnit,
		Description: "Kubernetes metrics of nodes and pods",
		Command: append(program("metrics-server",
			"--kubeconfig="+access.Path,
			"--authentication-kubeconfig="+access.Path,
			"--authorization-kubeconfig="+access.Path,
			"--bind-address="+c.Primary(node).String(),
			fmt.Sprintf("--secure-port=%d", MetricsPort),
			"--tls-cert-file="+keys+metricsPair+".crt",
			"--tls-private-key-file="+keys+metricsPair+".key",
			"--kubelet-certificate-authority="+keys+"kubernetes-ca.crt",
			"--kubelet-preferred-address-types=InternalIP",
			"--metric-resolution=15s",
			"--profiling=false",
		), podless...),
		Files: append(pairFiles(metricsPair, pairs[metricsPair]), access, c.authorityFile()),
	}, nil
}

// Metrics are the objects that have the API server ask metrics-server, on these masters.
func (c Cluster) Metrics(masters []Node) []byte {
	var endpoints []string
	for _, master := range masters {
		endpoints = append(endpoints, `{addresses: ["`+c.Primary(master).String()+`"], conditions: {ready: true}}`)
	}
	return []byte(strings.NewReplacer("VERSION", c.Addressing.Version(), "ENDPOINTS", strings.Join(endpoints, ", "), "PORT", fmt.Sprint(MetricsPort),
		"AUTHORITY", base64.StdEncoding.EncodeToString(c.Authorities.Kubernetes.Trusted())).Replace(metricsManifests))
}
