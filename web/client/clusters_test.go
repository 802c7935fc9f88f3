package client

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAClusterIsFoundByItsNameOrBecauseItIsTheOnlyOne(t *testing.T) {
	service := func(kind, id, name string) map[string]any {
		return map[string]any{"?": map[string]any{"type": kind, "id": id}, "name": name}
	}
	environment := Environment{Name: "e", Services: []map[string]any{
		service(ClusterClass+"/0.0.0@x", "1", "a"), service("other", "2", "b"), service(ClusterClass, "3", "c"),
	}}
	id, err := environment.ClusterID("c")
	require.NoError(t, err)
	require.Equal(t, "3", id)
	id, err = environment.ClusterID("1")
	require.NoError(t, err)
	require.Equal(t, "1", id)
	_, err = environment.ClusterID("")
	require.ErrorContains(t, err, "a, c")
	_, err = environment.ClusterID("b")
	require.ErrorContains(t, err, `no cluster "b"`)
	environment.Services = append(environment.Services, service(GatewaysClass, "4", "doors"))
	id, err = environment.ClusterID("doors")
	require.NoError(t, err)
	require.Equal(t, "4", id)
	environment.Services = environment.Services[2:]
	id, err = environment.ClusterID("")
	require.NoError(t, err)
	require.Equal(t, "3", id, "gateways without a cluster are meant only where there is no cluster")
	environment.Services = environment.Services[1:]
	id, err = environment.ClusterID("")
	require.NoError(t, err)
	require.Equal(t, "4", id)
	own := service("org.example.Own", "5", "own")
	own["masterNode"], own["minionNodes"] = map[string]any{}, []any{}
	environment.Services = append(environment.Services, own)
	id, err = environment.ClusterID("")
	require.NoError(t, err)
	require.Equal(t, "5", id, "a class that extends the one of clusters")
}

func TestALogOfAPodThatBreaksOffGoesOnWhereItWas(t *testing.T) {
	var asked []string
	c := following(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.String()+" "+r.Header.Get("Last-Event-ID"))
		if len(asked) == 1 {
			_, _ = io.WriteString(w, "event: lines\nid: 2026-11-22T06:00:00Z\ndata: {\"lines\":[{\"text\":\"one\"},{\"text\":\"two\"}]}\n\n")
			return
		}
		_, _ = io.WriteString(w, "event: state\ndata: {\"state\":\"CrashLoopBackOff\"}\n\nevent: lines\ndata: {\"lines\":[{\"text\":\"three\"}]}\n\nevent: end\ndata: {\"state\":\"Deleted\"}\n\n")
	})
	var lines []string
	end, err := c.Workloads().FollowPodLog(t.Context(), "e", "c", "default", "web", LogOptions{Container: "main", Tail: 5},
		func(text string) error { lines = append(lines, text); return nil }, func(state string) { lines = append(lines, state) })
	require.NoError(t, err)
	require.Equal(t, "Deleted", end)
	require.Equal(t, []string{"one", "two", "CrashLoopBackOff", "three"}, lines)
	const path = "/burano/v1/environments/e/clusters/c/pods/default/web/log/events?container=main&tail=5 "
	require.Equal(t, []string{path, path + "2026-11-22T06:00:00Z"}, asked)
}

func TestWorkloadsAreScaledAndRestartedAndPodsRecreated(t *testing.T) {
	var asked []string
	c := following(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, r.Method+" "+r.URL.Path+" "+string(body))
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `{"kind":"Deployment","wanted":3,"events":[{"reason":"ScalingReplicaSet"}]}`)
		}
	})
	found, err := c.Workloads().Get(t.Context(), "e", "c", "default", "Deployment", "web")
	require.NoError(t, err)
	require.Equal(t, "ScalingReplicaSet", found.Events[0].Reason)
	require.NoError(t, c.Workloads().Scale(t.Context(), "e", "c", "default", "Deployment", "web", 0))
	require.NoError(t, c.Workloads().Restart(t.Context(), "e", "c", "default", "Deployment", "web"))
	require.NoError(t, c.Workloads().RecreatePod(t.Context(), "e", "c", "default", "web-1"))
	const web = "/burano/v1/environments/e/clusters/c/workloads/default/Deployment/web"
	require.Equal(t, []string{"GET " + web + " ", "PUT " + web + `/scale {"pods":0}`, "POST " + web + "/restart ",
		"POST /burano/v1/environments/e/clusters/c/pods/default/web-1/recreate "}, asked)
}
