package kube_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/nodes/kube"
)

// TestAPIsAreInTheWayThatWereAskedForAndThatTheNewVersionDoesNotHave has as many other metrics as an API server has after some days.
func TestAPIsAreInTheWayThatWereAskedForAndThatTheNewVersionDoesNotHave(t *testing.T) {
	others := strings.Repeat("apiserver_request_total{code=\"200\",verb=\"GET\"} 7\n", 100_000)
	metrics := "# TYPE apiserver_request_total counter\n" + others + `# HELP apiserver_requested_deprecated_apis [STABLE] Gauge of deprecated APIs that have been requested
# TYPE apiserver_requested_deprecated_apis gauge
apiserver_requested_deprecated_apis{group="",removed_release="",resource="componentstatuses",subresource="",version="v1"} 1
apiserver_requested_deprecated_apis{group="flowcontrol.apiserver.k8s.io",removed_release="1.32",resource="flowschemas",subresource="",version="v1beta3"} 1
apiserver_requested_deprecated_apis{group="flowcontrol.apiserver.k8s.io",removed_release="1.32",resource="flowschemas",subresource="status",version="v1beta3"} 1
apiserver_requested_deprecated_apis{group="example.k8s.io",removed_release="1.40",resource="things",subresource="",version="v1alpha1"} 1
apiserver_requested_deprecated_apis{group="example.k8s.io",removed_release="1.36",resource="unasked",subresource="",version="v1alpha1"} 0
`
	_, config := hostileServer(t, func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "/metrics", r.URL.Path)
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = io.WriteString(w, metrics)
	})
	found, err := kube.RemovedAPIs(t.Context(), config, 36)
	require.NoError(t, err)
	require.Equal(t, []kube.RemovedAPI{{Resource: "flowschemas", Version: "flowcontrol.apiserver.k8s.io/v1beta3", Removed: "1.32"}}, found)
	require.Equal(t, "flowschemas of flowcontrol.apiserver.k8s.io/v1beta3", found[0].String())

	metrics = ""
	found, err = kube.RemovedAPIs(t.Context(), config, 36)
	require.NoError(t, err)
	require.Empty(t, found)
}

func TestMetricsOfTheAPIServerWithoutEndEnd(t *testing.T) {
	for name, text := range map[string]string{
		"lines":          "apiserver_request_total 7\n",
		"one line":       "apiserver_request_total",
		"the one metric": "apiserver_requested_deprecated_apis{group=\"a\",removed_release=\"1.36\"} 1\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, config := hostileServer(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/plain")
				repeated(w, strings.Repeat(text, 1<<10))
			})
			_, err := kube.RemovedAPIs(t.Context(), config, 36)
			require.True(t, door.IsExceeded(err), "%v", err)
		})
	}
}
