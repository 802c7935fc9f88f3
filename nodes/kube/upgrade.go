package kube

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/internal/door"
)

// RemovedAPI is a version of an API that a newer Kubernetes does not have any more.
type RemovedAPI struct {
	Resource string // such as flowschemas
	Version  string // such as flowcontrol.apiserver.k8s.io/v1beta3
	Removed  string // the first version of Kubernetes without it, such as 1.37
}

func (a RemovedAPI) String() string { return a.Resource + " of " + a.Version }

// deprecatedMetric counts requests for deprecated APIs, by what they ask for:
// https://kubernetes.io/docs/reference/using-api/deprecation-policy/.
const deprecatedMetric = "apiserver_requested_deprecated_apis"

// RemovedAPIs are those that were asked for since the API server began, and that Kubernetes 1.<minor> does not have.
func RemovedAPIs(ctx context.Context, config *rest.Config, minor int) ([]RemovedAPI, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the API server: %w", err)
	}
	list, err := removedAPIs(ctx, client.RESTClient(), minor)
	if err != nil {
		return nil, fmt.Errorf("read the metrics of the API server: %w", err)
	}
	return list, nil
}

const (
	metricsPath = "/metrics"
	mostMetrics = 1 << 20 // bytes of the one metric
)

// sample is a value of a gauge with its labels.
type sample struct {
	labels map[string]string
	value  float64
}

// gauge reads one gauge of the API server. The other metrics are many thousand lines.
func gauge(ctx context.Context, client rest.Interface, name string) (samples []sample, err error) {
	metrics, err := client.Get().AbsPath(metricsPath).Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = metrics.Close() }()
	own := door.Buffer{Limit: mostMetrics, What: "the metric " + name}
	lines := bufio.NewScanner(metrics)
	lines.Buffer(nil, 2*mostLine)
	for lines.Scan() {
		if bytes.Contains(lines.Bytes(), []byte(name)) {
			if _, err := fmt.Fprintf(&own, "%s\n", lines.Bytes()); err != nil {
				return nil, err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(own.Bytes()))
	if err != nil {
		return nil, err
	}
	for _, metric := range families[name].GetMetric() {
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		samples = append(samples, sample{labels, metric.GetGauge().GetValue()})
	}
	return samples, nil
}

func removedAPIs(ctx context.Context, client rest.Interface, minor int) (list []RemovedAPI, err error) {
	samples, err := gauge(ctx, client, deprecatedMetric)
	if err != nil {
		return nil, err
	}
	for _, one := range samples {
		labels := one.labels
		if removed := labels["removed_release"]; one.value > 0 && removed != "" && minorOf(removed) <= minor {
			version := labels["version"]
			if labels["group"] != "" {
				version = labels["group"] + "/" + version
			}
			list = append(list, RemovedAPI{Resource: labels["resource"], Version: version, Removed: removed})
		}
	}
	slices.SortFunc(list, func(a, b RemovedAPI) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(list), nil
}

// minorOf is 37 of 1.37.
func minorOf(release string) int {
	_, text, _ := strings.Cut(release, ".")
	minor, _ := strconv.Atoi(text)
	return minor
}

// TightBudget is a disruption budget that lets no pod go.
type TightBudget struct {
	Name            string // with its namespace
	Healthy, Wanted int    // pods
}

// TightBudgets are the disruption budgets that let none of the pods go that they are for.
func TightBudgets(ctx context.Context, config *rest.Config) (list []TightBudget, err error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the API server: %w", err)
	}
	found, err := client.PolicyV1().PodDisruptionBudgets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the disruption budgets: %w", err)
	}
	for _, one := range found.Items {
		if one.Status.ExpectedPods > 0 && one.Status.DisruptionsAllowed == 0 {
			list = append(list, TightBudget{one.Namespace + "/" + one.Name, int(one.Status.CurrentHealthy), int(one.Status.DesiredHealthy)})
		}
	}
	return list, nil
}
