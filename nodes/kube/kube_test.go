package kube_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"pgregory.net/rapid"

	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/network"
)

func TestAnyClusterNameBecomesADNSName(t *testing.T) {
	for name, want := range map[string]string{
		"My Cluster": "api.my-cluster.internal", "prod": "api.prod.internal", "": "api.cluster.internal", "Ω": "api.cluster.internal", "--a__b--": "api.a-b.internal",
	} {
		require.Equal(t, want, kube.APIServerName(name))
	}
	label := regexp.MustCompile(`^api\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\.internal$`)
	rapid.Check(t, func(rt *rapid.T) {
		require.Regexp(rt, label, kube.APIServerName(rapid.String().Draw(rt, "name")))
	})
}

func TestCoreDNSForwardsOnlyWhereTheNodesHaveResolvers(t *testing.T) {
	require.NotContains(t, string(kube.CoreDNS(network.DefaultAddressing(), nil, 1, false)), "forward")
	with := string(kube.CoreDNS(network.DefaultAddressing(), []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")}, 3, false))
	require.Contains(t, with, "        forward . 192.0.2.1 192.0.2.2\n")
	require.NotContains(t, with, "FORWARD\n")
	require.Contains(t, with, "replicas: 2\n")
	require.Contains(t, string(kube.CoreDNS(network.DefaultAddressing(), nil, 1, false)), "replicas: 1\n")
	require.NotContains(t, with, "nodeTaintsPolicy")
	require.Contains(t, string(kube.CoreDNS(network.DefaultAddressing(), nil, 2, true)), "whenUnsatisfiable: DoNotSchedule, nodeTaintsPolicy: Honor, labelSelector")
	objects, err := kube.Objects([]byte(with), kube.Access())
	require.NoError(t, err)
	require.Len(t, objects, 18)
	for _, object := range objects {
		require.NotEmpty(t, object.(metav1.Object).GetName())
	}
}

func TestABrokenDocumentIsRefused(t *testing.T) {
	_, err := kube.Objects([]byte("a: [b"))
	require.ErrorContains(t, err, "read Kubernetes objects")
}

func object(text string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &o.Object); err != nil {
		panic(err)
	}
	return o
}

func TestConditionsSayWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		condition kube.Condition
		object    *unstructured.Unstructured
		done      bool
		missing   string
	}{
		{kube.NodeReady, nil, false, "has not registered"},
		{kube.NodeReady, object(`{}`), false, "has not reported"},
		{kube.NodeReady, object(`{"status":{"conditions":[{"type":"Ready","status":"False","message":"cni is missing"}]}}`), false, "cni is missing"},
		{kube.NodeReady, object(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`), true, ""},
		{kube.Available, object(`{"metadata":{"generation":2},"spec":{"replicas":2},"status":{"observedGeneration":1,"replicas":2,"availableReplicas":2}}`), false, "2 of 2"},
		{kube.Available, object(`{"metadata":{"generation":2},"spec":{"replicas":2},"status":{"observedGeneration":2,"replicas":2,"availableReplicas":1}}`), false, "1 of 2"},
		{kube.Available, object(`{"metadata":{"generation":2},"spec":{"replicas":2},"status":{"observedGeneration":2,"replicas":2,"availableReplicas":2}}`), true, ""},
		{kube.Available, object(`{"spec":{"replicas":0},"status":{"replicas":1}}`), false, "0 of 0"},
		{kube.Gone, nil, true, ""},
		{kube.Exists, nil, false, "not there"},
	} {
		done, missing, err := c.condition(c.object)
		require.NoError(t, err)
		require.Equal(t, c.done, done)
		if !done {
			require.Contains(t, missing, c.missing)
		}
	}
}

// api answers as an API server with one node would; each watch sends one event and ends, as a busy server's may.
func api(t *testing.T, readyAfter int32) (*rest.Config, *atomic.Int32) {
	var watches atomic.Int32
	node := func(status string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1","resourceVersion":"1"},"status":{"conditions":[{"type":"Ready","status":%q,"message":"starting"}]}}`, status)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/api/v1":
			_, _ = fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"nodes","kind":"Node"},{"name":"nodes/status","kind":"Node"},{"name":"services","namespaced":true,"kind":"Service"}]}`)
		case r.URL.Query().Get("watch") != "":
			status := "False"
			if watches.Add(1) >= readyAfter {
				status = "True"
			}
			_, _ = fmt.Fprintf(w, `{"type":"MODIFIED","object":%s}`, node(status))
		case r.Method == http.MethodPatch:
			watches.Add(1)
			if r.URL.Path != "/api/v1/namespaces/default/services/demo" || r.Header.Get("Content-Type") != "application/apply-patch+yaml" || r.URL.Query().Get("fieldManager") != "burano" {
				w.WriteHeader(http.StatusTeapot)
			}
			_, _ = fmt.Fprint(w, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"demo"}}`)
		default:
			_, _ = fmt.Fprintf(w, `{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[%s]}`, node("False"))
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}, &watches
}

