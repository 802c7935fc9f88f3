package native

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/openstack"
)

// Stage is what a rehearsal may look at.
type Stage interface {
	EnvironmentID() string
	Attribute(ctx context.Context, object *muranopl.Object, name string) (any, bool, error)
	CodeAttribute(ctx context.Context, object *muranopl.Object, class, name string) (any, bool, error)
	Secret(ctx context.Context, name string) ([]byte, bool, error)
	Project(ctx context.Context) (*openstack.Project, error)
	Looks() bool
}

// Rehearsal gives bodies that change nothing, and a function that finds out with them which servers the deployment of a model would
// rebuild, resize or replace: an error with openstack.ServerChanges; and which servers and volumes of the environment's stack it still wants,
// but for what it destroys with objects. It has each server that is there, and each stack of a Heat template, say what it wants, as the
// deployment does. What else goes wrong with that is the deployment's to tell.
func Rehearsal(stage Stage, config Config) (muranopl.Natives, engine.Rehearsed) {
	config.Logger = slog.New(slog.DiscardHandler) // code that is rehearsed writes no log
	r := &rehearsal{Stage: stage, attributes: map[string]any{}, secrets: map[string][]byte{}}
	natives, own := assemble(r, config, true)
	return natives, func(ctx context.Context, interpreter *muranopl.Interpreter, root *muranopl.Object) (engine.Foreseen, error) {
		r.model = root
		var mutex sync.Mutex
		var kept []openstack.Kept
		err := own.each(ctx, root, func(s *ownStack) error {
			there, err := s.rehearse(ctx, interpreter)
			mutex.Lock()
			defer mutex.Unlock()
			kept = append(kept, there...)
			return err
		})
		if err != nil {
			return engine.Foreseen{}, err
		}
		for _, application := range root.Objects(propertyApplications) {
			if len(application.Class().Property(propertyHeatStack)) == 0 {
				continue
			}
			_, _ = interpreter.Invoke(ctx, application, methodDeploy, nil) // what is refused is noted
		}
		refused, _ := own.first.nodes.refused(ctx) // what is not found out now is the deployment's to tell
		foreseen := engine.Foreseen{Kept: kept, Means: own.first.nodes.means(ctx), Refused: refused}
		if stage.Looks() {
			own.first.nodes.previewReleases(ctx, &foreseen)
			own.first.nodes.previewClaims(ctx, interpreter, &foreseen)
		}
		return foreseen, own.first.refused.err()
	}
}

