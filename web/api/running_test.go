package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/traffic"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/access"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/scaling"
	"github.com/burano/burano/orchestrator/snapshot"
	"github.com/burano/burano/orchestrator/store"
)

// fakeClusters have one pod with the given log; they record the requested log, and the changes.
type fakeClusters struct {
	lines  []access.LogLine
	states []string
	asked  access.PodLog
	done   []string // the changes
	err    error
	// archive has the snapshots.
	archive known.Snapshots
}

func (f *fakeClusters) Running(_ context.Context, _, _, namespace string) (access.Running, error) {
	return access.Running{Workloads: []access.Workload{{Kind: "Deployment", Namespace: namespace, Name: "web"}}}, f.err
}

func (f *fakeClusters) Pod(_ context.Context, _, _, namespace, name string) (access.PodDetails, error) {
	return access.PodDetails{Pod: access.Pod{Namespace: namespace, Name: name}}, f.err
}

func (f *fakeClusters) RecreatePod(_ context.Context, _, _, namespace, name string) error {
	f.done = append(f.done, "recreate "+namespace+"/"+name)
	return f.err
}

func (f *fakeClusters) Workload(_ context.Context, _, _ string, ref access.WorkloadRef) (access.WorkloadDetails, error) {
	return access.WorkloadDetails{Workload: access.Workload{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}}, f.err
}

func (f *fakeClusters) ScaleWorkload(_ context.Context, _, _ string, ref access.WorkloadRef, pods int32) error {
	f.done = append(f.done, fmt.Sprintf("scale %s to %d", ref, pods))
	return f.err
}

func (f *fakeClusters) RestartWorkload(_ context.Context, _, _ string, ref access.WorkloadRef) error {
	f.done = append(f.done, "restart "+ref.String())
	return f.err
}

func (f *fakeClusters) ReadLog(_ context.Context, _, _ string, log access.PodLog, line func(access.LogLine) error) error {
	f.asked = log
	for _, one := range f.lines {
		if err := line(one); err != nil {
			return err
		}
	}
	return f.err
}

func (f *fakeClusters) FollowLog(ctx context.Context, environmentID, objectID string, log access.PodLog, line func(access.LogLine) error, state func(string) error) (string, error) {
	if err := f.ReadLog(ctx, environmentID, objectID, log, line); err != nil {
		return "", err
	}
	for _, one := range f.states {
		if err := state(one); err != nil {
			return "", err
		}
	}
	return "Completed", nil
}

