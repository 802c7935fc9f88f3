package kube_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/nodes/kube"
)

func TestWhatRunsIsListedWithoutWhatNobodyShouldSee(t *testing.T) {
	answers := map[string]string{
		"/apis/apps/v1/deployments": `{"kind":"DeploymentList","apiVersion":"apps/v1","items":[{"metadata":{"name":"web","namespace":"default"},
			"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"main","image":"web:1"}]}}},"status":{"readyReplicas":2}}]}`,
		"/apis/apps/v1/statefulsets": `{"kind":"StatefulSetList","apiVersion":"apps/v1","items":[{"metadata":{"name":"db","namespace":"default"},"status":{"readyReplicas":1}}]}`,
		"/apis/apps/v1/daemonsets": `{"kind":"DaemonSetList","apiVersion":"apps/v1","items":[{"metadata":{"name":"calico-node","namespace":"a-system"},
			"status":{"desiredNumberScheduled":2,"numberReady":2}}]}`,
		"/apis/batch/v1/jobs": `{"kind":"JobList","apiVersion":"batch/v1","items":[]}`,
		"/api/v1/pods": `{"kind":"PodList","apiVersion":"v1","items":[
			{"metadata":{"name":"web-6f7-x","namespace":"default","labels":{"pod-template-hash":"6f7"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-6f7","uid":"1","controller":true}]},
			 "spec":{"nodeName":"minion-1","containers":[{"name":"main","image":"web:1","env":[{"name":"PASSWORD","value":"hush"}]}]},
			 "status":{"phase":"Running","podIP":"10.1.0.7","conditions":[{"type":"Ready","status":"False"}],
			  "containerStatuses":[{"name":"main","restartCount":4,"state":{"waiting":{"reason":"CrashLoopBackOff","message":"back-off 40s"}}}]}},
			{"metadata":{"name":"alone","namespace":"default"},"spec":{"initContainers":[{"name":"prepare"}],"containers":[{"name":"main"}]},
			 "status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}],"initContainerStatuses":[{"name":"prepare","state":{"terminated":{"reason":"Completed"}}}],
			  "containerStatuses":[{"name":"main","ready":true,"state":{"running":{"startedAt":"2026-11-22T06:00:00Z"}}}]}},
			{"metadata":{"name":"new","namespace":"default"},"spec":{"containers":[{"name":"main"}]},
			 "status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","message":"0/1 nodes are available: 1 Insufficient memory."}]}}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, there := answers[r.URL.Path]
		require.True(t, there, r.URL.Path)
		_, _ = w.Write([]byte(answer))
	}))
	defer server.Close()
	found, err := kube.ReadRunning(t.Context(), &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, "")
	require.NoError(t, err)
	var workloads []string
	for _, one := range found.Workloads {
		workloads = append(workloads, one.Kind+" "+one.Namespace+"/"+one.Name)
	}
	require.Equal(t, []string{"DaemonSet a-system/calico-node", "StatefulSet default/db", "Deployment default/web"}, workloads)
	require.Equal(t, []int32{3, 2}, []int32{found.Workloads[2].Wanted, found.Workloads[2].Ready})
	alone, pending, web := found.Pods[0], found.Pods[1], found.Pods[2]
	require.Equal(t, []any{"Running", true, (*kube.Owner)(nil)}, []any{alone.State, alone.Healthy, alone.Owner})
	require.Equal(t, []any{true, "Completed"}, []any{alone.Containers[0].Init, alone.Containers[0].State})
	require.Equal(t, []any{"Pending", false}, []any{pending.State, pending.Healthy})
	require.Contains(t, pending.Message, "Insufficient memory")
	require.Equal(t, []any{"CrashLoopBackOff", false, "back-off 40s"}, []any{web.State, web.Healthy, web.Message})
	require.Equal(t, &kube.Owner{Kind: "Deployment", Name: "web"}, web.Owner)
	text, err := json.Marshal(found)
	require.NoError(t, err)
	require.NotContains(t, string(text), "hush")
}

func TestAPodHasItsEventsAndNotThoseOfAFormerOneOfItsName(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/api/v1/namespaces/default/events" {
			require.Equal(t, "involvedObject.kind=Pod,involvedObject.name=web", r.FormValue("fieldSelector"))
			_, _ = w.Write([]byte(`{"kind":"EventList","apiVersion":"v1","items":[
				{"metadata":{"name":"1"},"involvedObject":{"uid":"u"},"type":"Normal","reason":"Pulled","count":1,"lastTimestamp":"2026-11-22T06:00:00Z"},
				{"metadata":{"name":"2"},"involvedObject":{"uid":"former"},"type":"Normal","reason":"Killing","lastTimestamp":"2026-11-22T05:00:00Z"},
				{"metadata":{"name":"3"},"involvedObject":{"uid":"u"},"type":"Warning","reason":"BackOff","eventTime":"2026-11-22T06:00:01.500000Z","series":{"count":7,"lastObservedTime":"2026-11-22T06:05:00.000000Z"}}]}`))
			return
		}
		_, _ = w.Write([]byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"default","uid":"u"},"spec":{"containers":[{"name":"main"}]},"status":{"phase":"Running"}}`))
	}))
	defer server.Close()
	pod, err := kube.ReadPod(t.Context(), &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, "default", "web")
	require.NoError(t, err)
	var events []string
	for _, event := range pod.Events {
		events = append(events, event.Reason)
	}
	require.Equal(t, []string{"BackOff", "Pulled"}, events, "the newest first")
	require.EqualValues(t, 7, pod.Events[0].Count)
}
