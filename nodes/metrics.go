package nodes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/plan"
)

//go:embed scripts/end-unit.sh
var endUnitScript string

// metricsPatience is how long metrics-server may take until it answers.
const metricsPatience = time.Minute

// metricsSteps run metrics-server.
type metricsSteps struct{ *deployment }

func (d metricsSteps) steps() []step {
	return []step{{name: stepMetrics, on: d.leads(), skipIf: !d.cluster.config.Metrics && !d.again, after: here(stepAPIReady, stepAccess),
		soft: []soft{{name: stepAPIServes, nodes: d.besidesLead(), limit: joinGrace}},
		runKnowing: func(ctx context.Context, node Node, done plan.Progress) error {
			return d.metrics(ctx, node, through(done, serving(d.deployment, Master), stepAPIServes))
		}}}
}

// metrics makes the masters whose image has metrics-server run it, and the API server ask them; or it ends both. It waits until they answer, but not until
// they have values, which takes two rounds of the kubelets. A metrics API of another maker stays as it is.
func (d metricsSteps) metrics(ctx context.Context, lead Node, serving []Node) error {
	config, err := d.bootstrap(ctx)
	if err != nil {
		return err
	}
	asked, ours, err := metricsAPI(ctx, config)
	if err != nil {
		return err
	}
	able := only(serving, func(node Node) bool { return d.found(node).facts.metrics })
	switch wanted := d.cluster.config.Metrics; {
	case wanted && asked && !ours:
		d.report(ctx, lead, "the cluster has a metrics-server of its own, which stays")
		return d.endMetrics(ctx, nil, able)
	case wanted && len(able) > 0:
		return d.beginMetrics(ctx, lead, config, able)
	case wanted:
		d.report(ctx, lead, "no metrics-server: the image of the masters has none. kubectl top and HorizontalPodAutoscalers work with masters of a newer image")
	}
	if !ours {
		config = nil
	}
	return d.endMetrics(ctx, config, able)
}

// beginMetrics has masters run metrics-server, and then the API server ask them.
func (d metricsSteps) beginMetrics(ctx context.Context, lead Node, config *rest.Config, masters []Node) error {
	if err := d.applyCommon(ctx, lead, config, kube.MetricsRights()); err != nil {
		return err
	}
	var serving []kube.Node
	for _, master := range masters {
		if err := d.start(ctx, master, false, kube.MetricsUnit); err != nil {
			return err
		}
		if err := d.metricsServe(ctx, master); err != nil {
			return err
		}
		serving = append(serving, kubeNode(master))
	}
	return d.apply(ctx, lead, config, d.design.kube().Metrics(serving))
}

// metricsServe waits until a master's metrics-server answers: a kind that no server answers for disturbs every client that asks for all kinds.
func (d metricsSteps) metricsServe(ctx context.Context, master Node) error {
	client, err := d.cluster.connect(ctx, master)
	if err != nil {
		return err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(d.design.authorities.Kubernetes.Trusted())
	address := net.JoinHostPort(d.design.kube().Primary(kubeNode(master)).String(), strconv.Itoa(kube.MetricsPort))
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return client.DialContext(ctx, "tcp", address)
		},
		TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12},
	}
	defer transport.CloseIdleConnections()
	asking := &http.Client{Transport: transport}
	return d.guarded(ctx, master, []string{kube.MetricsUnit}, func(ctx context.Context) error {
		err := wait.Every(pollEvery).For(metricsPatience).Until(ctx, func(ctx context.Context) error { return answers(ctx, asking, "https://"+address+"/livez") })
		if err != nil {
			return fmt.Errorf("metrics-server does not answer (the property enableMetrics: false does without it): %w", err)
		}
		return nil
	})
}

// endMetrics removes the metrics API unless another maker's server answers it (config is nil then), and ends metrics-server on masters.
func (d metricsSteps) endMetrics(ctx context.Context, config *rest.Config, masters []Node) error {
	if config != nil {
		for _, ref := range kube.MetricsObjects() {
			if err := kube.Delete(ctx, config, ref); err != nil {
				return err
			}
		}
	}
	for _, master := range masters {
		out, err := d.script(ctx, master, "end metrics-server", endUnitScript, map[string]string{"UNIT": kube.MetricsUnit})
		if err != nil {
			return err
		}
		if strings.TrimSpace(out) == "ended" {
			d.report(ctx, master, "metrics-server ended")
		}
	}
	return nil
}

// metricsAPI returns whether the API server has a metrics API, and whether Burano has made it.
func metricsAPI(ctx context.Context, config *rest.Config) (asked, ours bool, err error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return false, false, err
	}
	var found *unstructured.Unstructured
	err = wait.Every(pollEvery).For(time.Minute).Until(ctx, func(ctx context.Context) (err error) {
		found, err = client.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}).Get(ctx, kube.MetricsAPI, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return wait.Again(err)
		}
		return err
	})
	if apierrors.IsNotFound(err) {
		return false, false, nil
	}
	if err != nil {
		return false, false, fmt.Errorf("look who answers for metrics: %w", err)
	}
	for _, entry := range found.GetManagedFields() {
		ours = ours || entry.Manager == kube.Manager
	}
	return true, ours, nil
}
