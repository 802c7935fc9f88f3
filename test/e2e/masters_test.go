package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/burano/burano/nodes/kube"
)

// TestAnyMasterCanBeLost scales a cluster from one master to three while it is used, loses each of them in another manner while ConfigMaps are
// written through a gateway, and scales back to one master. Requests to the application go through the same gateway all the time.
func TestAnyMasterCanBeLost(t *testing.T) {
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")
	l.deleteIfFailed(t, "masters")
	file := filepath.Join(l.root, "test/e2e/testdata/masters.yaml")
	l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	environment := environmentNamed(t, demo, "masters")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string)}
	minions, gateways, further := []string{"murano-kube-2"}, []string{"murano-gateway-1"}, []string{"murano-kube-1-m2", "murano-kube-1-m3"}
	s.holds(t, minions, gateways)
	_, port, err := net.SplitHostPort(endpointOf(t, environment))
	require.NoError(t, err)
	gateway := s.floating(t, "murano-gateway-1")["murano-gateway-1"]
	requests := startLoad(t, net.JoinHostPort(gateway, port))
	pods := func() string {
		return s.cluster.kubectl(t, "", "get", "pods", "-A", "-o", "jsonpath={range .items[*]}{.metadata.uid} {.status.containerStatuses[*].restartCount}{'\\n'}{end}")
	}
	before, master := pods(), s.startedAt(t, "murano-kube-1", "kube-apiserver")

	api := watchAPI(t, "https://"+net.JoinHostPort(s.floating(t, "murano-kube-1")["murano-kube-1"], "6443")+"/version")
	s.act(t, "scaling-cluster", "scale", map[string]any{"group": "masters", "count": 3})
	api.end()
	t.Logf("the API of the first master was away for %s at most, until %s", api.longest, api.until.Format("15:04:05.000"))
	s.further = further
	s.holds(t, minions, gateways)
	require.Equal(t, before, pods(), "no pod is interrupted")
	require.Equal(t, master, s.startedAt(t, "murano-kube-1", "kube-apiserver"), "nor the API server that there was")
	require.Equal(t, "ok", s.cluster.kubectl(t, "", "get", "--raw", "/readyz"), "the kubeconfig that there was is good")

	s.cluster = l.clusterOf(t, demo, environment)
	kubeconfig, err := clientcmd.LoadFromFile(s.cluster.kubeconfig)
	require.NoError(t, err)
	require.Equal(t, "https://"+net.JoinHostPort(gateway, "6443"), kubeconfig.Clusters["scaling-cluster"].Server, "it is reached through the gateway now")
	s.swacts(t, "masters")
	w := s.write(t)
	w.more(t, 20)
	lose := func(what string, lost func(), back func()) {
		w.mutex.Lock()
		w.slowest = 0
		w.mutex.Unlock()
		lost()
		began := time.Now()
		w.more(t, 20)
		t.Logf("%s: 20 more were written within %s, the slowest within %s", what, time.Since(began).Round(time.Millisecond), w.slowest.Round(time.Millisecond))
		shown, _ := l.try(l.as("burano-demo"), "burano", "cluster", "show", "masters") // it fails, because the cluster has a fault
		require.Contains(t, shown, "healthy")
		require.NotContains(t, shown, "Kubernetes:", "the API is asked at another master: %s", shown)
		s.cluster.kubectl(t, "", "get", "nodes")
		back()
		l.eventually(t, time.Minute, "all masters serve again", func() error { return s.allMembersAnswer() })
	}
	first := s.cluster.servers["murano-kube-1"]
	lose("a server is stopped", func() {
		require.NoError(t, servers.Stop(t.Context(), demo.nova(t), first).ExtractErr())
		s.becomes(t, first, "SHUTOFF")
	}, func() {
		require.NoError(t, servers.Start(t.Context(), demo.nova(t), first).ExtractErr())
		s.becomes(t, first, "ACTIVE")
	})
	lose("a control plane is killed", func() {
		s.in(t, further[0], "systemctl kill -s KILL etcd kube-apiserver kube-controller-manager kube-scheduler burano-publish; systemctl stop etcd kube-apiserver kube-controller-manager kube-scheduler burano-publish")
	}, func() {
		s.in(t, further[0], "systemctl start etcd kube-apiserver kube-controller-manager kube-scheduler burano-publish")
	})
	hang := func(command string) { // the kernel does not freeze a server whose programs start others just then, and thaws it
		l.eventually(t, time.Minute, "a server takes "+command, func() error {
			output, err := exec.Command("runc", "--root", filepath.Join(l.cloud, "hypervisor", "runc"), command, "blc-"+s.cluster.servers[further[1]]).CombinedOutput()
			if err != nil {
				return fmt.Errorf("%w: %s", err, output)
			}
			return nil
		})
	}
	t.Cleanup(func() {
		if t.Failed() {
			_ = exec.Command("runc", "--root", filepath.Join(l.cloud, "hypervisor", "runc"), "resume", "blc-"+s.cluster.servers[further[1]]).Run()
		}
	})
	lose("a server hangs", func() { hang("pause") }, func() { hang("resume") })
	w.end()
	require.Empty(t, w.failed, "requests that failed twice")
	written := strings.Fields(s.cluster.kubectl(t, "", "get", "configmaps", "-o", "jsonpath={.items[*].metadata.name}"))
	require.Subset(t, written, w.acknowledged, "what was acknowledged is there")
	t.Logf("%d ConfigMaps were written, %d of them in a second try", len(w.acknowledged), w.again)

	s.act(t, "scaling-cluster", "replaceNode", map[string]any{"node": further[0]})
	s.further = []string{further[0] + "-r2", further[1]}
	s.holds(t, minions, gateways)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	alone := filepath.Join(t.TempDir(), "masters.yaml") // a model without a number of masters keeps them
	require.NoError(t, os.WriteFile(alone, []byte(strings.Replace(string(text), "    nodeCount: 1", "    etcdNodes: masters\n    nodeCount: 1", 1)), 0o600))
	l.run(t, l.as("burano-demo"), "burano", "deploy", alone, "--follow")
	s.voting = 3
	s.holds(t, minions, gateways)

	s.voting = 0
	s.act(t, "scaling-cluster", "scale", map[string]any{"group": "masters", "count": 1})
	s.further = nil
	s.cluster = l.clusterOf(t, demo, environment)
	s.holds(t, minions, gateways)
	refused, _ := s.call(t, "scaling-cluster", "swactNode", map[string]any{"node": "murano-kube-1"})
	require.Contains(t, fmt.Sprint(refused["result"]), "no other master can lead in its place")
	require.Subset(t, strings.Fields(s.cluster.kubectl(t, "", "get", "configmaps", "-o", "jsonpath={.items[*].metadata.name}")), w.acknowledged)
	require.Equal(t, before, pods(), "no pod was interrupted")
	requests.end()
	t.Logf("the application: %s", requests)
	s.cluster.noneFailed(t, requests.failed)
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "masters")
	asBefore(t, demo, found)
}

