package upkeep

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/scaling"
)

const dutyGatewayLoad = "gateway-load"

// gatewayLoads is the duty that finds when a cluster should have more gateways, or fewer. Where no cluster follows its connections, it sends no requests.
type gatewayLoads struct {
	Config
	count func(ctx context.Context, environmentID, objectID string) (scaling.Traffic, error)

	mutex sync.Mutex
	since map[string]differs // by environment and cluster
}

// differs is since when a cluster has had another number of gateways than its connections need.
type differs struct {
	more bool
	from time.Time
}

func newGatewayLoads(config Config) *gatewayLoads {
	return &gatewayLoads{Config: config, count: config.Meters.Traffic, since: map[string]differs{}}
}

func (g *gatewayLoads) Name() string { return dutyGatewayLoad }

func (g *gatewayLoads) Every() time.Duration { return loadIdle }

func (g *gatewayLoads) Look(ctx context.Context, environment *keeper.Environment) (result keeper.Result, err error) {
	follows := false
	for _, cluster := range environment.Clusters {
		limits := cluster.GatewayLimits
		if limits == nil {
			g.remember(environment, cluster, nil)
			continue
		}
		follows = true
		finding, err := g.lookAt(ctx, environment, cluster, *limits)
		if ctx.Err() != nil {
			return result, errors.Join(err, ctx.Err())
		}
		if err != nil { // the check of nodes reports more about it
			finding = &keeper.Finding{ObjectID: cluster.ID, Kind: "connections-unknown", Severity: keeper.Info, Mends: "It is looked again by itself",
				Text: fmt.Sprintf("The gateways of cluster %s stay as many as they are, because it could not be found out how many connections they have: %v", cluster.Name, err)}
		}
		if finding != nil {
			result.Findings = append(result.Findings, *finding)
		}
	}
	if follows {
		result.Next = min(loadPause, g.Interval)
	}
	return result, nil
}

// lookAt checks whether a cluster has enough gateways. One is added after two findings in a row, and one goes when it was not needed for the cluster's set
// time.
func (g *gatewayLoads) lookAt(ctx context.Context, environment *keeper.Environment, cluster *desired.Cluster, limits desired.GatewayLimits) (*keeper.Finding, error) {
	counted, err := g.count(ctx, environment.ID, cluster.ID)
	if err != nil {
		return nil, err
	}
	now, wanted, reason := scaling.Sizes(limits, counted)
	if now == wanted {
		g.remember(environment, cluster, nil)
		return nil, nil
	}
	more := wanted > now
	lasted, patience := time.Since(g.remember(environment, cluster, &more)), min(loadPause, g.Interval)
	if !more {
		patience = time.Duration(limits.After) * time.Second
	}
	if lasted < patience {
		return nil, nil
	}
	finding := &keeper.Finding{ObjectID: cluster.ID, Kind: "too-few-gateways", Subject: strconv.Itoa(wanted), Severity: keeper.Info, Text: reason}
	if !more {
		finding.Kind = "too-many-gateways"
	}
	upgrade, err := known.LoadUpgrade(ctx, known.EnvironmentVault{Secrets: g.Secrets, Environment: environment.ID, Cluster: cluster.ID}.Load)
	if err != nil {
		return nil, err
	}
	resizes(ctx, environment, finding, upgrade != nil, &keeper.Repair{ObjectID: cluster.ID, Method: known.ScaleGatewaysByLoad, Cloud: true, Routine: true,
		Text: "Gateways of cluster " + cluster.Name + " follow their connections"})
	return finding, nil
}

// remember notes whether a cluster should have more gateways or fewer, nil for neither, and returns since when that has been so.
func (g *gatewayLoads) remember(environment *keeper.Environment, cluster *desired.Cluster, more *bool) time.Time {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	key := environment.ID + "/" + cluster.ID
	if more == nil {
		delete(g.since, key)
		return time.Time{}
	}
	if known, there := g.since[key]; !there || known.more != *more {
		g.since[key] = differs{*more, time.Now()}
	}
	return g.since[key].from
}