func TestAWaitGoesOnWhenItsWatchEnds(t *testing.T) {
	config, watches := api(t, 3)
	require.NoError(t, kube.Wait(t.Context(), config, kube.NodeRef("n1"), kube.NodeReady))
	require.EqualValues(t, 3, watches.Load())
}

func TestAWaitThatIsOverSaysWhatWasMissing(t *testing.T) {
	config, _ := api(t, 1000)
	why := errors.New("time is up")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Second, why)
	defer cancel()
	err := kube.Wait(ctx, config, kube.NodeRef("n1"), kube.NodeReady)
	require.ErrorIs(t, err, why)
	require.ErrorContains(t, err, "wait for Node n1")
	require.ErrorContains(t, err, "starting")
}

func TestApplyFindsTheWayToEachKind(t *testing.T) {
	config, patches := api(t, 0)
	service := &corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: metav1.ObjectMeta{Name: "demo"}}
	require.NoError(t, kube.Apply(t.Context(), config, "burano", service))
	require.EqualValues(t, 1, patches.Load())
	require.ErrorContains(t, kube.Apply(t.Context(), config, "burano", &corev1.Service{}), "apiVersion, kind and metadata.name must be set")
	err := kube.Apply(t.Context(), config, "burano", object(`{"apiVersion":"v1","kind":"Gadget","metadata":{"name":"x"}}`))
	require.ErrorContains(t, err, "apply Gadget x")
	require.True(t, strings.Contains(err.Error(), "no matches for kind"))
}

// TestApplySaysWhyItWasRefused has the API server answer in whatever form it was asked for first, as real ones do.
func TestApplySaysWhyItWasRefused(t *testing.T) {
	refusal := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity,
		Message: "spec.ports: Required value"}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		form, _, _ := strings.Cut(strings.Split(r.Header.Get("Accept"), ",")[0], ";")
		known, there := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), form)
		if !there {
			w.WriteHeader(http.StatusNotAcceptable)
			return
		}
		w.Header().Set("Content-Type", form)
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = known.Serializer.Encode(&refusal, w)
	}))
	t.Cleanup(server.Close)
	err := kube.Apply(t.Context(), &rest.Config{Host: server.URL}, "burano", object(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"demo"}}`))
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.ErrorContains(t, err, "apply Service demo: spec.ports: Required value")
}

// The API server tries what is applied, and answers with the result.
func TestLeavesTellsWhatApplyWouldChange(t *testing.T) {
	const there = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"demo","resourceVersion":"1"},"spec":{"ports":[{"port":80,"protocol":"TCP"}],"clusterIP":"10.96.0.9"}}`
	for name, one := range map[string]struct {
		now, then string // "" is not found; the result of an apply, or "invalid"
		leaves    bool
	}{
		"another field changes": {there, strings.ReplaceAll(there, "10.96.0.9", "10.96.0.8"), true},
		"that field changes":    {there, strings.ReplaceAll(there, "80", "81"), false},
		"there is none":         {"", there, false},
		"it would be refused":   {there, "invalid", false},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch {
			case r.URL.Path == "/api/v1":
				_, _ = fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"services","namespaced":true,"kind":"Service"}]}`)
			case r.URL.Path != "/api/v1/namespaces/default/services/demo" || r.Method == http.MethodPatch && r.URL.Query().Get("dryRun") != "All":
				w.WriteHeader(http.StatusTeapot)
			case r.Method == http.MethodGet && one.now == "":
				w.WriteHeader(http.StatusNotFound)
				_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
			case r.Method == http.MethodGet:
				_, _ = fmt.Fprint(w, one.now)
			case one.then == "invalid":
				w.WriteHeader(http.StatusUnprocessableEntity)
				_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
			default:
				_, _ = fmt.Fprint(w, one.then)
			}
		}))
		leaves, err := kube.Leaves(t.Context(), &rest.Config{Host: server.URL}, "burano", object(there), "spec", "ports")
		server.Close()
		require.NoError(t, err, name)
		require.Equal(t, one.leaves, leaves, name)
	}
}
