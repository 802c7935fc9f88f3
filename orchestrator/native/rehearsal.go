package native

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/preview"
	"github.com/burano/burano/orchestrator/task"
)

// Stage has the parts of the server that a rehearsal may use.
type Stage interface {
	EnvironmentID() string
	Attribute(ctx context.Context, object *muranopl.Object, name string) (any, bool, error)
	CodeAttribute(ctx context.Context, object *muranopl.Object, class, name string) (any, bool, error)
	Secret(ctx context.Context, name string) ([]byte, bool, error)
	Project(ctx context.Context) (*openstack.Project, error)
	Looks() bool
	// Former is the model that was deployed last, in the classes' form; nil for none.
	Former() map[string]any
}

// Rehearsal gives bodies that change nothing, and a function that computes with them the effect of a deployment of a model: an error with
// openstack.ServerChanges has the servers that it would rebuild, resize or replace. Each server that is present, or is certain to come, and each
// stack of a Heat template describes its resources, as in the deployment. Other faults are left to the deployment.
func Rehearsal(stage Stage, config Config) (muranopl.Natives, engine.Rehearsed) {
	config.Logger = slog.New(slog.DiscardHandler) // code that is rehearsed writes no log
	r := &rehearsal{Stage: stage, attributes: map[string]any{}, secrets: map[string][]byte{}}
	natives, own := assemble(r, config, true)
	return natives, func(ctx context.Context, interpreter *muranopl.Interpreter, root *muranopl.Object) (preview.Foreseen, error) {
		r.model = root
		var mutex sync.Mutex
		var foreseen preview.Foreseen
		err := own.each(ctx, root, func(s *ownStack) error {
			told, err := s.rehearse(ctx, interpreter, stage.Looks())
			mutex.Lock()
			defer mutex.Unlock()
			foreseen.Kept, foreseen.Means, foreseen.Refused = append(foreseen.Kept, told.Kept...), append(foreseen.Means, told.Means...), append(foreseen.Refused, told.Refused...)
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
		nodes := own.first.nodes
		refused, _ := nodes.refused(ctx) // what is not found out now is the deployment's to tell
		foreseen.Refused = append(foreseen.Refused, refused...)
		nodes.foreseeReplacements(ctx, &foreseen)
		if stage.Looks() {
			foreseen.Means = append(foreseen.Means, own.first.refused.made()...)
		}
		nodes.previewClusters(ctx, interpreter, stage, &foreseen)
		return foreseen, own.first.refused.err()
	}
}

// PlanUpgrade computes the effect of an upgrade of a cluster to an image, named by id or name (UpgradePlan).
func PlanUpgrade(config Config, clusterID, image string) engine.Question {
	return func(stage *engine.Stage) (muranopl.Natives, func(context.Context, *muranopl.Interpreter, *muranopl.Object) (any, error)) {
		config := config
		config.Logger = slog.New(slog.DiscardHandler)
		r := &rehearsal{Stage: stage, attributes: map[string]any{}, secrets: map[string][]byte{}}
		natives, own := assemble(r, config, true)
		return natives, func(ctx context.Context, _ *muranopl.Interpreter, root *muranopl.Object) (any, error) {
			r.model = root
			known, _ := own.first.nodes.(*clusters)
			object := known.objects.Find(clusterID)
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
			return upgradePlansOf(known).planUpgrade(ctx, object, found)
		}
	}
}

// propertyHeatStack is a property of the classes of Heat templates, and of no others (catalog/hot_class.go).
const propertyHeatStack = "generatedHeatStackName"

// rehearse lets the servers of the stack describe their resources, and compares these with their present resources and with the cloud.
func (s *ownStack) rehearse(ctx context.Context, interpreter *muranopl.Interpreter, looks bool) (foreseen preview.Foreseen, err error) {
	made, err := s.all.noted(ctx, s.runtime.Model(), s.region)
	if err != nil || !made && (!looks || s.region != "") {
		return foreseen, err
	}
	template, err := s.stacks.template(ctx, s.stack())
	if err != nil {
		return foreseen, err
	}
	foreseen.Kept = openstack.Keeping(template)
	before, _ := template["resources"].(map[string]any)
	nodes, idle, err := s.nodes.prepare(ctx, interpreter)
	if err != nil {
		if fault.KindOf(err) == fault.Invalid {
			foreseen.Refused = append(foreseen.Refused, preview.Note{ObjectID: s.runtime.Model().ID(), Text: err.Error()})
		}
		return foreseen, nil
	}
	if template, err = s.stacks.template(ctx, s.stack()); err != nil {
		return foreseen, err
	}
	resources, _ := template["resources"].(map[string]any)
	var doubtful []openstack.NewServer
	for _, instance := range s.objects.All(task.ClassInstance) {
		isNode := slices.Contains(idle, instance) || slices.ContainsFunc(nodes, func(node nodeServer) bool { return node.instance == instance })
		there := resources[openstack.ServerResource(instance.ID())] != nil
		comes := looks && s.region == "" && s.all.regions.Of(instance) == ""
		switch {
		case isNode || !there && !comes:
		case there || isCertain(instance):
			_, err := interpreter.Invoke(ctx, instance, task.MethodBeginDeploy, nil)
			if thrown := new(muranopl.Exception); errors.As(err, &thrown) && thrown.Native == nil && isCertain(instance) {
				foreseen.Refused = append(foreseen.Refused, preview.Note{ObjectID: instance.ID(), Text: thrown.Message})
			}
		default:
			doubtful = append(doubtful, newServer(instance))
		}
	}
	if err := s.forget(ctx, foreseen.Kept, before, nodes); err != nil {
		return foreseen, err
	}
	project, err := s.project(ctx)
	if err != nil {
		return foreseen, err
	}
	content, list, err := s.keptContent(ctx, project, nodes)
	wanted, _ := content.Template["resources"].(map[string]any)
	for i := range foreseen.Kept {
		foreseen.Kept[i].Wanted = wanted[foreseen.Kept[i].Resource] != nil
	}
	if err := s.refused.note(err); err != nil {
		if !made {
			err = nil
		}
		return foreseen, err
	}
	s.foreseeRoom(ctx, project, content, doubtful, &foreseen)
	if looks && made {
		list = slices.DeleteFunc(list, func(server nodeServer) bool { return before[openstack.ServerResource(server.id())] == nil })
		s.drifted(ctx, project, list, &foreseen)
	}
	return foreseen, nil
}

// foreseeRoom adds everything that the cloud lacks for the new resources of the stack. The code of applications makes the doubtful servers, or leaves them
// out: they get notes.
func (s *ownStack) foreseeRoom(ctx context.Context, project *openstack.Project, content openstack.Content, doubtful []openstack.NewServer, foreseen *preview.Foreseen) {
	unknown := func(err error) {
		foreseen.Notes = append(foreseen.Notes, fmt.Sprintf("whether the cloud has room for new servers and volumes is not known: %s; the deployment looks again before it makes them", err))
	}
	coming, err := project.CheckRoom(ctx, s.stack().name, content)
	s.refused.lack(coming, nil)
	if fault.KindOf(err) == fault.Invalid {
		foreseen.Refused = append(foreseen.Refused, preview.Note{ObjectID: s.runtime.Model().ID(), Text: err.Error()})
	} else if err != nil {
		unknown(err)
		return
	}
	if len(doubtful) == 0 {
		return
	}
	err = project.CheckServers(ctx, true, doubtful...)
	if fault.KindOf(err) == fault.Invalid {
		foreseen.Notes = append(foreseen.Notes, fmt.Sprintf("the code of their applications makes these servers, or leaves them out. With this model it cannot make them: %s", err))
	} else if err != nil {
		unknown(err)
	}
}

// isCertain is true if a deployment surely makes the server of an instance: its owners are classes that come with Burano. Classes of others can
// decide otherwise.
func isCertain(instance *muranopl.Object) bool {
	for owner := instance.Owner(); owner != nil; owner = owner.Owner() {
		if !owner.Class().Package.Embedded() {
			return false
		}
	}
	return true
}

// forget takes servers out of the template whose objects go while nodes of the same names come: their ids differ.
func (s *ownStack) forget(ctx context.Context, kept []openstack.Kept, before map[string]any, nodes []nodeServer) error {
	for _, one := range kept {
		ofModel := slices.ContainsFunc(s.objects.All(task.ClassInstance), func(instance *muranopl.Object) bool { return openstack.IsOf(one.Resource, instance.ID()) })
		described, _ := before[one.Resource].(map[string]any)
		properties, _ := described["properties"].(map[string]any)
		if !ofModel && slices.ContainsFunc(nodes, func(node nodeServer) bool { return node.name() == properties["name"] }) {
			if _, err := s.stacks.replace(ctx, s.stack(), one.Resource, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// drifted adds the changes of servers since the last deployment. If Nova does not answer now, the deployment reports it.
func (s *ownStack) drifted(ctx context.Context, project *openstack.Project, list []nodeServer, foreseen *preview.Foreseen) {
	stack, _, err := project.FindStack(ctx, s.stack().name)
	if err != nil {
		return
	}
	if stack == nil {
		foreseen.Means = append(foreseen.Means, fmt.Sprintf("stack %s is gone from Heat: it is made anew, with all of its servers", s.stack().name))
		return
	}
	states, err := s.servers.states(ctx, project, *stack, list)
	if err != nil {
		return
	}
	for i, server := range list {
		addresses, _ := stack.Addresses(server.id())
		switch states[i].Status {
		case openstack.Gone:
			foreseen.Means = append(foreseen.Means, goneServer(server.name(), addresses.ServerID))
		case openstack.Shut:
			if settings, err := s.servers.settings.of(ctx, server.instance); err == nil && !settings.Locked {
				foreseen.Means = append(foreseen.Means, offServer(server.name()))
			}
		case statusError:
			// Heat replaces a server that never came up. Of a node the deployment itself refuses to go on.
			foreseen.Notes = append(foreseen.Notes, inError(server.name(), states[i]).Error())
		}
	}
}

// refusals are the changes of servers that a rehearsal found, and everything that the cloud lacks for the stack of a Heat template.
type refusals struct {
	mutex   sync.Mutex
	changes []*openstack.ServerChange
	lacking []string
	coming  []string // names of new servers
}

// lack notes a refusal of the stack of a Heat template, or its new servers; another error is left to the deployment.
func (r *refusals) lack(coming []string, err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.coming = append(r.coming, coming...)
	if fault.KindOf(err) == fault.Invalid {
		r.lacking = append(r.lacking, err.Error())
	}
}

// taken returns the noted refusals of stacks of Heat templates, and forgets them.
func (r *refusals) taken() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	list := r.lacking
	r.lacking = nil
	return list
}

// made names the new servers in a sentence; none without new ones.
func (r *refusals) made() (means []string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if len(r.coming) > 0 {
		slices.Sort(r.coming)
		means = append(means, "servers are made: "+strings.Join(r.coming, ", "))
	}
	return means
}

// note keeps the changes of servers in err, and returns any other error.
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

// rehearsal is a task that changes nothing: it reads from its stage, and keeps all writes to itself.
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
