package kube

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// After the death of the member that led, the API server answers like this until etcd has elected another one.
func TestACordonOutlastsAnElectionOfEtcd(t *testing.T) {
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if calls.Add(1) == 1 {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"etcdserver: request timed out","code":500}`))
			return
		}
		_, _ = w.Write([]byte(`{"kind":"Node","apiVersion":"v1","metadata":{"name":"a"}}`))
	}))
	defer server.Close()
	require.NoError(t, Cordon(t.Context(), &rest.Config{Host: server.URL}, "a"))
	require.EqualValues(t, 2, calls.Load())
}

// Kubernetes takes the node for a living one, since it has not noticed yet.
func TestTheForceOfADrainIsForNodesThatAreOff(t *testing.T) {
	for _, off := range []bool{true, false} {
		var calls []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			body, _ := io.ReadAll(r.Body)
			switch {
			case r.Method == http.MethodGet && r.URL.Path == "/api/v1/nodes/a":
				_, _ = w.Write([]byte(`{"kind":"Node","apiVersion":"v1","metadata":{"name":"a"},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`))
			case r.Method == http.MethodGet && len(calls) > 0:
				_, _ = w.Write([]byte(`{"kind":"PodList","apiVersion":"v1","items":[]}`))
			case r.Method == http.MethodGet:
				_, _ = w.Write([]byte(`{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"web","namespace":"default","uid":"1"}}]}`))
			default:
				calls = append(calls, r.Method+" "+r.URL.Path+" "+strconv.FormatBool(strings.Contains(string(body), `"gracePeriodSeconds":0`)))
				_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Success"}`))
			}
		}))
		defer server.Close()
		config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
		require.NoError(t, Drain(t.Context(), config, "a", off))
		wanted := map[bool]string{true: "DELETE /api/v1/namespaces/default/pods/web true", false: "POST /api/v1/namespaces/default/pods/web/eviction false"}
		require.Equal(t, []string{wanted[off]}, calls)
	}
}
