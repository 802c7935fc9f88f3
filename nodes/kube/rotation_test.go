package kube_test

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/pki"
)

// objects are an API server's objects by their paths. It stores what clients send; changed is called with the path, under its lock.
type objects struct {
	sync.Mutex
	all     map[string]map[string]any
	patched []string
	changed func(path string)
}

func (o *objects) serve(t *testing.T) *rest.Config {
	server := httptest.NewServer(o)
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

func (o *objects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.Lock()
	defer o.Unlock()
	w.Header().Set("Content-Type", "application/json")
	body, _ := io.ReadAll(r.Body)
	found, there := o.all[r.URL.Path]
	switch {
	case r.Method == http.MethodGet && !there && (strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/") || strings.Count(r.URL.Path, "/") > 4):
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		return
	case r.Method == http.MethodGet && !there: // a list of all namespaces
		items := []any{}
		for _, key := range slices.Sorted(maps.Keys(o.all)) {
			if strings.HasPrefix(key, path.Dir(r.URL.Path)+"/") && path.Base(path.Dir(key)) == path.Base(r.URL.Path) {
				items = append(items, o.all[key])
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"items": items})
		return
	case r.Method == http.MethodPatch:
		var patch map[string]any
		_ = json.Unmarshal(body, &patch)
		merge(found, patch)
		o.patched = append(o.patched, strings.TrimSpace(r.URL.Path+" "+string(body)))
	}
	if r.Method != http.MethodGet && o.changed != nil {
		o.changed(r.URL.Path)
	}
	_ = json.NewEncoder(w).Encode(o.all[r.URL.Path])
}

// merge is a JSON merge patch (RFC 7396).
func merge(object, patch map[string]any) {
	for key, value := range patch {
		inner, nested := value.(map[string]any)
		if below, there := object[key].(map[string]any); nested && there {
			merge(below, inner)
		} else if value == nil {
			delete(object, key)
		} else {
			object[key] = value
		}
	}
}

func parsed(t *testing.T, texts map[string]string) *objects {
	t.Helper()
	o := &objects{all: map[string]map[string]any{}}
	for key, text := range texts {
		object := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(text), &object), key)
		o.all[key] = object
	}
	return o
}

func TestEverySecretIsWrittenAsItIs(t *testing.T) {
	o := parsed(t, map[string]string{
		"/api/v1/namespaces/default/secrets/one": `{"metadata":{"namespace":"default","name":"one"},"data":{"a":"Yg=="}}`,
		"/api/v1/namespaces/other/secrets/two":   `{"metadata":{"namespace":"other","name":"two"},"immutable":true}`,
	})
	count, err := kube.RewriteSecrets(t.Context(), o.serve(t))
	require.NoError(t, err)
	require.Equal(t, 2, count)
	require.Equal(t, []string{"/api/v1/namespaces/default/secrets/one {}", "/api/v1/namespaces/other/secrets/two {}"}, o.patched)
}

