package e2e

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/burano/burano/nodes/kube"
)

// The load of a hollow cluster for each of its nodes.
const (
	podsOfNode     = 10
	servicesOfNode = 2
	podsOfService  = podsOfNode / servicesOfNode
)

const (
	hollowLabel    = "burano.io/hollow"
	hollowNetwork  = "10.244.128.0/17" // of the range of pods; none of Calico's blocks is likely to lie in the used part
	hollowPort     = 8099
	firstPort      = 20000 // of the gateways
	changesAtScale = 20
)

// TestAClusterOfManyNodes adds hollow nodes to a cluster's own, as many as BURANO_SCALE, with ten pods and two published Services each. It measures the load
// of the cluster's programs and the latency of changes, beside the same with ten nodes. Nodes and pods are simulated by kwok, which BURANO_KWOK names; API
// server, etcd, controllers, publisher and gateways are real, and a program on the minion answers at the addresses of all pods.
func TestAClusterOfManyNodes(t *testing.T) {
	many, err := strconv.Atoi(cmp.Or(os.Getenv("BURANO_SCALE"), "0"))
	require.NoError(t, err)
	if many == 0 {
		t.Skip("`make bench-scale` runs it")
	}
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")
	_, before := serverUses(t, demo)
	l.run(t, l.as("burano-demo"), "burano", "deploy", "test/e2e/testdata/scaling.yaml", "--follow")
	_, after := serverUses(t, demo)
	t.Logf("the server used %.2f s of a processor to deploy three nodes", after-before)
	l.deleteIfFailed(t, "scaling")
	environment := environmentNamed(t, demo, "scaling")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string)}
	gateway, _, err := net.SplitHostPort(endpointOf(t, environment))
	require.NoError(t, err)
	h := newHollow(t, s, gateway)

	columns := []*atScale{h.measure(t, 0, 10), h.measure(t, 10, many)}
	t.Logf("\n%s", tableOf(columns))

	h.clear(t)
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "scaling")
	asBefore(t, demo, found)
}

// hollow is a cluster with simulated nodes and pods.
type hollow struct {
	*scaling
	gateway string // its address
	config  *rest.Config
	client  *kubernetes.Clientset
}

