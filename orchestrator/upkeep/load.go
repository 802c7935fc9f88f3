package upkeep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/autoscale"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/scaling"
)

const (
	dutyLoad = "load"
	// loadIdle is how often it is looked where no group follows its load: the end of every task has it looked, too. loadPause is how often it is asked
	// whether pods wait, and loadWhole how often for all that runs while none do.
	loadIdle  = time.Hour
	loadPause = 10 * time.Second
	loadWhole = time.Minute
	// loadKept is how long a connection is kept for the next check.
	loadKept = 30 * time.Minute
)

// loads is the duty that finds when groups should have more nodes, or fewer. Where no group follows its load, it sends no requests.
type loads struct {
	Config
	open func(ctx context.Context, environmentID string, cluster *desired.Cluster, former *followed) (*followed, error)

	mutex sync.Mutex
	held  map[string]*followed // by environment and cluster
}

// followed is a cluster whose load is looked at again and again, over one connection.
type followed struct {
	known    known.Facts
	text     string // of them
	client   kubernetes.Interface
	live     interface{ Close() error }
	opened   time.Time
	used     time.Time
	whole    time.Time // when it is looked at all that runs
	flavors  map[string]*openstack.FlavorChoice
	upgrades bool
	record   scaling.GroupRecord
}

func newLoads(config Config) *loads {
	l := &loads{Config: config, held: map[string]*followed{}}
	l.open = l.connect
	return l
}

func (l *loads) Name() string { return dutyLoad }

func (l *loads) Every() time.Duration { return loadIdle }

func (l *loads) Look(ctx context.Context, environment *keeper.Environment) (result keeper.Result, err error) {
	follows := false
	for _, cluster := range environment.Clusters {
		if !slices.ContainsFunc(cluster.Groups, desired.Group.Elastic) {
			continue
		}
		follows = true
		findings, err := l.lookAt(ctx, environment, cluster)
		if ctx.Err() != nil {
			return result, errors.Join(err, ctx.Err())
		}
		if err != nil { // the check of nodes reports more about it
			findings = []keeper.Finding{{ObjectID: cluster.ID, Kind: "load-unknown", Severity: keeper.Info, Mends: "It is looked again by itself",
				Text: fmt.Sprintf("Groups of cluster %s that follow their load stay as they are, because it could not be found out: %v", cluster.Name, err)}}
		}
		result.Findings = append(result.Findings, findings...)
	}
	if follows {
		result.Next = min(loadPause, l.Interval)
	}
	l.forget()
	return result, nil
}

// lookAt decides on the groups of a cluster.
func (l *loads) lookAt(ctx context.Context, environment *keeper.Environment, cluster *desired.Cluster) (findings []keeper.Finding, err error) {
	key := environment.ID + "/" + cluster.ID
	l.mutex.Lock()
	former := l.held[key]
	delete(l.held, key)
	l.mutex.Unlock()
	one, err := l.open(ctx, environment.ID, cluster, former)
	if err != nil {
		return nil, err
	}
	ok := false
	defer func() {
		if !ok { // the next look begins with a connection of its own
			_ = one.live.Close()
			return
		}
		l.mutex.Lock()
		l.held[key] = one
		l.mutex.Unlock()
	}()
	if one.used = time.Now(); one.used.Before(one.whole) {
		waits, err := kube.AnyWaits(ctx, one.client)
		if ok = err == nil; err != nil || !waits {
			return nil, err
		}
	}
	state, err := scaling.Load(ctx, one.client, cluster.Groups, one.known, one.record, func(ctx context.Context, name string) (*openstack.FlavorChoice, error) {
		if found, there := one.flavors[name]; there {
			return found, nil
		}
		project, err := environment.Project(ctx, "")
		if errors.Is(err, keeper.ErrNoDelegation) {
			return nil, nil
		}
		if err == nil {
			one.flavors[name], err = project.Flavor(ctx, name)
		}
		return one.flavors[name], err
	})
	if err != nil {
		return nil, err
	}
	decision := autoscale.Decide(state)
	one.whole = state.Now.Add(loadWhole)
	var own []corev1.Node
	for _, group := range state.Groups {
		if soon := state.Now.Add(group.After); soon.Before(one.whole) {
			one.whole = soon
		}
		for _, node := range state.Nodes {
			if slices.Contains(group.Nodes, node.Name) {
				own = append(own, node)
				if since, unneeded := decision.Unneeded[node.Name]; unneeded && since.Add(group.After).Before(one.whole) {
					one.whole = since.Add(group.After)
				}
			}
		}
	}
	if len(decision.Changes) == 0 { // a node that grows out of need is noted when that is over
		if err := kube.MarkUnneeded(ctx, one.client, own, decision.Unneeded); err != nil {
			return nil, err
		}
	}
	ok = true
	if findings = l.findings(ctx, environment, cluster, decision, one.upgrades); len(findings) > 0 {
		one.whole = time.Time{} // open findings are checked each time
	}
	return findings, nil
}

