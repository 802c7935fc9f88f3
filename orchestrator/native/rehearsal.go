package native

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/claims"
	"github.com/burano/burano/orchestrator/clusters"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/preview"
	"github.com/burano/burano/orchestrator/task"
	"github.com/burano/burano/orchestrator/upgrades"
)

// Stage is the part of an environment that a rehearsal of its deployment reads.
type Stage interface {
	task.Stage
	Looks() bool
	// Former is the model that was deployed last, in the classes' form; nil for none.
	Former() map[string]any
}

// Rehearsal gives bodies that change nothing, and a function that computes with them the effect of a deployment of a model: an error with
// openstack.ServerChanges has the servers that it would rebuild, resize or replace. Each server that is present, or is certain to come, and each
// stack of a Heat template describes its resources, as in the deployment. Other faults are left to the deployment.
func Rehearsal(stage Stage, config Config) (muranopl.Natives, engine.Rehearsed) {
	config.Logger = slog.New(slog.DiscardHandler) // code that is rehearsed writes no log
	r := task.NewRehearsal(stage)
	bodies := assemble(r, config, true)
	return bodies.natives, func(ctx context.Context, interpreter *muranopl.Interpreter, root *muranopl.Object) (preview.Foreseen, error) {
		r.SetModel(root)
		own, clusters := bodies.stacks, bodies.clusters
		foreseen, err := own.Rehearse(ctx, interpreter, root, stage.Looks())
		if err != nil {
			return preview.Foreseen{}, err
		}
		ctx, cancel := looking(ctx)
		defer cancel()
		refused, _ := clusters.Refused(ctx) // the deployment repeats checks that got no answer
		foreseen.Refused = append(foreseen.Refused, refused...)
		clusters.ForeseeReplacements(ctx, &foreseen)
		if stage.Looks() {
			foreseen.Effects = append(foreseen.Effects, own.NewServers()...)
		}
		clusters.Previews().All(ctx, interpreter, stage, &foreseen)
		return foreseen, own.Refused()
	}
}

// lookLimit is how long a preview looks into clusters. A request that shows one, or begins a deployment, is answered within a minute, also while an API server
// takes requests and does not answer them.
const lookLimit = 30 * time.Second

func looking(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, lookLimit, fmt.Errorf("the cluster did not answer within %s", lookLimit))
}

// PlanUpgrade computes the effect of an upgrade of a cluster to an image, named by id or name (upgrades.Plan).
func PlanUpgrade(config Config, clusterID, image string) engine.Question {
	return question(config, func(ctx context.Context, all *clusters.Clusters) (any, error) {
		object := all.Objects.Find(clusterID)
		if object == nil || !object.Class().IsEmbedded(task.ClassCluster) {
			return nil, fault.New(fault.NotFound, "Object %s is no Kubernetes cluster", clusterID)
		}
		project, err := all.Runtime.Project(ctx)
		if err != nil {
			return nil, err
		}
		found, err := project.Image(ctx, image)
		if err != nil {
			return nil, err
		}
		return upgrades.PlansOf(all).PlanUpgrade(ctx, object, found)
	})
}

// Leaving computes which claims and volumes of an environment's clusters go when it is deleted. Its answer is a preview.Deletion.
func Leaving(config Config) engine.Question {
	return question(config, func(ctx context.Context, all *clusters.Clusters) (any, error) {
		var answer preview.Deletion
		ctx, cancel := looking(ctx)
		defer cancel()
		for _, cluster := range all.Objects.All(task.ClassCluster) {
			claims.New(all).Leaving(ctx, cluster, &answer)
		}
		return answer, nil
	})
}

// question is a question about the clusters of a model, which changes nothing.
func question(config Config, ask func(ctx context.Context, all *clusters.Clusters) (any, error)) engine.Question {
	config.Logger = slog.New(slog.DiscardHandler)
	return func(stage *engine.Stage) (muranopl.Natives, func(context.Context, *muranopl.Interpreter, *muranopl.Object) (any, error)) {
		r := task.NewRehearsal(stage)
		bodies := assemble(r, config, true)
		return bodies.natives, func(ctx context.Context, _ *muranopl.Interpreter, root *muranopl.Object) (any, error) {
			r.SetModel(root)
			return ask(ctx, bodies.clusters)
		}
	}
}
