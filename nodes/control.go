package nodes

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/internal/panics"
	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/plan"
	"github.com/burano/burano/nodes/ssh"
)

//go:embed scripts/health.sh
var healthScript string

//go:embed scripts/journal.sh
var journalScript string

const (
	pollEvery  = 50 * time.Millisecond
	watchEvery = 3 * time.Second
	// A unit that systemd had to start so often again while we wait for it does not come up by itself.
	tooManyRestarts = 6
)

// controlSteps run the control plane on masters, and lead other nodes to it.
type controlSteps struct{ *deployment }

func (d controlSteps) steps() []step {
	lead, controllers := d.leads(), d.units(false, "kube-controller-manager", "kube-scheduler")
	gateways := d.with(Gateway)
	server, ways, one := d.units(false, "kube-apiserver"), "", ""
	if d.again {
		ways = mutexWays
	}
	if d.again && d.cluster.config.severalMasters() { // one that is restarted serves before the next one is
		server, one = d.apiServer, mutexAPI
	}
	return []step{
		{name: stepAPIForwarder, on: d.with(Minion, Gateway), after: here(stepFiles), mutex: ways, run: d.apiForwarder},
		{name: stepAPIServer, on: lead, after: here(stepEtcdUsers), mutex: one, run: server},
		{name: stepAPIServer, on: d.besidesLead(), after: needs(at(lead, stepEtcdUsers), here(stepEtcdJoin)), mutex: one, run: server},
		{name: stepAPIServes, on: serving(d.deployment, Master), after: here(stepAPIServer), run: d.apiServes},
		{name: stepAPIReady, on: lead, after: here(stepAPIServes), run: d.apiReady},
		// Two controller managers would both answer for the same objects.
		{name: stepFormerControllers, on: d.formerControllers(), after: at(lead, stepAPIServes), limit: farewellLimit, run: d.endControllers},
		// The lead's controllers first: where there was one master before, they have had no leader.
		{name: stepControllers, on: lead, after: needs(here(stepAPIServes), at(d.formerControllers(), stepFormerControllers)), run: controllers},
		{name: stepControllers, on: d.besidesLead(), after: needs(here(stepAPIServes), at(lead, stepControllers)), run: controllers},
		{name: stepAccess, on: lead, after: here(stepAPIServes), run: d.access},
		{name: stepServiceAccount, on: lead, after: here(stepAPIReady, stepControllers), run: d.serviceAccount},
		// Definitions keep the API server busy: they wait until it is ready, for which others wait.
		{name: stepGatewayAPI, on: lead, skipIf: len(gateways) == 0, after: here(stepAccess, stepAPIReady), run: d.gatewayAPI},
	}
}

// formerControllers are the former masters whose controllers end for the new ones. Where masters elect, the ones that still serve are left alone.
func (d *deployment) formerControllers() []Node {
	return only(d.cluster.config.formerMasters(), func(former Node) bool {
		return !d.design.elect || slices.ContainsFunc(d.design.former, func(node Node) bool { return node.Name == former.Name })
	})
}

// endControllers stops the controllers of a former master.
func (d controlSteps) endControllers(ctx context.Context, former Node) error {
	d.cluster.stopPolitely(ctx, former, append([]string{"kube-controller-manager", "kube-scheduler"}, d.design.driver.Units().Controllers...)...)
	return nil
}

// apiForwarder starts the node's forwarder to the API servers, or gives it another list of them, and then makes the node's programs use it. Existing
// connections stay.
func (d controlSteps) apiForwarder(ctx context.Context, node Node) error {
	_, err := d.startAnd(ctx, node, ssh.Script{Name: "find the API", Body: placeFilesScript, Env: map[string]string{"HOSTS": d.found(node).hosts}}, kube.ForwarderUnit)
	return err
}

// apiServer starts a master's API server and waits until it answers.
func (d controlSteps) apiServer(ctx context.Context, node Node) error {
	if err := d.start(ctx, node, false, "kube-apiserver"); err != nil {
		return err
	}
	return d.apiServes(ctx, node)
}

// apiServes waits until the API server answers anything at all: controllers and kubelets can begin then.
func (d controlSteps) apiServes(ctx context.Context, node Node) error {
	config, err := d.bootstrapOn(ctx, node)
	if err != nil {
		return err
	}
	return d.poll(ctx, node, config, "/version")
}

// apiReady waits until the API server has made the objects with which every cluster begins.
func (d controlSteps) apiReady(ctx context.Context, node Node) error {
	config, err := d.bootstrapOn(ctx, node)
	if err != nil {
		return err
	}
	return d.poll(ctx, node, config, "/readyz")
}

