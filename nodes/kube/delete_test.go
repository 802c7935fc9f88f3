package kube

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// The API server keeps the pods of a ReplicationController unless a deletion asks for more.
func TestADeletionTakesControlledObjectsWithIt(t *testing.T) {
	var body, path string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		read, _ := io.ReadAll(r.Body)
		body, path = string(read), r.Method+" "+r.URL.Path
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Success"}`))
	}))
	defer server.Close()
	for kind, resource := range map[string]string{"Pod": "pods", "ReplicationController": "replicationcontrollers", "Service": "services"} {
		require.NoError(t, Delete(t.Context(), &rest.Config{Host: server.URL}, Ref{APIVersion: "v1", Kind: kind, Namespace: "default", Name: "web"}))
		require.Equal(t, "DELETE /api/v1/namespaces/default/"+resource+"/web", path)
		require.Contains(t, body, `"propagationPolicy":"Background"`)
	}
}

func TestLabelsAreReadOfAnyKind(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/api/v1/namespaces/default/services/web" {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`))
			return
		}
		_, _ = w.Write([]byte(`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"web","labels":{"app":"web"}}}`))
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	labels, found, err := Labels(t.Context(), config, Ref{APIVersion: "v1", Kind: "Service", Namespace: "default", Name: "web"})
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, map[string]string{"app": "web"}, labels)
	_, found, err = Labels(t.Context(), config, Ref{APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: "web"})
	require.NoError(t, err)
	require.False(t, found)
}
