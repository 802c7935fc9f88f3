package native

import (
	"context"
	"log/slog"
	"sync"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/preview"
	"github.com/burano/burano/orchestrator/task"
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
		var mutex sync.Mutex
		var foreseen preview.Foreseen
		err := own.each(ctx, root, func(s *ownStack) error {
			told, err := s.rehearse(ctx, interpreter, stage.Looks())
			mutex.Lock()
			defer mutex.Unlock()
			foreseen.Kept, foreseen.Effects, foreseen.Refused = append(foreseen.Kept, told.Kept...), append(foreseen.Effects, told.Effects...), append(foreseen.Refused, told.Refused...)
			foreseen.Notes = append(foreseen.Notes, told.Notes...)
			return err
		})
		if err != nil {
			return preview.Foreseen{}, err
		}
		for _, application := range root.Objects(task.PropertyApplications) {
			if len(application.Class().Property(propertyHeatStack)) == 0 {
				continue
			}
			_, _ = interpreter.Invoke(ctx, application, task.MethodDeploy, nil) // what is refused is noted
			for _, text := range own.first.refused.taken() {
				foreseen.Refused = append(foreseen.Refused, preview.Note{ObjectID: application.ID(), Text: text})
			}
		}
		refused, _ := clusters.refused(ctx) // the deployment repeats checks that got no answer
		foreseen.Refused = append(foreseen.Refused, refused...)
		clusters.foreseeReplacements(ctx, &foreseen)
		if stage.Looks() {
			foreseen.Effects = append(foreseen.Effects, own.first.refused.made()...)
		}
		clusters.previews().All(ctx, interpreter, stage, &foreseen)
		return foreseen, own.first.refused.err()
	}
}

// PlanUpgrade computes the effect of an upgrade of a cluster to an image, named by id or name (UpgradePlan).
func PlanUpgrade(config Config, clusterID, image string) engine.Question {
	return func(stage *engine.Stage) (muranopl.Natives, func(context.Context, *muranopl.Interpreter, *muranopl.Object) (any, error)) {
		config := config
		config.Logger = slog.New(slog.DiscardHandler)
		r := task.NewRehearsal(stage)
		bodies := assemble(r, config, true)
		return bodies.natives, func(ctx context.Context, _ *muranopl.Interpreter, root *muranopl.Object) (any, error) {
			r.SetModel(root)
			object := bodies.clusters.objects.Find(clusterID)
			if object == nil || !object.Class().IsEmbedded(task.ClassCluster) {
				return nil, fault.New(fault.NotFound, "Object %s is no Kubernetes cluster", clusterID)
			}
			project, err := r.Project(ctx)
			if err != nil {
				return nil, err
			}
			found, err := project.Image(ctx, image)
			if err != nil {
				return nil, err
			}
			return upgradePlansOf(bodies.clusters).planUpgrade(ctx, object, found)
		}
	}
}

// propertyHeatStack is a property of the classes of Heat templates, and of no others (catalog/hot_class.go).
const propertyHeatStack = "generatedHeatStackName"
