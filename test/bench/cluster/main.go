// Command cluster measures how long a cluster takes to come up, and to grow, on the local cloud: build/burano and build/localcloud
// with the node image at BURANO_NODE_IMAGE. It prints Markdown: a table of the whole times with the cost of one more minion, a
// table per phase, and the critical paths. Each figure is the median of several rounds; all changes of a round are done one after
// another, so that ratios compare runs under like load.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/burano/burano/test/timeline"
)

const environmentName = "bench"

// shape is a cluster of one master, so many minions and so many gateways.
type shape struct{ minions, gateways int }

func (s shape) String() string { return fmt.Sprintf("1+%d+%d", s.minions, s.gateways) }

// measurement is one change, done once.
type measurement struct {
	change  string
	seconds float64 // from the call to the end of the last step
	used    float64 // seconds of processors
	steps   []timeline.Step
}

var deployments = []shape{{1, 1}, {3, 1}, {6, 2}, {6, 3}}

// growths are numbers of minions that are added to a cluster of 1+1+1.
var growths = []int{1, 3}

func main() {
	rounds := flag.Int("rounds", 3, "how often everything is measured")
	servers := flag.Bool("servers", false, "measure one and ten servers of an application in place of clusters")
	kubeadm := flag.String("kubeadm", "", "have this program make a cluster in each round, too")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *rounds, *servers, *kubeadm); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, rounds int, servers bool, kubeadm string) (err error) {
	image := cmp.Or(os.Getenv("BURANO_NODE_IMAGE"), "build/node-image.tar")
	l, err := openLab(ctx, image)
	if l != nil {
		defer func() { err = errors.Join(err, l.close()) }()
	}
	if err != nil {
		return err
	}
	if servers {
		return l.measureServers(ctx, rounds)
	}
	var other *peer
	if kubeadm != "" {
		if other, err = l.newPeer(ctx, kubeadm, image); err != nil {
			return err
		}
	}
	results := map[string][]measurement{}
	var order []string
	note := func(one measurement) {
		fmt.Fprintf(os.Stderr, "%-22s %6.1f s  %6.1f s of processors  load %s\n", one.change, one.seconds, one.used, load())
		if results[one.change] == nil {
			order = append(order, one.change)
		}
		results[one.change] = append(results[one.change], one)
	}
	for range rounds {
		if other != nil {
			one, err := other.measure(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", peerChange, err)
			}
			note(one)
		}
		for _, s := range deployments {
			if err := l.deploy(ctx, s, note); err != nil {
				return fmt.Errorf("deploy %s: %w", s, err)
			}
			if err := l.everyGatewayAnswers(ctx, s.gateways); err != nil {
				return fmt.Errorf("deploy %s: %w", s, err)
			}
			if s == deployments[0] {
				if err := l.grow(ctx, note); err != nil {
					return err
				}
			}
			if err := l.run(ctx, "burano-demo", "burano", "environment", "delete", "--yes", environmentName); err != nil {
				return err
			}
		}
	}
	fmt.Print(describe(order, results))
	return nil
}

// deploy makes a cluster of the shape that can grow, with the demonstration's application on it.
func (l *lab) deploy(ctx context.Context, s shape, note func(measurement)) error {
	file := filepath.Join(l.folder, "environment.yaml")
	if err := os.WriteFile(file, []byte(described(s)), 0o600); err != nil {
		return err
	}
	one, err := l.measure(ctx, "deploy "+s.String(), "deploy", file, "--follow")
	if err == nil {
		note(one)
	}
	return err
}

// grow adds minions to a cluster of 1+1+1 and takes them away again.
func (l *lab) grow(ctx context.Context, note func(measurement)) error {
	for _, number := range growths {
		for _, action := range []string{"scaleNodesUp", "scaleNodesDown"} {
			change := fmt.Sprintf("%s by %d", map[string]string{"scaleNodesUp": "scale up", "scaleNodesDown": "scale down"}[action], number)
			one, err := l.measure(ctx, change, "action", "call", environmentName, "cluster", action, "--arg", fmt.Sprintf("count=%d", number), "--follow")
			if err != nil {
				return err
			}
			note(one)
		}
	}
	return nil
}

func (l *lab) measure(ctx context.Context, change string, args ...string) (measurement, error) {
	before, err := l.processorTime()
	if err != nil {
		return measurement{}, err
	}
	began := time.Now()
	if err := l.run(ctx, "burano-demo", "burano", args...); err != nil {
		return measurement{}, err
	}
	after, err := l.processorTime()
	if err != nil {
		return measurement{}, err
	}
	steps, err := l.lastSteps(ctx)
	if err != nil {
		return measurement{}, err
	}
	last := slices.MaxFunc(steps, func(a, b timeline.Step) int { return a.Finished.Compare(b.Finished) })
	return measurement{change: change, seconds: last.Finished.Sub(began).Seconds(), used: (after - before).Seconds(), steps: steps}, nil
}