// access applies the rights of Burano, the API server's kubelet client, the publisher and the network. It tries again
// for a while: the API server serves before each of its parts does.
func (d controlSteps) access(ctx context.Context, node Node) error {
	config, err := d.bootstrap(ctx)
	if err != nil {
		return err
	}
	return d.applyCommon(ctx, node, config, kube.Access(), d.design.driver.Manifests())
}

// gatewayAPI makes the cluster know Gateways, where its master's image has their definitions. The cluster works without them: a failure is reported, and
// the next deployment tries again.
func (d controlSteps) gatewayAPI(ctx context.Context, node Node) error {
	refused, err := d.definitions(ctx, node, "Gateway API", kube.GatewayAPIFile, kube.EnsureGatewayAPI)
	if refused != nil {
		d.report(ctx, node, fmt.Sprintf("Gateway API is not installed, Services and Ingresses are served all the same: %v", refused))
	}
	return err
}

// definitions makes the cluster know kinds of objects by a file of a master's image, where it has one. Definitions of another maker are reported; refused
// is the reason why the API server does not take them.
func (d controlSteps) definitions(ctx context.Context, node Node, what, file string, ensure func(ctx context.Context, config *rest.Config, definitions []runtime.Object) (left []string, err error)) (refused, err error) {
	definitions, err := d.readDefinitions(ctx, node, what, file)
	if err != nil || definitions == nil {
		return nil, err
	}
	config, err := d.bootstrap(ctx)
	if err != nil {
		return nil, err
	}
	var left []string
	refused = wait.Every(pollEvery).For(time.Minute).Until(ctx, func(ctx context.Context) (err error) {
		if left, err = ensure(ctx, config, definitions); err != nil {
			return wait.Again(err)
		}
		return nil
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if refused == nil && len(left) > 0 {
		d.report(ctx, node, "of "+what+", these were made by somebody else and stay: "+strings.Join(left, ", "))
	}
	return refused, nil
}

// serviceAccount waits for the account of pods that name none: without it the first pods are refused and tried again later.
func (d controlSteps) serviceAccount(ctx context.Context, node Node) error {
	config, err := d.bootstrap(ctx)
	if err != nil {
		return err
	}
	account := kube.Ref{APIVersion: "v1", Kind: "ServiceAccount", Namespace: "default", Name: "default"}
	return d.guarded(ctx, node, []string{"kube-controller-manager"}, func(ctx context.Context) error {
		return kube.Wait(ctx, config, account, kube.Exists)
	})
}

// dnsSteps run the cluster's DNS.
type dnsSteps struct{ *deployment }

func (d dnsSteps) steps() []step {
	return []step{{name: stepDNS, on: d.leads(), skipIf: !d.cluster.config.DNS, after: here(stepAPIReady), soft: []soft{{name: stepFiles, nodes: d.present(), limit: joinGrace}},
		runKnowing: func(ctx context.Context, node Node, done plan.Progress) error {
			return d.dns(ctx, node, through(done, d.present(), stepFiles))
		}}}
}

// dns applies CoreDNS, which asks the resolvers of the nodes that are installed. It does not wait for its pod, which comes while the
// applications' come.
func (d dnsSteps) dns(ctx context.Context, node Node, installed []Node) error {
	config, err := d.bootstrap(ctx)
	if err != nil {
		return err
	}
	var resolvers []netip.Addr
	for _, other := range installed {
		for _, resolver := range d.found(other).facts.resolvers {
			// only resolvers of a pod's node: other nodes may reach other resolvers
			if other.Role == Minion && !slices.Contains(resolvers, resolver) {
				resolvers = append(resolvers, resolver)
			}
		}
	}
	minions := 0
	for _, other := range d.cluster.config.staying() {
		if other.Role == Minion {
			minions++
		}
	}
	return d.applyCommon(ctx, node, config, kube.CoreDNS(d.cluster.config.Addressing, resolvers, minions, d.podsEver))
}

// guarded runs something that needs units of a node. It ends early when one of them fails again and again, and an error
// carries the last lines of their journals.
func (d *deployment) guarded(ctx context.Context, node Node, units []string, run func(context.Context) error) error {
	inner, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if err := panics.Run(func() error { d.watchUnits(inner, node, units, cancel); return nil }); err != nil {
			cancel(err)
		}
	}()
	err := run(inner)
	cause := context.Cause(inner)
	cancel(nil)
	<-watched
	if err == nil {
		return nil
	}
	if cause != nil && inner.Err() != nil && ctx.Err() == nil && !strings.Contains(err.Error(), cause.Error()) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	// The journal is worth a last question, also when time is up.
	last, stop := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer stop()
	journal, journalErr := d.script(last, node, "read journals", journalScript, map[string]string{"UNITS": strings.Join(units, "\n")})
	if journalErr == nil && strings.TrimSpace(journal) != "" {
		err = fmt.Errorf("%w; last lines of the journal on %s:\n%s", err, node.Name, strings.TrimSpace(journal))
	}
	return err
}

func (d *deployment) watchUnits(ctx context.Context, node Node, units []string, fail context.CancelCauseFunc) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	base := map[string]int{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		out, err := d.script(ctx, node, "look at units", healthScript, map[string]string{"UNITS": strings.Join(units, "\n")})
		if err != nil {
			continue // the connection may be coming back
		}
		for line := range strings.Lines(out) {
			name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
			count, err := strconv.Atoi(text)
			if err != nil {
				continue
			}
			if _, known := base[name]; !known {
				base[name] = count
			}
			if count-base[name] >= tooManyRestarts {
				fail(fmt.Errorf("%s ends again and again", name))
				return
			}
		}
	}
}

