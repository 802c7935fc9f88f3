package kube

import (
	"net/http"
	"net/http/httptest"
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
