package kube

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

// oneNode is an API server with at most one node; node is nil while there is none.
func oneNode(t *testing.T, node map[string]any) (config *rest.Config, now func() *corev1.Node, changes *int) {
	changes = new(int)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body)
		switch {
		case r.Method == http.MethodGet && node == nil:
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`))
			return
		case r.Method == http.MethodPost:
			*changes++
			node = body
		case r.Method == http.MethodPatch:
			*changes++
			version, _ := body["metadata"].(map[string]any)["resourceVersion"].(string)
			if version != "" && version != node["metadata"].(map[string]any)["resourceVersion"] {
				w.WriteHeader(http.StatusConflict)
				_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`))
				return
			}
			merge(node, body)
		}
		_ = json.NewEncoder(w).Encode(node)
	}))
	t.Cleanup(server.Close)
	now = func() *corev1.Node {
		text, err := json.Marshal(node)
		require.NoError(t, err)
		found := &corev1.Node{}
		require.NoError(t, json.Unmarshal(text, found))
		return found
	}
	return &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, now, changes
}

// merge is RFC 7396.
func merge(into, patch map[string]any) {
	for key, value := range patch {
		object, isObject := value.(map[string]any)
		former, was := into[key].(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isObject && was:
			merge(former, object)
		default:
			into[key] = value
		}
	}
}

func TestANodeIsMadeAsItIsToBeBeforeItsKubeletRegistersIt(t *testing.T) {
	config, now, changes := oneNode(t, nil)
	require.NoError(t, ApplySettings(t.Context(), config, "a", Settings{}))
	require.Zero(t, *changes, "without settings its kubelet makes it")
	require.NoError(t, ApplySettings(t.Context(), config, "a", Settings{Labels: map[string]string{"disk": "fast"}, Locked: true}))
	require.Equal(t, "fast", now().Labels["disk"])
	require.True(t, now().Spec.Unschedulable)
	require.Equal(t, []corev1.Taint{{Key: LockedTaint, Effect: corev1.TaintEffectNoExecute}}, now().Spec.Taints)
}

func TestSettingsLeaveAloneWhatOthersHaveSet(t *testing.T) {
	config, now, changes := oneNode(t, map[string]any{
		"kind": "Node", "apiVersion": "v1",
		"metadata": map[string]any{"name": "a", "resourceVersion": "1", "labels": map[string]any{"theirs": "yes", "disk": "slow"}},
		"spec":     map[string]any{"taints": []any{map[string]any{"key": "theirs", "effect": "NoSchedule"}}},
	})
	first := Settings{Labels: map[string]string{"disk": "fast", "zone": "b"}, Taints: []Taint{{Key: "gpu", Value: "yes", Effect: "NoSchedule"}}, Cordoned: true}
	require.NoError(t, ApplySettings(t.Context(), config, "a", first))
	require.Equal(t, map[string]string{"theirs": "yes", "disk": "fast", "zone": "b"}, now().Labels)
	require.Equal(t, []corev1.Taint{{Key: "theirs", Effect: "NoSchedule"}, {Key: "gpu", Value: "yes", Effect: "NoSchedule"}}, now().Spec.Taints)
	require.True(t, now().Spec.Unschedulable)

	require.NoError(t, ApplySettings(t.Context(), config, "a", first))
	require.Equal(t, 1, *changes, "the same again changes nothing")

	require.NoError(t, ApplySettings(t.Context(), config, "a", first.With(map[string]string{"zone": "c"}, []string{"disk"}, nil, []string{"gpu"})))
	require.Equal(t, map[string]string{"theirs": "yes", "zone": "c"}, now().Labels)
	require.Equal(t, []corev1.Taint{{Key: "theirs", Effect: "NoSchedule"}}, now().Spec.Taints)

	require.NoError(t, ApplySettings(t.Context(), config, "a", Settings{}))
	require.Equal(t, map[string]string{"theirs": "yes"}, now().Labels)
	require.False(t, now().Spec.Unschedulable)
	require.NotContains(t, now().Annotations, annotationSet)
}

