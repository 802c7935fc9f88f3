package kube_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/nodes/kube"
)

// answering is an API server that answers calls by method and path, and records the bodies of changes.
type answering struct {
	answers  map[string]string
	statusOf map[string]int
	changed  map[string]string
}

func (a *answering) config(t *testing.T) *rest.Config {
	a.changed = map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		call := r.Method + " " + r.URL.Path
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodGet {
			a.changed[call] = string(body)
		}
		w.Header().Set("Content-Type", "application/json")
		if status := a.statusOf[call]; status != 0 {
			w.WriteHeader(status)
		}
		answer, there := a.answers[call]
		if !there {
			t.Errorf("unexpected call: %s", call)
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
}

const (
	webPath = "/apis/apps/v1/namespaces/default/deployments/web"
	web     = `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"web","namespace":"default","uid":"d"},"spec":{"replicas":3},"status":{"readyReplicas":2}}`
	burano  = `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"web","namespace":"default","labels":{"burano.io/pod":"p1"},
		"managedFields":[{"manager":"kubectl","operation":"Update"},{"manager":"burano","operation":"Apply"}]},"spec":{"replicas":3}}`
)

var webRef = kube.WorkloadRef{Kind: "Deployment", Namespace: "default", Name: "web"}

func TestAWorkloadHasItsEventsAndThoseOfItsReplicaSets(t *testing.T) {
	api := answering{answers: map[string]string{
		"GET " + webPath: web,
		"GET /apis/apps/v1/namespaces/default/replicasets": `{"kind":"ReplicaSetList","apiVersion":"apps/v1","items":[
			{"metadata":{"name":"web-1","uid":"r","ownerReferences":[{"kind":"Deployment","name":"web","uid":"d","controller":true}]}},
			{"metadata":{"name":"other-1","uid":"o","ownerReferences":[{"kind":"Deployment","name":"other","uid":"x","controller":true}]}}]}`,
		"GET /api/v1/namespaces/default/events": `{"kind":"EventList","apiVersion":"v1","items":[
			{"metadata":{"name":"1"},"involvedObject":{"uid":"d"},"type":"Normal","reason":"ScalingReplicaSet","lastTimestamp":"2026-11-22T06:00:00Z"},
			{"metadata":{"name":"2"},"involvedObject":{"uid":"r"},"type":"Warning","reason":"FailedCreate","lastTimestamp":"2026-11-22T06:01:00Z"},
			{"metadata":{"name":"3"},"involvedObject":{"uid":"o"},"type":"Normal","reason":"Foreign","lastTimestamp":"2026-11-22T06:01:00Z"}]}`,
	}}
	found, err := kube.ReadWorkload(t.Context(), api.config(t), webRef)
	require.NoError(t, err)
	require.Equal(t, []any{int32(3), int32(2), false}, []any{found.Wanted, found.Ready, found.Managed})
	require.Len(t, found.Events, 2)
	require.Equal(t, []string{"FailedCreate", "ScalingReplicaSet"}, []string{found.Events[0].Reason, found.Events[1].Reason})

	_, err = kube.ReadWorkload(t.Context(), api.config(t), kube.WorkloadRef{Kind: "Secret", Namespace: "default", Name: "web"})
	require.True(t, apierrors.IsNotFound(err), "nothing but workloads is read: %v", err)
}

func TestAWorkloadIsScaledAndRestarted(t *testing.T) {
	api := answering{answers: map[string]string{"GET " + webPath: web, "PATCH " + webPath: web, "PATCH " + webPath + "/scale": `{"kind":"Scale","apiVersion":"autoscaling/v1"}`}}
	config := api.config(t)
	require.NoError(t, kube.ScaleWorkload(t.Context(), config, webRef, 5))
	require.JSONEq(t, `{"spec":{"replicas":5}}`, api.changed["PATCH "+webPath+"/scale"])
	require.NoError(t, kube.RestartWorkload(t.Context(), config, webRef, time.Date(2026, 11, 22, 6, 0, 0, 0, time.UTC)))
	require.JSONEq(t, `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-11-22T06:00:00Z"}}}}}`, api.changed["PATCH "+webPath])
}

func TestWhatBuranoWouldUndoIsNotScaled(t *testing.T) {
	api := answering{answers: map[string]string{"GET " + webPath: burano,
		"GET /apis/apps/v1/namespaces/default/daemonsets/web": strings.ReplaceAll(web, "Deployment", "DaemonSet")}}
	config := api.config(t)
	var refused *kube.Refusal
	require.ErrorAs(t, kube.ScaleWorkload(t.Context(), config, webRef, 5), &refused)
	require.Contains(t, refused.Reason, "p1")
	require.ErrorAs(t, kube.ScaleWorkload(t.Context(), config, kube.WorkloadRef{Kind: "DaemonSet", Namespace: "default", Name: "web"}, 5), &refused)
	require.ErrorAs(t, kube.RestartWorkload(t.Context(), config, kube.WorkloadRef{Kind: "Job", Namespace: "default", Name: "web"}, time.Now()), &refused)
	require.Empty(t, api.changed)
}

func TestAPodIsRecreatedOnlyWhereSomethingMakesItAgain(t *testing.T) {
	const path = "/api/v1/namespaces/default/pods/web"
	pod := func(owner, phase, ready string) string {
		return `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"default","uid":"u","labels":{"burano.io/pod":"p1"},"ownerReferences":[` + owner +
			`]},"status":{"phase":"` + phase + `","conditions":[{"type":"Ready","status":"` + ready + `"}]}}`
	}
	const set = `{"kind":"ReplicaSet","name":"web-1","uid":"r","controller":true}`
	for name, one := range map[string]struct {
		pod, call, why string
		status         int
	}{
		"one that is ready is evicted":     {pod: pod(set, "Running", "True"), call: "POST " + path + "/eviction"},
		"one that is not ready is deleted": {pod: pod(set, "Running", "False"), call: "DELETE " + path},
		"a budget is respected":            {pod: pod(set, "Running", "True"), call: "POST " + path + "/eviction", status: 429, why: "disruption budget"},
		"nothing would make it again":      {pod: pod("", "Running", "True"), why: "recreatePod of component p1"},
		"it is done":                       {pod: pod(set, "Succeeded", "False"), why: "recreatePod"},
		"it is the kubelet's own":          {pod: pod(`{"kind":"Node","name":"n1","uid":"n","controller":true}`, "Running", "True"), why: "n1"},
	} {
		t.Run(name, func(t *testing.T) {
			api := answering{answers: map[string]string{"GET " + path: one.pod}, statusOf: map[string]int{one.call: one.status}}
			if one.call != "" {
				api.answers[one.call] = `{"kind":"Status","apiVersion":"v1","status":"Success"}`
			}
			if one.status != 0 {
				api.answers[one.call] = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429,"message":"it would violate the budget"}`
			}
			err := kube.RecreatePod(t.Context(), api.config(t), "default", "web")
			if one.why == "" {
				require.NoError(t, err)
			} else {
				var refused *kube.Refusal
				require.ErrorAs(t, err, &refused)
				require.Contains(t, refused.Reason, one.why)
			}
			if one.call == "" {
				require.Empty(t, api.changed)
				return
			}
			var sent map[string]any
			require.NoError(t, json.Unmarshal([]byte(api.changed[one.call]), &sent))
			require.Contains(t, api.changed[one.call], `"uid":"u"`, "no other pod of the name is ended")
		})
	}
}
