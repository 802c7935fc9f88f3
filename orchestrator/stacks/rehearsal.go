package stacks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/preview"
	"github.com/burano/burano/orchestrator/task"
)

// propertyHeatStack is a property of the classes of Heat templates, and of no others (catalog/hot_class.go).
const propertyHeatStack = "generatedHeatStackName"

// Rehearse rehearses all stacks of the environment, and then each Heat template.
func (o *OwnStacks) Rehearse(ctx context.Context, interpreter *muranopl.Interpreter, root *muranopl.Object, looks bool) (foreseen preview.Foreseen, err error) {
	var mutex sync.Mutex
	err = o.each(ctx, root, func(s *OwnStack) error {
		one, err := s.rehearse(ctx, interpreter, looks)
		mutex.Lock()
		defer mutex.Unlock()
		foreseen.Kept, foreseen.Effects = append(foreseen.Kept, one.Kept...), append(foreseen.Effects, one.Effects...)
		foreseen.Refused, foreseen.Notes = append(foreseen.Refused, one.Refused...), append(foreseen.Notes, one.Notes...)
		return err
	})
	if err != nil {
		return foreseen, err
	}
	for _, application := range root.Objects(task.PropertyApplications) {
		if len(application.Class().Property(propertyHeatStack)) == 0 {
			continue
		}
		_, _ = interpreter.Invoke(ctx, application, task.MethodDeploy, nil) // refusals are noted
		for _, text := range o.First.refused.taken() {
			foreseen.Refused = append(foreseen.Refused, preview.Note{ObjectID: application.ID(), Text: text})
		}
	}
	return foreseen, nil
}

// NewServers names the servers that the rehearsed deployment makes, in a sentence; none without new ones.
func (o *OwnStacks) NewServers() []string { return o.First.refused.made() }

// Refused is an error with the servers that the rehearsed deployment would rebuild, resize or replace (openstack.ServerChanges).
func (o *OwnStacks) Refused() error { return o.First.refused.err() }

// rehearse lets the servers of the stack describe their resources, and compares these with their present resources and with the cloud.
func (s *OwnStack) rehearse(ctx context.Context, interpreter *muranopl.Interpreter, looks bool) (foreseen preview.Foreseen, err error) {
	made, err := s.all.noted(ctx, s.runtime.Model(), s.region)
	if err != nil || !made && (!looks || s.region != "") {
		return foreseen, err
	}
	template, err := s.stacks.Template(ctx, s.stack())
	if err != nil {
		return foreseen, err
	}
	foreseen.Kept = openstack.Keeping(template)
	before, _ := template["resources"].(map[string]any)
	nodes, idle, err := s.Nodes.Prepare(ctx, interpreter)
	if err != nil {
		if fault.KindOf(err) == fault.Invalid {
			foreseen.Refused = append(foreseen.Refused, preview.Note{ObjectID: s.runtime.Model().ID(), Text: err.Error()})
		}
		return foreseen, nil
	}
	if template, err = s.stacks.Template(ctx, s.stack()); err != nil {
		return foreseen, err
	}
	resources, _ := template["resources"].(map[string]any)
	var doubtful []openstack.NewServer
	for _, instance := range s.objects.All(task.ClassInstance) {
		isNode := slices.Contains(idle, instance) || slices.ContainsFunc(nodes, func(node Server) bool { return node.Instance == instance })
		there := resources[openstack.ServerResource(instance.ID())] != nil
		comes := looks && s.region == "" && s.all.Regions.Of(instance) == ""
		switch {
		case isNode || !there && !comes:
		case there || isCertain(instance):
			_, err := interpreter.Invoke(ctx, instance, task.MethodBeginDeploy, nil)
			if thrown := new(muranopl.Exception); errors.As(err, &thrown) && thrown.Native == nil && isCertain(instance) {
				foreseen.Refused = append(foreseen.Refused, preview.Note{ObjectID: instance.ID(), Text: thrown.Message})
			}
		default:
			doubtful = append(doubtful, NewServer(instance))
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
		list = slices.DeleteFunc(list, func(server Server) bool { return before[openstack.ServerResource(server.ID())] == nil })
		s.drifted(ctx, project, list, &foreseen)
	}
	return foreseen, nil
}

// foreseeRoom adds everything that the cloud lacks for the new resources of the stack. The code of applications makes the doubtful servers, or leaves them
// out: they get notes.
func (s *OwnStack) foreseeRoom(ctx context.Context, project *openstack.Project, content openstack.Content, doubtful []openstack.NewServer, foreseen *preview.Foreseen) {
	unknown := func(err error) {
		foreseen.Notes = append(foreseen.Notes, fmt.Sprintf("whether the cloud has room for new servers and volumes is not known: %s; the deployment looks again before it makes them", err))
	}
	coming, err := project.CheckRoom(ctx, s.stack().Name, content)
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

// NewServer lists the parts of an instance's server.
func NewServer(instance *muranopl.Object) openstack.NewServer {
	return openstack.NewServer{Name: "server " + instance.Text("name"), Flavor: instance.Text("flavor"), Image: instance.Text("image"), Key: instance.Text("keyname"), Zone: instance.Text("availabilityZone")}
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
func (s *OwnStack) forget(ctx context.Context, kept []openstack.Kept, before map[string]any, nodes []Server) error {
	for _, one := range kept {
		ofModel := slices.ContainsFunc(s.objects.All(task.ClassInstance), func(instance *muranopl.Object) bool { return openstack.IsOf(one.Resource, instance.ID()) })
		described, _ := before[one.Resource].(map[string]any)
		properties, _ := described["properties"].(map[string]any)
		if !ofModel && slices.ContainsFunc(nodes, func(node Server) bool { return node.Name() == properties["name"] }) {
			if _, err := s.stacks.Replace(ctx, s.stack(), one.Resource, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// drifted adds the changes of servers since the last deployment. If Nova does not answer now, the deployment reports it.
func (s *OwnStack) drifted(ctx context.Context, project *openstack.Project, list []Server, foreseen *preview.Foreseen) {
	stack, _, err := project.FindStack(ctx, s.stack().Name)
	if err != nil {
		return
	}
	if stack == nil {
		foreseen.Effects = append(foreseen.Effects, fmt.Sprintf("stack %s is gone from Heat: it is made anew, with all of its servers", s.stack().Name))
		return
	}
	states, err := serverStates(ctx, project, *stack, list)
	if err != nil {
		return
	}
	for i, server := range list {
		addresses, _ := stack.Addresses(server.ID())
		switch states[i].Status {
		case openstack.Gone:
			foreseen.Effects = append(foreseen.Effects, goneServer(server.Name(), addresses.ServerID))
		case openstack.Shut:
			if locked, err := s.Nodes.Locked(ctx, server.Instance); err == nil && !locked {
				foreseen.Effects = append(foreseen.Effects, offServer(server.Name()))
			}
		case statusError:
			// Heat replaces a server that never came up. Of a node the deployment itself refuses to go on.
			foreseen.Notes = append(foreseen.Notes, inError(server.Name(), states[i]).Error())
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