// findings describe missing and surplus nodes of groups.
func (l *loads) findings(ctx context.Context, environment *keeper.Environment, cluster *desired.Cluster, decision autoscale.Decision, upgrades bool) (findings []keeper.Finding) {
	for _, change := range decision.Changes {
		finding := keeper.Finding{ObjectID: cluster.ID, Kind: "group-too-small", Subject: fmt.Sprintf("%s: %d", change.Group, change.Count), Severity: keeper.Info,
			Text: change.Reason}
		if change.Count < change.From {
			finding.Kind = "group-too-large"
		}
		resizes(ctx, environment, &finding, upgrades, &keeper.Repair{ObjectID: cluster.ID, Method: known.ScaleByLoad, Cloud: true, Routine: true,
			Text: "Groups of cluster " + cluster.Name + " follow their load"})
		findings = append(findings, finding)
	}
	if len(decision.Helpless) > 0 {
		const most = 5
		text := fmt.Sprintf("%d pods of cluster %s find no room, and no group can give them any", len(decision.Helpless), cluster.Name)
		for i, one := range decision.Helpless {
			if i == most {
				text += fmt.Sprintf("; and %d more", len(decision.Helpless)-most)
				break
			}
			text += fmt.Sprintf("; %s (%s)", one.Pod, one.Why)
		}
		findings = append(findings, keeper.Finding{ObjectID: cluster.ID, Kind: "pods-without-room", Severity: keeper.Warning, Text: text,
			Mends: "Give a group a higher maximum or larger nodes (burano cluster scale, its flavor), or have the pods request less"})
	}
	return findings
}

// resizes adds to a finding the remedy for too many or too few nodes: the repair, unless there is an obstacle.
func resizes(ctx context.Context, environment *keeper.Environment, finding *keeper.Finding, upgrades bool, repair *keeper.Repair) {
	_, err := environment.Project(ctx, "")
	switch {
	case upgrades:
		finding.Mends = "End the upgrade of the cluster that has begun: until then the number of its nodes stays as it is"
	case environment.Failed:
		finding.Mends = environment.DeployAgain("goes on", "Burano does not change the number of nodes by itself, because its newest deployment failed")
	case errors.Is(err, keeper.ErrNoDelegation):
		finding.Severity = keeper.Warning
		finding.Mends = "Give the environment a standing delegation, without which Burano makes and deletes no servers: burano environment delegation set " + environment.Name + ", or let Burano work in the project with a role of its own: burano project enable"
	default:
		finding.Mends = "Burano does so by itself, with the environment's standing delegation"
		finding.Repair = repair
	}
}

// connect opens a cluster, or goes on with one that was opened before and is still the same.
func (l *loads) connect(ctx context.Context, environmentID string, cluster *desired.Cluster, former *followed) (*followed, error) {
	keep := known.EnvironmentVault{Secrets: l.Secrets, Environment: environmentID, Cluster: cluster.ID}
	facts, err := known.FactsOf(ctx, keep)
	if err != nil {
		if former != nil {
			_ = former.live.Close()
		}
		return nil, err
	}
	text, err := json.Marshal(facts)
	if err != nil {
		return nil, err
	}
	if former != nil && (former.text != string(text) || time.Since(former.opened) > loadKept) {
		_ = former.live.Close()
		former = nil
	}
	if former == nil {
		_, live, err := known.Open(ctx, l.Secrets, environmentID, cluster.ID, nodes.Config{Logger: l.Logger, Connected: l.Connected, Patience: known.ReachPatience})
		if err != nil {
			return nil, err
		}
		client, err := scaling.KubernetesOf(ctx, live)
		if err != nil {
			_ = live.Close()
			return nil, err
		}
		former = &followed{known: facts, text: string(text), client: client, live: live, opened: time.Now(), flavors: map[string]*openstack.FlavorChoice{}}
	}
	upgrade, err := known.LoadUpgrade(ctx, keep.Load)
	if err == nil {
		former.upgrades = upgrade != nil
		former.record, err = scaling.LoadGroupRecord(ctx, keep.Load)
	}
	if err != nil {
		_ = former.live.Close()
		return nil, err
	}
	return former, nil
}

// forget closes connections that were not used for a while: their clusters are gone, or another server watches them.
func (l *loads) forget() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for key, one := range l.held {
		if time.Since(one.used) > loadKept {
			_ = one.live.Close()
			delete(l.held, key)
		}
	}
}