func TestWhatRunsInAClusterIsShownToWhoMayReadInTheProject(t *testing.T) {
	at := time.Date(2026, 11, 22, 6, 0, 0, 1, time.UTC)
	clusters := &fakeClusters{lines: []access.LogLine{{Time: at, Text: "<script>alert(1)</script>"}, {Time: at.Add(time.Second), Text: "two"}}, states: []string{"CrashLoopBackOff"}}
	s := newServer(t, func(c *Config) { clusters.archive, c.Clusters = c.Clusters.(*fakeClusters).archive, clusters })
	mine := s.populate("demo", "demos")
	cluster := "/burano/v1/environments/" + mine["environment"] + "/clusters/" + mine["cluster"]
	pod := cluster + "/pods/default/web-1"
	for _, token := range []string{"demo", "reader"} {
		require.Equal(t, "kube-system", field(s.call(token, "", "GET", cluster+"/running?namespace=kube-system", nil, 200), "workloads", 0, "namespace"))
		require.Equal(t, "web-1", field(s.call(token, "", "GET", pod, nil, 200), "name"))
		recorder := s.send("GET", pod+"/log?tail=7&container=main&timestamps=true", map[string]string{"X-Auth-Token": "{token:" + token + "}"}, nil)
		require.Equal(t, 200, recorder.Code)
		require.Equal(t, "text/plain; charset=utf-8", recorder.Header().Get("Content-Type"))
		require.Equal(t, "nosniff", recorder.Header().Get("X-Content-Type-Options"))
		require.Equal(t, "2026-11-22T06:00:00.000000001Z <script>alert(1)</script>\n2026-11-22T06:00:01.000000001Z two\n", recorder.Body.String())
		require.Equal(t, access.PodLog{Namespace: "default", Pod: "web-1", Container: "main", Tail: 7}, clusters.asked)
	}
	for _, path := range []string{cluster + "/running", pod, pod + "/log", pod + "/log/events"} {
		s.call("other", "", "GET", path, nil, 403)
		s.call("demo", "", "GET", strings.Replace(path, mine["cluster"], "nothing", 1), nil, 404)
	}
	for _, query := range []string{"?tail=0", "?tail=20000", "?tail=x", "?previous=perhaps", "?container=../x"} {
		s.call("demo", "", "GET", pod+"/log"+query, nil, 400)
	}
	s.call("demo", "", "GET", pod+"/log/events?previous=true", nil, 400)
	s.call("demo", "", "GET", cluster+"/pods/default/..%2fsecrets", nil, 404)
	s.call("demo", "", "GET", cluster+"/running?namespace=a/b", nil, 400)

	stream := s.send("GET", pod+"/log/events", asDemo, nil)
	require.Equal(t, "text/event-stream", stream.Header().Get("Content-Type"))
	require.Contains(t, stream.Body.String(), "id: 2026-11-22T06:00:01.000000001Z\n")
	require.Contains(t, stream.Body.String(), "event: state\ndata: {\"state\":\"CrashLoopBackOff\"}\n\n")
	require.True(t, strings.HasSuffix(stream.Body.String(), "event: end\ndata: {\"state\":\"Completed\"}\n\n"), stream.Body)
	s.send("GET", pod+"/log/events", map[string]string{"X-Auth-Token": "{token:demo}", "Last-Event-ID": "2026-11-22T06:00:01.000000001Z"}, nil)
	require.Equal(t, at.Add(time.Second), clusters.asked.After, "it goes on where it was")

	clusters.err = &access.NoAnswer{Err: errors.New("connect to murano-kube-1: connection refused")}
	clusters.lines = nil
	for _, path := range []string{cluster + "/running", pod, pod + "/log"} {
		recorder := s.send("GET", path, asDemo, nil)
		require.Equal(t, 503, recorder.Code)
		require.Contains(t, recorder.Body.String(), "connection refused")
		require.NotEmpty(t, recorder.Header().Get("Retry-After"))
	}
}

func TestWhoMayWriteMayRecreatePodsAndScaleWorkloads(t *testing.T) {
	clusters := &fakeClusters{}
	s := newServer(t, func(c *Config) { clusters.archive, c.Clusters = c.Clusters.(*fakeClusters).archive, clusters })
	mine := s.populate("demo", "demos")
	cluster := "/burano/v1/environments/" + mine["environment"] + "/clusters/" + mine["cluster"]
	pod, web := cluster+"/pods/default/web-1/recreate", cluster+"/workloads/default/Deployment/web"
	require.Equal(t, "Deployment", field(s.call("reader", "", "GET", web, nil, 200), "kind"))
	five := map[string]any{"pods": 5}
	for token, status := range map[string]int{"reader": 403, "other": 403} {
		s.call(token, "", "POST", pod, map[string]any{}, status)
		s.call(token, "", "PUT", web+"/scale", five, status)
		s.call(token, "", "POST", web+"/restart", map[string]any{}, status)
	}
	for _, wrong := range []any{map[string]any{}, map[string]any{"pods": -1}, map[string]any{"pods": "5"}, map[string]any{"pods": 10_001}, map[string]any{"pods": 1.5}} {
		s.call("demo", "", "PUT", web+"/scale", wrong, 400)
	}
	s.call("demo", "", "PUT", cluster+"/workloads/default/Deployment/We..b_/scale", five, 404)
	require.Empty(t, clusters.done)
	s.call("demo", "", "POST", pod, nil, 200)
	s.call("demo", "", "PUT", web+"/scale", five, 200)
	s.call("demo", "", "POST", web+"/restart", nil, 200)
	require.Equal(t, []string{"recreate default/web-1", "scale Deployment default/web to 5", "restart Deployment default/web"}, clusters.done)

	clusters.err = fault.New(fault.Conflict, "Burano would undo the change")
	s.call("demo", "", "PUT", web+"/scale", five, 409)
	clusters.err = &access.NoAnswer{Err: errors.New("connection refused")}
	s.call("demo", "", "POST", pod, nil, 503)
}

