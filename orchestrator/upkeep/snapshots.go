package upkeep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/snapshot"
	"github.com/burano/burano/orchestrator/store"
)

const (
	dutySnapshots = "snapshots"
	// How often a cluster is snapshotted, and how many of these are kept, without a value in its properties.
	// snapshotPause is how often it is looked whether a snapshot is due; overdue is how many intervals late one may be before that is a finding.
	snapshotPause = 10 * time.Minute
	overdue       = 2
)

// scheduled is the duty that takes snapshots of clusters, as often as their properties ask. It needs no cloud.
type scheduled struct {
	Config
	now  func() time.Time
	take func(ctx context.Context, of snapshot.Subject) (store.Snapshot, error)
}

func newScheduled(config Config) scheduled {
	return scheduled{config, time.Now, func(ctx context.Context, of snapshot.Subject) (store.Snapshot, error) {
		return known.TakeSnapshot(ctx, config.Secrets, of, config.Reach)
	}}
}

func (s scheduled) Name() string { return dutySnapshots }

func (s scheduled) Every() time.Duration { return snapshotPause }

func (s scheduled) Look(ctx context.Context, environment *keeper.Environment) (result keeper.Result, err error) {
	for _, cluster := range environment.Clusters {
		every := cluster.Snapshots.Every
		if every == 0 || cluster.Alone {
			continue // gateways alone have nothing that Burano does not
		}
		list, err := s.Snapshots.Snapshots(ctx, store.SnapshotFilter{EnvironmentID: environment.ID, ClusterID: cluster.ID})
		if err != nil {
			return result, err
		}
		var age time.Duration
		there := false
		for _, one := range list {
			if one.Kind == store.Scheduled {
				age, there = s.now().Sub(one.Created.Time()), true
				break
			}
		}
		if there && age < every {
			continue
		}
		_, failed := s.take(ctx, snapshot.Subject{EnvironmentID: environment.ID, ClusterID: cluster.ID, ClusterName: cluster.Name, Kind: store.Scheduled,
			Reason: fmt.Sprintf("every %g hours", every.Hours()), Keep: cluster.Snapshots.Kept})
		if failed == nil {
			continue
		}
		if ctx.Err() != nil {
			return result, errors.Join(failed, ctx.Err())
		}
		finding := keeper.Finding{ObjectID: cluster.ID, Kind: "snapshot-failed", Severity: keeper.Info,
			Text:  fmt.Sprintf("No snapshot of cluster %s could be taken: %v", cluster.Name, failed),
			Mends: "It is tried again by itself, every 10 minutes. Until then there is what was taken before (burano cluster snapshot list)"}
		if !there || age > overdue*every {
			finding.Severity = keeper.Warning
		}
		if fault.KindOf(failed) == fault.Forbidden {
			finding.Mends = "Delete snapshots that are not needed (burano cluster snapshot delete), or have the project's quota raised"
		}
		result.Findings = append(result.Findings, finding)
	}
	return result, nil
}