// startedAt returns the time at which a unit of a node was started.
func (s *scaling) startedAt(t *testing.T, node, unit string) string {
	t.Helper()
	output, err := s.cluster.on(node, "systemctl", "show", "-P", "ActiveEnterTimestampMonotonic", unit)
	require.NoError(t, err, output)
	return strings.TrimSpace(output)
}

// allMembersAnswer asks etcd and each API server of a master.
func (s *scaling) allMembersAnswer() error {
	for _, master := range append([]string{s.masterName()}, s.further...) {
		if output, err := s.cluster.on(master, "/bin/sh", "-c", strings.Join(etcdctl("apiserver-etcd", "endpoint", "health", "--cluster"), " ")); err != nil {
			return fmt.Errorf("%s: %s", master, output)
		}
		if output, err := s.cluster.on(master, "curl", "-sfk", "https://127.0.0.1:6443/readyz"); err != nil {
			return fmt.Errorf("%s: %s: %w", master, output, err)
		}
	}
	return nil
}

// retryAfter is how long Kubernetes' clients wait before they try again. A killed program accepts connections for some hundredths of a second
// more, so an immediate retry may meet it again.
const retryAfter = time.Second

// writing makes one ConfigMap after another, each with one more try when the first one fails.
type writing struct {
	stop  context.CancelFunc
	group sync.WaitGroup

	mutex        sync.Mutex
	acknowledged []string
	failed       []string
	again        int
	slowest      time.Duration
}