// newHollow starts the programs that simulate nodes and answer for pods.
func newHollow(t *testing.T, s *scaling, gateway string) *hollow {
	t.Helper()
	h := &hollow{scaling: s, gateway: gateway}
	var err error
	h.config, err = clientcmd.BuildConfigFromFlags("", s.cluster.kubeconfig)
	require.NoError(t, err)
	h.config.QPS, h.config.Burst = 1000, 1000
	h.client, err = kubernetes.NewForConfig(h.config)
	require.NoError(t, err)

	program := os.Getenv("BURANO_KWOK")
	module, err := exec.Command("go", "-C", "../bench/kwok", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok").Output()
	require.NoError(t, err)
	args := []string{"--kubeconfig", s.cluster.kubeconfig, "--manage-all-nodes=false", "--manage-nodes-with-label-selector", hollowLabel, "--cidr", hollowNetwork, "--node-lease-duration-seconds", "40"}
	stages := filepath.Join(strings.TrimSpace(string(module)), "kustomize", "stage")
	for _, name := range []string{"node/fast/node-initialize", "node/heartbeat-with-lease/node-heartbeat-with-lease", "pod/fast/pod-ready", "pod/fast/pod-complete", "pod/fast/pod-delete"} {
		args = append(args, "--config", filepath.Join(stages, name+".yaml"))
	}
	args = append(args, "--config", "../bench/kwok/pod-ready-again.yaml")
	log, err := os.Create(filepath.Join(filepath.Dir(s.lab.serverLog), "kwok.log"))
	require.NoError(t, err)
	kwok := exec.CommandContext(t.Context(), program, args...)
	kwok.Stdout, kwok.Stderr = log, log
	require.NoError(t, kwok.Start())
	t.Cleanup(func() { _ = kwok.Process.Kill(); _ = kwok.Wait(); log.Close() })

	minion := s.fixed(t)["murano-kube-2"].String()
	output, err := s.cluster.on("murano-kube-2", "ip", "route", "add", "local", hollowNetwork, "dev", "lo")
	require.NoError(t, err, output)
	output, err = s.cluster.on("murano-gateway-1", "ip", "route", "add", hollowNetwork, "via", minion)
	require.NoError(t, err, output)
	s.cluster.kubectl(t, fmt.Sprintf(answersForAll, hollowPort), "apply", "-f", "-")
	return h
}

// answersForAll answers at every address of its node.
const answersForAll = `
apiVersion: v1
kind: Pod
metadata: {name: answers-for-all, namespace: kube-system}
spec:
  hostNetwork: true
  nodeName: murano-kube-2
  terminationGracePeriodSeconds: 1
  containers: [{name: demo, image: "registry.local/demo:1", imagePullPolicy: IfNotPresent, env: [{name: LISTEN, value: ":%d"}]}]
`

// atScale is the measurement with so many hollow nodes.
type atScale struct {
	nodes    int
	brought  time.Duration // from the first object to the last answer through the gateway
	ready    time.Duration // until all pods were ready
	programs []programUse
	show     time.Duration // `burano cluster show`
	list     time.Duration // `burano node list`
	gateways time.Duration // the time of `burano gateway status` on the gateway
	drain    time.Duration // of a hollow node
	restart  time.Duration // of the gateway's daemon and HAProxy until all Services answer
	leader   time.Duration // from the end of the publisher until its successor has published a Service
	services []time.Duration
	backends []time.Duration
}

// programUse is the load of a program.
type programUse struct {
	name   string
	memory int     // resident, in MiB
	share  float64 // of a processor, while nothing changes
}

// measure adds nodes, with their pods and Services, to reach the second number, and measures.
func (h *hollow) measure(t *testing.T, from, to int) *atScale {
	t.Helper()
	m := &atScale{nodes: to}
	began := time.Now()
	h.add(t, from, to)
	h.lab.eventually(t, 10*time.Minute, "all pods are ready", func() error {
		for i := range to * servicesOfNode {
			d, err := h.client.AppsV1().Deployments(corev1.NamespaceDefault).Get(t.Context(), nameOf(i), metav1.GetOptions{ResourceVersion: "0"})
			if err != nil || d.Status.ReadyReplicas < podsOfService {
				return fmt.Errorf("%s: %v, %w", nameOf(i), d.Status.ReadyReplicas, err)
			}
		}
		return nil
	})
	m.ready = time.Since(began)
	h.allAnswer(t, to)
	m.brought = time.Since(began)
	t.Logf("%d hollow nodes with %d pods and %d Services: pods ready after %.1f s, all Services answer after %.1f s", to, to*podsOfNode, to*servicesOfNode, m.ready.Seconds(), m.brought.Seconds())

	m.programs = h.programs(t, 30*time.Second)
	m.show = median(5, func() { h.lab.run(t, h.lab.as("burano-demo"), "burano", "cluster", "show", "scaling") })
	m.list = median(5, func() { h.lab.run(t, h.lab.as("burano-demo"), "burano", "node", "list", "scaling") })
	m.gateways = median(5, func() {
		output, err := h.cluster.on("murano-gateway-1", "/opt/burano/bin/burano", "gateway", "status")
		require.NoError(t, err, output)
	})
	for range changesAtScale {
		m.services = append(m.services, h.newService(t, to*servicesOfNode))
		m.backends = append(m.backends, h.movedService(t))
	}
	began = time.Now()
	require.NoError(t, kube.Cordon(t.Context(), h.config, nameOf(0)))
	require.NoError(t, kube.Drain(t.Context(), h.config, nameOf(0), false))
	m.drain = time.Since(began)
	require.NoError(t, kube.Uncordon(t.Context(), h.config, nameOf(0)))

	began = time.Now()
	output, err := h.cluster.on("murano-gateway-1", "systemctl", "restart", "haproxy", "burano-gateway")
	require.NoError(t, err, output)
	h.allAnswer(t, to)
	m.restart = time.Since(began)
	began = time.Now()
	output, err = h.cluster.on("murano-kube-1", "systemctl", "restart", "burano-publish")
	require.NoError(t, err, output)
	h.newService(t, to*servicesOfNode)
	m.leader = time.Since(began)
	return m
}

// nameOf is the name of a node, a Deployment or a Service.
func nameOf(i int) string { return fmt.Sprintf("hollow-%d", i) }

// add makes nodes, and their Deployments and Services.
func (h *hollow) add(t *testing.T, from, to int) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(20)
	for i := from; i < to; i++ {
		group.Go(func() error {
			_, err := h.client.CoreV1().Nodes().Create(ctx, &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: nameOf(i), Labels: map[string]string{hollowLabel: "yes"}, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}},
				Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: hollowLabel, Effect: corev1.TaintEffectNoSchedule}}},
			}, metav1.CreateOptions{})
			return err
		})
	}
	require.NoError(t, group.Wait())
	group, ctx = errgroup.WithContext(t.Context())
	group.SetLimit(20)
	for i := from * servicesOfNode; i < to*servicesOfNode; i++ {
		group.Go(func() error {
			if _, err := h.client.AppsV1().Deployments(corev1.NamespaceDefault).Create(ctx, deploymentOf(nameOf(i)), metav1.CreateOptions{}); err != nil {
				return err
			}
			return h.serve(ctx, nameOf(i), nameOf(i), firstPort+i)
		})
	}
	require.NoError(t, group.Wait())
}

