package upkeep

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/workloads"
)

const dutyPods = "pods"

// podTurns is how often the pods of the catalog are looked at, in intervals.
const podTurns = 5

// podsDuty finds containers of the catalog's pods that end again and again after their deployment. It needs no cloud.
type podsDuty struct {
	Config
	crashes func(ctx context.Context, environment *keeper.Environment, cluster *desired.Cluster) ([]workloads.Crash, error)
}

func newPodsDuty(config Config) podsDuty {
	return podsDuty{config, func(ctx context.Context, environment *keeper.Environment, cluster *desired.Cluster) (found []workloads.Crash, err error) {
		err = config.ask(ctx, environment, cluster, func(api *rest.Config) (err error) {
			found, err = workloads.Crashes(ctx, api)
			return err
		})
		return found, err
	}}
}

func (p podsDuty) Name() string { return dutyPods }

func (p podsDuty) Every() time.Duration { return podTurns * p.Interval }

func (p podsDuty) Look(ctx context.Context, environment *keeper.Environment) (result keeper.Result, err error) {
	for _, cluster := range environment.Clusters {
		found, err := p.crashes(ctx, environment, cluster)
		if err != nil {
			result.Next = p.Interval // the duty health reports a cluster that does not answer
			continue
		}
		for _, one := range found {
			result.Findings = append(result.Findings, keeper.Finding{ObjectID: one.ObjectID, Kind: "container-crashes", Subject: one.Subject, Severity: keeper.Warning,
				Text:  fmt.Sprintf("In cluster %s %s. Its last lines:\n%s", cluster.Name, one.Why, one.LastLines),
				Mends: "Kubernetes starts it again by itself, after longer and longer pauses. Correct its application and deploy, or roll back (burano action call rollback)"})
		}
	}
	return result, ctx.Err()
}