func (s *scaling) write(t *testing.T) *writing {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.cluster.kubeconfig)
	require.NoError(t, err)
	config.Timeout = 20 * time.Second
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	w := &writing{stop: stop}
	t.Cleanup(w.end)
	w.group.Go(func() {
		for number := 0; ctx.Err() == nil; number++ {
			name := fmt.Sprintf("kept-%d", number)
			create := func() error {
				_, err := client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
				return err
			}
			began := time.Now()
			err := create()
			second := err != nil && ctx.Err() == nil
			if second {
				select {
				case <-ctx.Done():
				case <-time.After(retryAfter):
				}
				if retried := create(); retried == nil || apierrors.IsAlreadyExists(retried) {
					err = nil
				} else {
					err = fmt.Errorf("%w, then after %s: %w", err, time.Since(began), retried)
				}
			}
			w.mutex.Lock()
			w.slowest = max(w.slowest, time.Since(began))
			switch {
			case err == nil:
				w.acknowledged = append(w.acknowledged, name)
				if second {
					w.again++
				}
			case ctx.Err() == nil:
				w.failed = append(w.failed, began.Format("15:04:05.000 ")+name+": "+err.Error())
			}
			w.mutex.Unlock()
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	return w
}

// more waits until so many more are written.
func (w *writing) more(t *testing.T, count int) {
	t.Helper()
	written := func() int {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		return len(w.acknowledged)
	}
	before, deadline := written(), time.Now().Add(2*time.Minute)
	for written() < before+count {
		require.True(t, time.Now().Before(deadline), "only %d of %d were written: %v", written()-before, count, w.failed)
		time.Sleep(20 * time.Millisecond)
	}
}

func (w *writing) end() {
	w.stop()
	w.group.Wait()
}

// leaders are the nodes that lead etcd and the elected programs of masters, by their names.
func (s *scaling) leaders(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, program := range kube.Elected() {
		holder, _, _ := strings.Cut(s.cluster.kubectl(t, "", "get", "lease", "-n", "kube-system", program, "-o", "jsonpath={.spec.holderIdentity}"), "_")
		found[program] = holder
	}
	var members struct {
		Members []struct {
			ID   uint64
			Name string
		}
	}
	s.etcd(t, &members, "member", "list")
	var status []struct {
		Status struct{ Leader uint64 }
	}
	s.etcd(t, &status, "endpoint", "status")
	for _, member := range members.Members {
		if member.ID == status[0].Status.Leader {
			found["etcd"] = member.Name
		}
	}
	return found
}

// swacts moves leadership away from each master in turn, while several clients write through the API. etcd drops a proposal that reaches it while its leader changes, and the API
// server tells the client after 7 s: only such a write may need a second try, and none is lost.
func (s *scaling) swacts(t *testing.T, environment string) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.cluster.kubeconfig)
	require.NoError(t, err)
	config.Timeout, config.QPS = 20*time.Second, -1
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	maps := client.CoreV1().ConfigMaps("kube-public")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	const clients = 8
	var writers errgroup.Group
	var written, dropped atomic.Int64
	for writer := range clients {
		writers.Go(func() error {
			ctx, stopped := context.WithoutCancel(ctx), ctx.Done()
			made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("swact-%d", writer)}, Data: map[string]string{}}, metav1.CreateOptions{})
			for number := 0; err == nil; number++ {
				written.Add(1)
				select {
				case <-stopped:
					return maps.Delete(ctx, made.Name, metav1.DeleteOptions{})
				default:
				}
				before, wanted := made.Data["number"], fmt.Sprint(number)
				made.Data = map[string]string{"number": wanted}
				former := made
				if made, err = maps.Update(ctx, former, metav1.UpdateOptions{}); !isDropped(err) {
					continue
				}
				dropped.Add(1)
				if made, err = maps.Get(ctx, former.Name, metav1.GetOptions{}); err == nil && made.Data["number"] != wanted {
					if made.Data["number"] != before {
						return fmt.Errorf("%s was written, and is %s", before, made.Data["number"])
					}
					made, err = maps.Update(ctx, former, metav1.UpdateOptions{})
				}
			}
			return fmt.Errorf("after %d writes: %w", written.Load(), err)
		})
	}
	moved, etcdMoved := 0, 0
	for _, master := range append([]string{s.masterName()}, s.further...) {
		before := s.leaders(t)
		began := time.Now()
		s.lab.run(t, s.lab.as("burano-demo"), "burano", "node", "swact", environment, master, "--follow")
		after := s.leaders(t)
		t.Logf("swact of %s: %.1f s, leaders %v, then %v", master, time.Since(began).Seconds(), before, after)
		for what, holder := range after {
			require.NotEqual(t, master, holder, what)
			if before[what] == master {
				moved++
				if what == "etcd" {
					etcdMoved++
				}
			}
		}
	}
	stop()
	require.NoError(t, writers.Wait())
	require.GreaterOrEqual(t, moved, 2, "controllers and scheduler lead on a master; etcd may lead elsewhere")
	require.LessOrEqual(t, dropped.Load(), int64(clients*etcdMoved), "one of each client when etcd's leader changes")
	t.Logf("%d writes, %d of which needed a second try, while %d leaders moved", written.Load(), dropped.Load(), moved)
}

// isDropped reports whether etcd did not take a write because its leader was changing: the former leader refuses it, or no answer comes in time.
func isDropped(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "etcdserver: request timed out") || strings.Contains(err.Error(), "raft proposal dropped"))
}