func TestANodeThatSomebodyElseHasCordonedStaysSo(t *testing.T) {
	config, now, _ := oneNode(t, map[string]any{"kind": "Node", "apiVersion": "v1",
		"metadata": map[string]any{"name": "a", "resourceVersion": "1", "labels": map[string]any{}}, "spec": map[string]any{"unschedulable": true}})
	require.NoError(t, ApplySettings(t.Context(), config, "a", Settings{Locked: true}))
	require.NoError(t, ApplySettings(t.Context(), config, "a", Settings{}))
	require.True(t, now().Spec.Unschedulable)
	require.Empty(t, now().Spec.Taints)
	require.NoError(t, Open(t.Context(), config, "a"))
	require.False(t, now().Spec.Unschedulable)
}

// A lock begins as a removal does, with a node that is marked as leaving.
func TestARemovalThatIsGivenUpUnlocksNothing(t *testing.T) {
	config, now, _ := oneNode(t, map[string]any{"kind": "Node", "apiVersion": "v1",
		"metadata": map[string]any{"name": "a", "resourceVersion": "1", "labels": map[string]any{}}, "spec": map[string]any{}})
	require.NoError(t, Cordon(t.Context(), config, "a"))
	require.NoError(t, ApplySettings(t.Context(), config, "a", Settings{Locked: true}))
	require.NotContains(t, now().Annotations, annotationLeaving)
	for range 2 {
		require.NoError(t, Uncordon(t.Context(), config, "a"))
		require.True(t, now().Spec.Unschedulable)
		require.NoError(t, Cordon(t.Context(), config, "a"))
	}
	require.NoError(t, Uncordon(t.Context(), config, "a"))
	require.NoError(t, ApplySettings(t.Context(), config, "a", Settings{}))
	require.False(t, now().Spec.Unschedulable)
}

func TestSettingsThatKubernetesWouldRefuseAreRefusedBefore(t *testing.T) {
	for _, bad := range []Settings{
		{Labels: map[string]string{"no key": ""}}, {Labels: map[string]string{"a": "no value!"}}, {Labels: map[string]string{corev1.LabelHostname: "b"}},
		{Labels: map[string]string{"burano.io/set": "b"}}, {Taints: []Taint{{Key: "a", Effect: "Never"}}}, {Taints: []Taint{{Key: LockedTaint, Effect: "NoExecute"}}},
		{Taints: []Taint{{Key: "node.kubernetes.io/not-ready", Effect: "NoExecute"}}}, {Taints: []Taint{{Effect: "NoExecute"}}},
	} {
		require.Error(t, bad.Check(), bad)
	}
	require.NoError(t, Settings{Labels: map[string]string{"node-role.kubernetes.io/edge": "", "a": "b"}, Taints: []Taint{{Key: "example.com/gpu", Effect: "NoExecute"}}}.Check())
}

func TestLabelsRememberWhoSetThemAndWhen(t *testing.T) {
	began := time.Date(2026, 11, 29, 2, 0, 0, 0, time.UTC)
	settings := Settings{Labels: map[string]string{"former": "yes"}}
	set := func(labels map[string]string, remove []string, task, by string, after time.Duration) {
		assigned := settings.Assign(labels, remove, task, by, began.Add(after))
		settings = settings.With(labels, remove, nil, nil)
		settings.Assigned = assigned
	}
	set(map[string]string{"disk": "fast", "former": "yes"}, nil, "one", "ann", 0)
	first := Assignment{ID: LabelID("one", "disk"), Created: began, By: "ann"}
	require.Equal(t, map[string]Assignment{"disk": first}, settings.Assigned, "of a label of a former version nothing is known")
	set(map[string]string{"disk": "fast"}, nil, "two", "bob", time.Minute)
	require.Equal(t, first, settings.Assigned["disk"], "the same value is no change")
	set(map[string]string{"disk": "slow"}, nil, "three", "bob", time.Hour)
	first.Changed = began.Add(time.Hour)
	require.Equal(t, first, settings.Assigned["disk"])
	set(nil, []string{"disk"}, "four", "bob", time.Hour)
	require.Nil(t, settings.Assigned)
	set(map[string]string{"disk": "fast"}, nil, "five", "bob", 2*time.Hour)
	require.NotEqual(t, first.ID, settings.Assigned["disk"].ID, "it is another label")
}