func TestNoLineOfALongLogIsLost(t *testing.T) {
	clusters := &fakeClusters{lines: make([]access.LogLine, 5_000)}
	s := newServer(t, func(c *Config) { clusters.archive, c.Clusters = c.Clusters.(*fakeClusters).archive, clusters })
	mine := s.populate("demo", "demos")
	stream := s.send("GET", "/burano/v1/environments/"+mine["environment"]+"/clusters/"+mine["cluster"]+"/pods/default/web/log/events", asDemo, nil)
	require.Equal(t, 5_000, strings.Count(stream.Body.String(), `"text":`))
}

func (f *fakeClusters) Kubeconfig(_ context.Context, environmentID, objectID string, person access.Person) ([]byte, error) {
	return fmt.Appendf(nil, "for: %s/%s\n%s %v %s %s %v\n", environmentID, objectID, person.User, person.Groups, person.Namespace, person.Lifetime, person.Command), nil
}

func (f *fakeClusters) Credential(_ context.Context, _, _ string, person access.Person) (access.Credential, error) {
	return access.Credential{User: person.User, Groups: person.Groups, Certificate: "certificate", Key: "key", Expires: time.Now().Add(person.Lifetime)}, nil
}

func (f *fakeClusters) SSHKey(_ context.Context, environmentID, _ string) (string, error) {
	return "ssh-ed25519 AAAA " + environmentID, nil
}

func (f *fakeClusters) GiveSSHKey(_ context.Context, _, _, node, private string) (string, error) {
	if private == "nonsense" {
		return "", fault.New(fault.Invalid, "The private key for %s is none", node)
	}
	return "public half of " + private, nil
}

func (f *fakeClusters) TakesMachines(context.Context, string, string) error { return nil }

func (f *fakeClusters) Join(_ context.Context, environmentID, _ string, machine store.Machine) (access.Joining, error) {
	return access.Joining{Node: machine.Node, Cluster: "of " + environmentID, PublicKey: "ssh-ed25519 AAAA burano", Owner: "owner"}, nil
}

func (f *fakeClusters) Status(_ context.Context, environmentID, objectID string) (access.ClusterStatus, error) {
	return access.ClusterStatus{Name: environmentID + "/" + objectID, Nodes: []access.NodeStatus{{Name: "murano-kube-2", Labels: map[string]string{"disk": "fast", "theirs": "yes"},
		Taints: []kube.Taint{{Key: "gpu", Effect: "NoSchedule"}}, Set: access.NodeSet{Labels: map[string]string{"disk": "fast"}, Taints: []kube.Taint{}}}}}, nil
}

// serverOf is the id of the host of an environment.
func serverOf(environmentID string) string { return uuid.MustParse(environmentID).String() }

// The environments have one host each, whose server has the id of the environment, in the form of Nova.
func (f *fakeClusters) Hosts(_ context.Context, environmentID string) ([]access.Host, error) {
	server := serverOf(environmentID)
	return []access.Host{{Environment: environmentID, Cluster: "kube", Node: "murano-kube-2", Server: server,
		Labels: []access.HostLabel{{UUID: kube.LabelID(server, "disk"), HostUUID: server, Label: "disk=fast", Key: "disk", Value: "fast"}}}}, nil
}

func (f *fakeClusters) PauseUpgrade(context.Context, string, string) error {
	return fault.New(fault.Conflict, "No upgrade of this cluster runs: there is nothing to pause")
}

func (f *fakeClusters) Traffic(_ context.Context, environmentID, objectID string) (scaling.Traffic, error) {
	return scaling.Traffic{Gateways: []scaling.GatewayTraffic{{Name: environmentID + "/" + objectID, Listeners: []traffic.Listener{
		{Port: 80, Counters: traffic.Counters{ConnectionsPerSecond: 7}, Backends: []traffic.Server{{Address: "10.0.0.1:80", State: traffic.Up}}}}}}}, nil
}

func (f *fakeClusters) TakeSnapshot(ctx context.Context, environmentID, objectID, reason string) (store.Snapshot, error) {
	of := snapshot.Subject{EnvironmentID: environmentID, ClusterID: objectID, ClusterName: "of " + reason, Kind: store.Requested, Reason: reason, Secrets: []byte("keys")}
	return f.archive.Take(ctx, of, func(_ context.Context, to io.Writer) error {
		_, err := io.WriteString(to, "all that Kubernetes knows")
		return err
	})
}