// PlanUpgrade is the question what the upgrade of a cluster to an image, named by id or name, would do (UpgradePlan).
func PlanUpgrade(config Config, clusterID, image string) engine.Question {
	return func(stage *engine.Stage) (muranopl.Natives, func(context.Context, *muranopl.Interpreter, *muranopl.Object) (any, error)) {
		config := config
		config.Logger = slog.New(slog.DiscardHandler)
		r := &rehearsal{Stage: stage, attributes: map[string]any{}, secrets: map[string][]byte{}}
		natives, own := assemble(r, config, true)
		return natives, func(ctx context.Context, _ *muranopl.Interpreter, root *muranopl.Object) (any, error) {
			r.model = root
			known, _ := own.first.nodes.(*clusters)
			object := known.objects.find(clusterID)
			if object == nil || !object.Class().IsEmbedded(classCluster) {
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
			return known.planUpgrade(ctx, object, found)
		}
	}
}

// propertyHeatStack is what the classes of Heat templates have, and no others (catalog/hot_class.go).
const propertyHeatStack = "generatedHeatStackName"

// rehearse has the servers that are there say what they are to be made of, and compares that with what they were made of.
func (s *ownStack) rehearse(ctx context.Context, interpreter *muranopl.Interpreter) ([]openstack.Kept, error) {
	if made, err := s.all.noted(ctx, s.runtime.Model(), s.region); err != nil || !made {
		return nil, err
	}
	template, err := s.stacks.template(ctx, s.stack())
	if err != nil {
		return nil, err
	}
	kept := openstack.Keeping(template)
	before, _ := template["resources"].(map[string]any)
	nodes, _, err := s.nodes.prepare(ctx, interpreter)
	if err != nil {
		return kept, nil
	}
	if template, err = s.stacks.template(ctx, s.stack()); err != nil {
		return nil, err
	}
	resources, _ := template["resources"].(map[string]any)
	for _, instance := range s.objects.all(classInstance) {
		isNode := slices.ContainsFunc(nodes, func(node nodeServer) bool { return node.instance == instance })
		if resources[openstack.ServerResource(instance.ID())] == nil || isNode {
			continue
		}
		_, _ = interpreter.Invoke(ctx, instance, methodBeginDeploy, nil)
	}
	for _, one := range kept {
		// Of an object that goes, and a node of the same name comes: their ids differ.
		ofModel := slices.ContainsFunc(s.objects.all(classInstance), func(instance *muranopl.Object) bool { return openstack.IsOf(one.Resource, instance.ID()) })
		described, _ := before[one.Resource].(map[string]any)
		properties, _ := described["properties"].(map[string]any)
		if !ofModel && slices.ContainsFunc(nodes, func(node nodeServer) bool { return node.name() == properties["name"] }) {
			if _, err := s.stacks.replace(ctx, s.stack(), one.Resource, nil); err != nil {
				return nil, err
			}
		}
	}
	project, err := s.project(ctx)
	if err != nil {
		return nil, err
	}
	content, _, err := s.keptContent(ctx, project, nodes)
	wanted, _ := content.Template["resources"].(map[string]any)
	for i := range kept {
		kept[i].Wanted = wanted[kept[i].Resource] != nil
	}
	return kept, s.refused.note(err)
}

// refusals are the changes of servers that a rehearsal found.
type refusals struct {
	mutex   sync.Mutex
	changes []*openstack.ServerChange
}

// note keeps what err says of servers, and returns an error that says something else.
func (r *refusals) note(err error) error {
	changes := openstack.ServerChanges(err)
	if len(changes) == 0 {
		return err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.changes = append(r.changes, changes...)
	return nil
}

func (r *refusals) err() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return openstack.Refused(r.changes)
}

// rehearsal is a task that is not one: it reads what its stage has, and keeps what is written to itself.
type rehearsal struct {
	Stage
	model      *muranopl.Object
	mutex      sync.Mutex
	attributes map[string]any
	secrets    map[string][]byte
}

func (r *rehearsal) TaskID() string          { return "" }
func (r *rehearsal) Model() *muranopl.Object { return r.model }
func (r *rehearsal) Deploys() bool           { return false } // so that nothing waits for the environment's deploy
func (r *rehearsal) Allowed(string) bool     { return false }
func (r *rehearsal) Fence() uint64           { return 0 }
func (r *rehearsal) Alive() error            { return nil }

func (r *rehearsal) Conceal(any) {} // nothing is written

func (r *rehearsal) Planned(*muranopl.Object, map[string][]string) {}

func (r *rehearsal) AtEnd(func(context.Context) error) {}

func (r *rehearsal) Ended(func()) {}

func (r *rehearsal) Report(context.Context, *muranopl.Object, engine.Level, string, string) error {
	return nil
}

func (r *rehearsal) Step(ctx context.Context, _ *muranopl.Object, _ string, run func(context.Context) error) error {
	return run(ctx)
}

func (r *rehearsal) TrackApplication(context.Context, *muranopl.Object, string, int64) error {
	return nil
}

func (r *rehearsal) TrackServer(context.Context, *muranopl.Object, string, int64) error { return nil }

func (r *rehearsal) Untrack(context.Context, *muranopl.Object) error { return nil }

func (r *rehearsal) Attribute(ctx context.Context, object *muranopl.Object, name string) (any, bool, error) {
	if value, written := r.written(object, "native", name); written {
		return value, value != nil, nil
	}
	return r.Stage.Attribute(ctx, object, name)
}

func (r *rehearsal) SetAttribute(_ context.Context, object *muranopl.Object, name string, value any) error {
	r.write(object, "native", name, value)
	return nil
}

func (r *rehearsal) CodeAttribute(ctx context.Context, object *muranopl.Object, class, name string) (any, bool, error) {
	if value, written := r.written(object, "code "+class, name); written {
		return value, value != nil, nil
	}
	return r.Stage.CodeAttribute(ctx, object, class, name)
}

func (r *rehearsal) SetCodeAttribute(_ context.Context, object *muranopl.Object, class, name string, value any) error {
	r.write(object, "code "+class, name, value)
	return nil
}

func (r *rehearsal) written(object *muranopl.Object, kind, name string) (any, bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	value, written := r.attributes[object.ID()+" "+kind+" "+name]
	return value, written
}

func (r *rehearsal) write(object *muranopl.Object, kind, name string, value any) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.attributes[object.ID()+" "+kind+" "+name] = value
}

func (r *rehearsal) Secret(ctx context.Context, name string) ([]byte, bool, error) {
	r.mutex.Lock()
	value, written := r.secrets[name]
	r.mutex.Unlock()
	if written {
		return value, true, nil
	}
	return r.Stage.Secret(ctx, name)
}

func (r *rehearsal) SetSecret(_ context.Context, name string, value []byte) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.secrets[name] = value
	return nil
}