// described is the file of an environment with a cluster of the shape, whose lists of nodes are long enough for all growths.
func described(s shape) string {
	var text strings.Builder
	node := func(indent, kind, name string) {
		fmt.Fprintf(&text, `%s"?": {type: com.mirantis.docker.kubernetes.Kubernetes%sNode}
%sinstance: {"?": {type: io.murano.resources.LinuxMuranoInstance}, name: %s, flavor: m1.medium, image: burano-node, assignFloatingIp: true}
`, indent, kind, strings.Repeat(" ", 8), name)
	}
	fmt.Fprintf(&text, `name: %s
applications:
  - "?": {type: com.mirantis.docker.kubernetes.KubernetesCluster, id: kube}
    name: cluster
    nodeCount: %d
    gatewayCount: %d
    masterNode:
`, environmentName, s.minions, s.gateways)
	node("        ", "Master", "murano-kube-1")
	text.WriteString("    minionNodes:\n")
	for i := range s.minions + slices.Max(growths) {
		node("      - ", "Minion", fmt.Sprintf("murano-kube-%d", i+2))
	}
	text.WriteString("    gatewayNodes:\n")
	for i := range s.gateways {
		node("      - ", "Gateway", fmt.Sprintf("murano-gateway-%d", i+1))
	}
	text.WriteString(`  - "?": {type: com.mirantis.docker.kubernetes.KubernetesPod, id: pod}
    name: web
    kubernetesCluster: kube
    replicas: 2
  - "?": {type: io.burano.demo.Hello, id: hello}
    name: Hello
    host: pod
`)
	return text.String()
}

// describe writes the tables. Each change is represented by its round with the median time.
func describe(order []string, results map[string][]measurement) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d processors, load %s, %d rounds.\n\n| change | s (median) | fastest | slowest | s of processors |\n|---|--:|--:|--:|--:|\n", runtime.NumCPU(), load(), len(results[order[0]]))
	median := map[string]measurement{}
	for _, change := range order {
		all := results[change]
		slices.SortFunc(all, func(a, b measurement) int { return cmp.Compare(a.seconds, b.seconds) })
		median[change] = all[len(all)/2]
		fmt.Fprintf(&text, "| %s | %.1f | %.1f | %.1f | %.1f |\n", change, median[change].seconds, all[0].seconds, all[len(all)-1].seconds, median[change].used)
	}
	seconds := func(s shape) float64 { return median["deploy "+s.String()].seconds }
	one, three, six := seconds(deployments[0]), seconds(deployments[1]), seconds(deployments[2])
	fmt.Fprintf(&text, "\nA minion more costs %.1f s (from %s to %s) and %.1f s (to %s, with a gateway more); %s takes %.1f times as long as %s. Of a scale-up, two minions more cost %.1f s each.\n",
		(three-one)/float64(deployments[1].minions-1), deployments[0], deployments[1], (six-one)/float64(deployments[2].minions-1), deployments[2],
		deployments[2], six/one, deployments[0], (median["scale up by 3"].seconds-median["scale up by 1"].seconds)/2)

	text.WriteString("\nPer phase: from the first start to the last end on any node, and in brackets the longest on one node.\n\n| phase |")
	for _, change := range order {
		fmt.Fprintf(&text, " %s |", change)
	}
	text.WriteString("\n|---|" + strings.Repeat("--:|", len(order)) + "\n")
	var names []string
	phases := map[string]map[string]timeline.Phase{}
	for _, change := range order {
		phases[change] = map[string]timeline.Phase{}
		for _, phase := range timeline.Phases(median[change].steps) {
			phases[change][phase.Name] = phase
			if !slices.Contains(names, phase.Name) {
				names = append(names, phase.Name)
			}
		}
	}
	for _, name := range names {
		fmt.Fprintf(&text, "| %s |", name)
		for _, change := range order {
			phase, there := phases[change][name]
			switch {
			case !there:
				text.WriteString(" |")
			case phase.Steps == 1:
				fmt.Fprintf(&text, " %.1f |", phase.Longest.Seconds())
			default:
				fmt.Fprintf(&text, " %.1f (%.1f) |", phase.To.Sub(phase.From).Seconds(), phase.Longest.Seconds())
			}
		}
		text.WriteString("\n")
	}
	text.WriteString("\nCritical paths:\n\n")
	for _, change := range order {
		var parts []string
		for _, step := range timeline.CriticalPath(median[change].steps) {
			parts = append(parts, fmt.Sprintf("%s %.1f", step.Name, step.Took().Seconds()))
		}
		fmt.Fprintf(&text, "- %s: %s\n", change, strings.Join(parts, ", "))
	}
	return text.String()
}

// load is the machine's load average over one minute.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Fields(string(text))[0]
}
