package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/cmd/burano/operator"
	"github.com/burano/burano/cmd/burano/server"
)

// exported are the names of all metrics of a server that has started, also of metrics without a value yet.
func exported(t *testing.T) map[string]bool {
	t.Helper()
	address, listen := freeAddress(t), freeAddress(t)
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	keystone := &http.Server{Handler: littleKeystone(address, 0)}
	go func() { _ = keystone.Serve(listener) }()
	t.Cleanup(func() { require.NoError(t, keystone.Close()) })
	for name, value := range map[string]string{"OS_AUTH_URL": "http://" + address + "/v3", "OS_USERNAME": "burano", "OS_PASSWORD": "p", "OS_PROJECT_NAME": "service",
		"OS_USER_DOMAIN_NAME": "Default", "OS_PROJECT_DOMAIN_NAME": "Default", "OS_CLOUD": "", "OS_CLIENT_CONFIG_FILE": os.DevNull} {
		t.Setenv(name, value)
	}
	options := &server.Options{}
	flags := options.Flags()
	require.NoError(t, flags.Parse([]string{"--state", filepath.Join(t.TempDir(), "state"), "--listen", listen}))
	options.Registry = prometheus.NewRegistry()
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Run(ctx, options, operator.Examine, slog.New(slog.DiscardHandler)) }()
	require.Eventually(t, func() bool { status, _ := get("http://" + listen + "/readyz"); return status == 200 }, time.Minute, 20*time.Millisecond)
	_, err = options.Registry.Gather()
	require.NoError(t, err)
	_, body := get("http://" + listen + "/metrics")
	require.Contains(t, body, "burano_tasks_waiting 0")
	stop()
	require.NoError(t, <-served)

	names := map[string]bool{}
	descriptions := make(chan *prometheus.Desc)
	go func() {
		options.Registry.Describe(descriptions)
		close(descriptions)
	}()
	name := regexp.MustCompile(`fqName: "(\w+)"`)
	for description := range descriptions {
		names[name.FindStringSubmatch(description.String())[1]] = true
	}
	return names
}

// metricName finds metrics in PromQL.
var metricName = regexp.MustCompile(`\b(?:burano|go|process)_\w+`)

// expressions are all texts below the key "expr" in a document.
func expressions(value any) (found []string) {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			if text, ok := item.(string); ok && (key == "expr" || key == "query") {
				found = append(found, text)
			}
			found = append(found, expressions(item)...)
		}
	case []any:
		for _, item := range v {
			found = append(found, expressions(item)...)
		}
	}
	return found
}

func TestDashboardAlertsAndDocumentationNameTheMetricsThatThereAre(t *testing.T) {
	names := exported(t)
	require.True(t, names["burano_http_requests_total"])
	docs := filepath.Join("..", "..", "docs")
	read := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join(docs, name))
		require.NoError(t, err)
		return text
	}
	var dashboard, alerts any
	require.NoError(t, json.Unmarshal(read("grafana-dashboard.json"), &dashboard))
	require.NoError(t, yaml.Unmarshal(read("alerts.yaml"), &alerts))
	for name, document := range map[string]any{"grafana-dashboard.json": dashboard, "alerts.yaml": alerts} {
		all := expressions(document)
		require.NotEmpty(t, all, name)
		for _, expression := range all {
			for _, metric := range metricName.FindAllString(expression, -1) {
				base := metric
				for _, part := range []string{"_bucket", "_sum", "_count"} {
					if cut, ok := strings.CutSuffix(metric, part); ok && !names[metric] {
						base = cut
					}
				}
				require.True(t, names[base], "%s asks for %s, which the server does not have", name, metric)
			}
		}
	}
	chapter := string(read("monitoring.md"))
	for name := range names {
		if strings.HasPrefix(name, "burano_") {
			require.Contains(t, chapter, "`"+name+"`", "docs/monitoring.md does not say what it is")
		}
	}
	for _, name := range regexp.MustCompile("`burano_[a-z_]+`").FindAllString(chapter, -1) {
		name = strings.Trim(name, "`")
		require.True(t, names[name], "docs/monitoring.md names %s, which the server does not have", name)
	}
}