func TestTokensInSecretsAreRenewedWhereAFormerKeySignedThem(t *testing.T) {
	token := func(key string) string {
		return base64.StdEncoding.EncodeToString([]byte(base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","kid":"`+key+`"}`)) + ".e30.x"))
	}
	const former, current = "/api/v1/namespaces/default/secrets/former", "/api/v1/namespaces/default/secrets/current"
	o := parsed(t, map[string]string{
		former:  `{"metadata":{"namespace":"default","name":"former"},"type":"kubernetes.io/service-account-token","data":{"token":"` + token("old") + `"}}`,
		current: `{"metadata":{"namespace":"default","name":"current"},"type":"kubernetes.io/service-account-token","data":{"token":"` + token("new") + `"}}`,
	})
	o.changed = func(string) { // as the controller-manager does
		time.AfterFunc(50*time.Millisecond, func() {
			o.Lock()
			defer o.Unlock()
			o.all[former]["data"] = map[string]any{"token": token("new")}
		})
	}
	renewed, err := kube.RenewTokenSecrets(t.Context(), o.serve(t), []string{"old"})
	require.NoError(t, err)
	require.Equal(t, []string{"default/former"}, renewed)
	require.Equal(t, []string{former + ` {"data":{"token":null}}`}, o.patched)
	require.Equal(t, "", kube.SignedBy("no token"))
}

func TestPodsThatKnowTheAuthorityAreReplacedByTheirWorkloads(t *testing.T) {
	const began = `"creationTimestamp":"2026-01-01T00:00:00Z"`
	const volumes = `"spec":{"volumes":[{"name":"x","projected":{"sources":[{"configMap":{"name":"kube-root-ca.crt"}}]}}],"containers":[]}`
	const deployment = "/apis/apps/v1/namespaces/default/deployments/web"
	pod := func(name, owner string) string {
		return `{"metadata":{"namespace":"default","name":"` + name + `",` + began + owner + `},` + volumes + `}`
	}
	o := parsed(t, map[string]string{
		"/api/v1/namespaces/default/pods/web-1": pod("web-1", `,"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-x","controller":true}]`),
		"/api/v1/namespaces/default/pods/bare":  pod("bare", ""),
		"/api/v1/namespaces/default/pods/job":   pod("job", `,"ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"job","controller":true}]`),
		// It knows nothing of the API.
		"/api/v1/namespaces/default/pods/closed":             `{"metadata":{"namespace":"default","name":"closed",` + began + `},"spec":{"containers":[]}}`,
		"/apis/apps/v1/namespaces/default/replicasets/web-x": `{"metadata":{"namespace":"default","name":"web-x","ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","controller":true}]}}`,
		deployment: `{"metadata":{"namespace":"default","name":"web","generation":1},"spec":{"replicas":1},"status":{"observedGeneration":1,"replicas":1,"updatedReplicas":1,"availableReplicas":1}}`,
	})
	o.changed = func(string) { // as the controller-manager does, which needs a moment
		o.all[deployment]["status"] = map[string]any{"replicas": 2, "updatedReplicas": 1, "availableReplicas": 2}
		time.AfterFunc(50*time.Millisecond, func() {
			o.Lock()
			defer o.Unlock()
			o.all["/api/v1/namespaces/default/pods/web-1"]["metadata"].(map[string]any)["annotations"] = map[string]any{"burano.io/trusts": "both"}
			o.all[deployment]["status"] = map[string]any{"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
		})
	}
	config := o.serve(t)
	for _, want := range []int{1, 0} {
		count, left, err := kube.RestartKnowing(t.Context(), config, "both")
		require.NoError(t, err)
		require.Equal(t, want, count)
		require.Equal(t, []string{"default/bare", "default/job"}, left)
	}
	require.Equal(t, []string{deployment + ` {"spec":{"template":{"metadata":{"annotations":{"burano.io/trusts":"both"}}}}}`}, o.patched, "once")
}

func TestExtensionsAreNotToldOfFormerAuthorities(t *testing.T) {
	authority := func(name string) string {
		_, pair, err := pki.NewAuthority(name, time.Now())
		require.NoError(t, err)
		return string(pair.Certificate)
	}
	former, clients, calls := authority("former"), authority("clients"), authority("calls")
	const place = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
	text, err := json.Marshal(map[string]any{"metadata": map[string]string{"namespace": "kube-system", "name": "extension-apiserver-authentication"},
		"data": map[string]string{"client-ca-file": former + clients, "requestheader-client-ca-file": calls, "requestheader-allowed-names": "[]"}})
	require.NoError(t, err)
	o := parsed(t, map[string]string{place: string(text)})
	changes := 0
	o.changed = func(string) { changes++ }
	config := o.serve(t)
	for range 2 {
		require.NoError(t, kube.KeepAuthorities(t.Context(), config, []byte(clients), []byte(calls)))
		require.Equal(t, map[string]any{"client-ca-file": clients, "requestheader-client-ca-file": calls, "requestheader-allowed-names": "[]"}, o.all[place]["data"])
	}
	require.Equal(t, 1, changes)
}

func TestANamespaceIsWaitedForUntilItOffersTheAuthorities(t *testing.T) {
	const offered = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt"
	o := parsed(t, map[string]string{
		"/api/v1/namespaces/default": `{"metadata":{"name":"default"},"status":{"phase":"Active"}}`,
		"/api/v1/namespaces/gone":    `{"metadata":{"name":"gone"},"status":{"phase":"Terminating"}}`,
		offered:                      `{"metadata":{"namespace":"default","name":"kube-root-ca.crt"},"data":{"ca.crt":"one"}}`,
	})
	config := o.serve(t)
	time.AfterFunc(100*time.Millisecond, func() {
		o.Lock()
		defer o.Unlock()
		o.all[offered]["data"] = map[string]any{"ca.crt": "both"}
	})
	require.NoError(t, kube.AwaitRoot(t.Context(), config, []byte("both")))
}