func deploymentOf(name string) *appsv1.Deployment {
	replicas, labels := int32(podsOfService), map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					NodeSelector: map[string]string{hollowLabel: "yes"},
					Tolerations:  []corev1.Toleration{{Key: hollowLabel, Operator: corev1.TolerationOpExists}},
					Containers:   []corev1.Container{{Name: "hollow", Image: "registry.local/hollow:1"}},
				},
			},
		},
	}
}

// serve publishes the pods of a Deployment at a port of the gateways.
func (h *hollow) serve(ctx context.Context, name, app string, port int) error {
	_, err := h.client.CoreV1().Services(corev1.NamespaceDefault).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": app},
			Ports:    []corev1.ServicePort{{Port: int32(port), TargetPort: intstr.FromInt32(hollowPort)}},
		},
	}, metav1.CreateOptions{})
	return err
}

// allAnswer waits until every Service has answered through the gateway.
func (h *hollow) allAnswer(t *testing.T, nodes int) {
	t.Helper()
	h.lab.eventually(t, 10*time.Minute, "all Services answer", func() error {
		group := errgroup.Group{}
		group.SetLimit(8)
		for i := range nodes * servicesOfNode {
			group.Go(func() error { return h.answers(firstPort + i) })
		}
		return group.Wait()
	})
}

func (h *hollow) answers(port int) error {
	_, err := get("http://" + net.JoinHostPort(h.gateway, strconv.Itoa(port)))
	return err
}