// poll calls path on the API server until it answers 200.
func (d *deployment) poll(ctx context.Context, node Node, config *rest.Config, path string) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("make a client of the API server: %w", err)
	}
	return d.guarded(ctx, node, []string{"kube-apiserver"}, func(ctx context.Context) error {
		err := wait.Every(pollEvery).Until(ctx, func(ctx context.Context) error { return answers(ctx, client, config.Host+path) })
		if err != nil {
			return fmt.Errorf("the API server does not answer %s: %w", path, err)
		}
		return nil
	})
}

// answers asks once; every answer but 200 is asked for again.
func answers(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if ctx.Err() != nil {
		return wait.Again(nil)
	}
	if err != nil {
		return wait.Again(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
	return wait.Again(fmt.Errorf("its last answer: %s: %s", answer.Status, strings.TrimSpace(string(body))))
}

// apis are a deployment's connections to the API servers of masters, by their names. Each has one certificate, and all steps use it.
type apis struct {
	sync.Mutex
	made map[string]*rest.Config
}

func (a *apis) close() {
	a.Lock()
	defer a.Unlock()
	for _, config := range a.made {
		utilnet.CloseIdleConnectionsFor(config.Transport)
	}
}

// bootstrap is Cluster.bootstrap with the API server of the lead: the others may not run yet.
func (d *deployment) bootstrap(ctx context.Context) (*rest.Config, error) {
	return d.bootstrapOn(ctx, d.lead)
}

func (d *deployment) bootstrapOn(ctx context.Context, master Node) (*rest.Config, error) {
	d.apis.Lock()
	defer d.apis.Unlock()
	if config := d.apis.made[master.Name]; config != nil {
		return config, nil
	}
	config, err := d.cluster.bootstrapOn(ctx, master)
	if err != nil {
		return nil, err
	}
	if config, err = kube.Shared(config); err != nil {
		return nil, err
	}
	if d.apis.made == nil {
		d.apis.made = map[string]*rest.Config{}
	}
	d.apis.made[master.Name] = config
	return config, nil
}

func (d *deployment) apply(ctx context.Context, node Node, config *rest.Config, documents ...[]byte) error {
	objects, err := kube.Objects(documents...)
	if err != nil {
		return err
	}
	return d.applyObjects(ctx, node, config, objects)
}

// applyCommon is apply for documents that are the same for many clusters.
func (d *deployment) applyCommon(ctx context.Context, node Node, config *rest.Config, documents ...[]byte) error {
	var all []runtime.Object
	for _, document := range documents {
		objects, err := commonManifests.read(document)
		if err != nil {
			return err
		}
		all = append(all, objects...)
	}
	return d.applyObjects(ctx, node, config, all)
}

func (d *deployment) applyObjects(ctx context.Context, node Node, config *rest.Config, objects []runtime.Object) error {
	return d.guarded(ctx, node, []string{"kube-apiserver"}, func(ctx context.Context) error {
		return wait.Every(pollEvery).For(time.Minute).Until(ctx, func(ctx context.Context) error {
			if err := kube.Apply(ctx, config, kube.Manager, objects...); err != nil {
				return wait.Again(err)
			}
			return nil
		})
	})
}