// until measures how long a condition takes. It polls often, for the times are short.
func (h *hollow) until(t *testing.T, what string, try func() error) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		err := try()
		if err == nil {
			return time.Since(began)
		}
		require.Lessf(t, time.Since(began), 3*time.Minute, "%s: %v", what, err)
		select {
		case <-t.Context().Done():
			require.NoError(t, t.Context().Err())
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// newService measures how long a new Service takes until it answers, and removes it again.
func (h *hollow) newService(t *testing.T, number int) time.Duration {
	t.Helper()
	const name = "another"
	port := firstPort + number
	require.NoError(t, h.serve(t.Context(), name, nameOf(0), port))
	took := h.until(t, "a new Service answers", func() error { return h.answers(port) })
	h.gone(t, name, port)
	return took
}

// gone deletes a Service and waits until the gateway knows.
func (h *hollow) gone(t *testing.T, name string, port int) {
	t.Helper()
	require.NoError(t, h.client.CoreV1().Services(corev1.NamespaceDefault).Delete(t.Context(), name, metav1.DeleteOptions{}))
	h.until(t, "a deleted Service is gone", func() error {
		if h.answers(port) == nil {
			return fmt.Errorf("port %d answers", port)
		}
		return nil
	})
}

// movedService measures how long a Service takes from its new pods to its first answer, after it has lost all its pods.
func (h *hollow) movedService(t *testing.T) time.Duration {
	t.Helper()
	services := h.client.CoreV1().Services(corev1.NamespaceDefault)
	choose := func(app string) {
		service, err := services.Get(t.Context(), nameOf(0), metav1.GetOptions{})
		require.NoError(t, err)
		service.Spec.Selector["app"] = app
		_, err = services.Update(t.Context(), service, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	choose("nobody")
	h.until(t, "a Service without pods answers no more", func() error {
		if h.answers(firstPort) == nil {
			return fmt.Errorf("it answers")
		}
		return nil
	})
	choose(nameOf(0))
	return h.until(t, "a Service with pods answers", func() error { return h.answers(firstPort) })
}

// programs measures the load of programs while nothing changes.
func (h *hollow) programs(t *testing.T, over time.Duration) []programUse {
	t.Helper()
	units := map[string][]string{
		"murano-kube-1":    {"kube-apiserver", "etcd", "kube-controller-manager", "kube-scheduler", "burano-publish"},
		"murano-gateway-1": {"burano-gateway", "haproxy"},
	}
	const look = `for unit in "$@"; do
  memory=0 ticks=0
  group=$(systemctl show --property ControlGroup --value "$unit")
  for process in $(cat "/sys/fs/cgroup/systemd$group/cgroup.procs" "/sys/fs/cgroup$group/cgroup.procs" 2>/dev/null | sort -u); do
    memory=$((memory + $(awk '/^VmRSS/ {print $2}' "/proc/$process/status")))
    ticks=$((ticks + $(sed 's/.*) //' "/proc/$process/stat" | awk '{print $12 + $13}')))
  done
  echo "$unit $memory $ticks"
done`
	read := func() map[string][2]int {
		all := map[string][2]int{}
		for server, names := range units {
			output, err := h.cluster.on(server, append([]string{"sh", "-c", look, "sh"}, names...)...)
			require.NoError(t, err, output)
			for line := range strings.Lines(output) {
				var name string
				var memory, ticks int
				_, err := fmt.Sscan(line, &name, &memory, &ticks)
				require.NoError(t, err, output)
				all[name+" on "+server] = [2]int{memory, ticks}
			}
		}
		resident, seconds := serverUses(t, h.user)
		all["burano serve"] = [2]int{int(resident / 1024), int(seconds * 100)}
		return all
	}
	before, began := read(), time.Now()
	select {
	case <-t.Context().Done():
	case <-time.After(over): // the load of this idle time is the measurement
	}
	after, took := read(), time.Since(began)
	var list []programUse
	for name, now := range after {
		list = append(list, programUse{name: name, memory: now[0] / 1024, share: float64(now[1]-before[name][1]) / 100 / took.Seconds()})
	}
	slices.SortFunc(list, func(a, b programUse) int { return cmp.Compare(a.name, b.name) })
	return list
}

// serverUses returns the memory of the server in bytes, and its processor time in seconds.
func serverUses(t *testing.T, u *user) (resident, seconds float64) {
	t.Helper()
	for line := range strings.Lines(string(u.call(t, http.MethodGet, "/metrics", nil).Body)) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch name {
		case "process_resident_memory_bytes":
			_, _ = fmt.Sscan(text, &resident)
		case "process_cpu_seconds_total":
			_, _ = fmt.Sscan(text, &seconds)
		}
	}
	return resident, seconds
}

// clear deletes hollow nodes and their pods.
func (h *hollow) clear(t *testing.T) {
	t.Helper()
	h.cluster.kubectl(t, "", "delete", "pod", "answers-for-all", "--namespace", "kube-system")
	h.cluster.kubectl(t, "", "delete", "nodes", "--selector", hollowLabel)
}

func median(times int, do func()) time.Duration {
	var all []time.Duration
	for range times {
		began := time.Now()
		do()
		all = append(all, time.Since(began))
	}
	return middle(all)
}

func middle(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// tableOf is the measurement in Markdown, a column for each number of nodes.
func tableOf(columns []*atScale) string {
	var text strings.Builder
	row := func(name string, value func(*atScale) string) {
		fmt.Fprintf(&text, "| %s |", name)
		for _, m := range columns {
			fmt.Fprintf(&text, " %s |", value(m))
		}
		text.WriteString("\n")
	}
	row("", func(m *atScale) string { return fmt.Sprintf("%d nodes", m.nodes) })
	fmt.Fprintf(&text, "|---|%s\n", strings.Repeat("--:|", len(columns)))
	row("pods, Services", func(m *atScale) string { return fmt.Sprintf("%d, %d", m.nodes*podsOfNode, m.nodes*servicesOfNode) })
	row("all pods ready, s", func(m *atScale) string { return fmt.Sprintf("%.1f", m.ready.Seconds()) })
	row("all Services answer, s", func(m *atScale) string { return fmt.Sprintf("%.1f", m.brought.Seconds()) })
	for i, program := range columns[0].programs {
		row(program.name+", MiB, processors", func(m *atScale) string { return fmt.Sprintf("%d, %.3f", m.programs[i].memory, m.programs[i].share) })
	}
	milliseconds := func(name string, value func(*atScale) time.Duration) {
		row(name, func(m *atScale) string { return fmt.Sprintf("%d ms", value(m).Milliseconds()) })
	}
	milliseconds("`burano cluster show`", func(m *atScale) time.Duration { return m.show })
	milliseconds("`burano node list`", func(m *atScale) time.Duration { return m.list })
	milliseconds("`burano gateway status`", func(m *atScale) time.Duration { return m.gateways })
	milliseconds("a new Service answers, median", func(m *atScale) time.Duration { return middle(m.services) })
	milliseconds("… slowest", func(m *atScale) time.Duration { return slices.Max(m.services) })
	milliseconds("a Service gets its pods, median", func(m *atScale) time.Duration { return middle(m.backends) })
	milliseconds("… slowest", func(m *atScale) time.Duration { return slices.Max(m.backends) })
	milliseconds("a hollow node is drained", func(m *atScale) time.Duration { return m.drain })
	milliseconds("HAProxy and its daemon restart until all answer", func(m *atScale) time.Duration { return m.restart })
	milliseconds("the publisher restarts until a new Service answers", func(m *atScale) time.Duration { return m.leader })
	return text.String()
}
