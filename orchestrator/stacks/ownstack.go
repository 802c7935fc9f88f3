package stacks

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/task"
)

const (
	attributeStack = engine.AttributeStack
	// attributeMaker is the maker of a stack; a stack without it is from a former version and Heat's.
	attributeMaker = "stackMaker"
)

// OwnStack is the Heat stack of the environment in a region, during one task. It has the resources of classes, and the servers of clusters.
type OwnStack struct {
	runtime interface {
		Model() *muranopl.Object
		Deploys() bool
		Attribute(ctx context.Context, object *muranopl.Object, name string) (any, bool, error)
		SetAttribute(ctx context.Context, object *muranopl.Object, name string, value any) error
		Project(ctx context.Context) (*openstack.Project, error)
		Step(ctx context.Context, object *muranopl.Object, name string, run func(context.Context) error) error
		AtEnd(do func(context.Context) error)
	}
	objects  task.Objects
	reports  task.Reports
	stacks   *Templates
	Nodes    Nodes
	patience time.Duration
	// rehearsal is true if nothing may change: a push only computes the resources that Heat would destroy, which is then refused.
	rehearsal bool
	refused   *refusals
	all       *OwnStacks
	region    string // "" for the environment's own

	// deploying is set once the environment's deploy has begun, after the destruction of objects that left the model.
	deploying *atomic.Bool
	atEnd     sync.Once

	mutex   sync.Mutex
	applied *openstack.Content
	state   openstack.Stack
	zones   []string // of the cloud; nil before it was asked
	// found are the states of servers in Nova that were asked for, by their ids there.
	found map[string]openstack.ServerState
}

// Nodes are the servers of clusters.
type Nodes interface {
	// Prepare puts the servers of active nodes into the template, and removes the others. It returns the former, and the instances of the latter.
	Prepare(ctx context.Context, interpreter *muranopl.Interpreter) (active []Server, idle []*muranopl.Object, err error)
	// Postpone leaves servers in the template as they are that are replaced one node after another. It returns the refused changes: all others, and those by
	// which nodes would get versions of Kubernetes that do not work together.
	Postpone(ctx context.Context, changes []*openstack.ServerChange, active []Server) (refused []*openstack.ServerChange, err error)
	// Shrink takes nodes whose servers go out of their clusters.
	Shrink(ctx context.Context) error
	// Locked reports whether users have taken the node of an instance out of service.
	Locked(ctx context.Context, instance *muranopl.Object) (bool, error)
}

// project is the environment's project in the stack's region.
func (s *OwnStack) project(ctx context.Context) (*openstack.Project, error) {
	return s.all.Regions.Project(ctx, s.region)
}

// stack is the task's view of the environment's stack.
func (s *OwnStack) stack() *Stack { return s.stacks.OwnIn(s.region) }

// where names the region to people, when it is not the environment's own.
func (s *OwnStack) where() string { return known.InRegion("", s.region) }

// step names a step of the stack.
func (s *OwnStack) step(name string) string { return known.InRegion(name, s.region) }

// busy is true if a push comes later: a deleted environment deletes its stack whole, and resources that are destroyed before a deployment go with the
// updates of that deployment.
func (s *OwnStack) busy() bool {
	return s.runtime.Model() == nil || s.runtime.Deploys() && !s.deploying.Load()
}

// Push makes the stack match the model, with all servers of the change in one update.
func (s *OwnStack) Push(ctx context.Context, interpreter *muranopl.Interpreter) error {
	project, err := s.project(ctx)
	if err != nil {
		return err
	}
	active, idle, err := s.Nodes.Prepare(ctx, interpreter)
	if err != nil {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	content, list, err := s.keptContent(ctx, project, active)
	if s.rehearsal {
		return s.refused.note(err)
	}
	if err != nil {
		return err
	}
	var coming []string // servers that are new
	if s.applied == nil || !reflect.DeepEqual(*s.applied, content) {
		if coming, err = project.CheckRoom(ctx, s.stack().Name, content); err != nil {
			return err
		}
	}
	// Servers that are not in the template any more go with the update.
	if err := s.Nodes.Shrink(ctx); err != nil {
		return err
	}
	if s.applied != nil && reflect.DeepEqual(*s.applied, content) {
		return nil
	}
	own, root := s.stack(), s.runtime.Model()
	err = s.runtime.Step(ctx, root, s.step("servers"), func(ctx context.Context) error {
		if len(coming) > 0 {
			s.reports.Inform(ctx, root, "Making servers: %d new in stack %s, which then has %d%s", len(coming), own.Name, len(list), s.where())
		}
		limited, cancel := Limit(ctx, s.patience)
		defer cancel()
		maker, err := s.maker(ctx, root, project)
		if err != nil {
			return err
		}
		// Noted first: a deletion looks for stacks that may be there.
		if err := s.runtime.SetAttribute(ctx, root, known.InRegion(attributeMaker, s.region), string(maker)); err != nil {
			return err
		}
		if err := s.all.note(ctx, root, s.region, true); err != nil {
			return err
		}
		if s.state, err = project.ApplyStack(limited, own.Name, content); err != nil {
			return err
		}
		return s.mend(limited, project, content, list)
	})
	if err != nil {
		return err
	}
	own.SetOutputs(s.state.Outputs)
	for _, instance := range idle {
		if err := forgetAddresses(instance); err != nil {
			return err
		}
	}
	s.applied = &content
	return nil
}

// maker is who makes the environment's stack.
func (s *OwnStack) maker(ctx context.Context, environment *muranopl.Object, project *openstack.Project) (openstack.Orchestration, error) {
	noted, _, err := s.runtime.Attribute(ctx, environment, known.InRegion(attributeMaker, s.region))
	if err == nil && noted == nil {
		var made any
		if made, _, err = s.runtime.Attribute(ctx, environment, attributeStack); made != nil && s.region == "" {
			noted = string(openstack.Heat)
		}
	}
	if err != nil {
		return "", err
	}
	former, _ := noted.(string)
	return project.StackMaker(ctx, s.stack().Name, openstack.Orchestration(former))
}

// keptContent is content with servers of nodes as they are that are to be replaced. Its error has ServerChanges when the stack cannot be
// made so without destroying a server that is there.
func (s *OwnStack) keptContent(ctx context.Context, project *openstack.Project, nodes []Server) (openstack.Content, []Server, error) {
	content, list, err := s.content(ctx, nodes)
	if err != nil || len(nodes) == 0 && !s.rehearsal || s.applied != nil && reflect.DeepEqual(*s.applied, content) {
		return content, list, err
	}
	err = project.CheckStack(ctx, s.stack().Name, content)
	changes := openstack.ServerChanges(err)
	if len(changes) == 0 {
		return content, list, err
	}
	refused, err := s.Nodes.Postpone(ctx, changes, nodes)
	if err != nil {
		return content, list, err
	}
	if len(refused) > 0 {
		return content, list, openstack.Refused(refused)
	}
	return s.content(ctx, nodes)
}

// content is the desired content of the stack, which is kept before the stack is asked for, and all its servers but the former servers of nodes that
// are replaced.
func (s *OwnStack) content(ctx context.Context, nodes []Server) (openstack.Content, []Server, error) {
	own := s.stack()
	own.mutex.Lock()
	defer own.mutex.Unlock()
	if err := s.stacks.learn(ctx, own); err != nil {
		return openstack.Content{}, nil, err
	}
	if err := s.stacks.keep(ctx, own); err != nil {
		return openstack.Content{}, nil, err
	}
	content := own.content
	var err error
	if content.Template, err = s.withoutAnyZone(ctx, withoutIdleGroups(versioned(content.Template))); err != nil {
		return openstack.Content{}, nil, err
	}
	current := map[*muranopl.Object]Server{}
	for _, node := range nodes {
		content.Nodes = append(content.Nodes, openstack.ServerResource(node.ID()))
		if node.Number >= current[node.Instance].Number {
			current[node.Instance] = node
		}
	}
	resources, _ := content.Template["resources"].(map[string]any)
	for _, node := range nodes {
		// Code has taken it out since it was prepared: with such a push its server would be deleted.
		if resources[openstack.ServerResource(node.ID())] == nil {
			return content, nil, fmt.Errorf("the template of stack %s was replaced by an application while server %s was prepared: deploy again", own.Name, node.Name())
		}
	}
	var list []Server
	for _, instance := range s.objects.All(task.ClassInstance) {
		server, node := current[instance]
		if !node {
			server = Server{Instance: instance, Number: 1}
		}
		if resources[openstack.ServerResource(server.ID())] != nil {
			list = append(list, server)
		}
	}
	return content, list, nil
}

// mend starts servers that are off, and replaces lost ones.
func (s *OwnStack) mend(ctx context.Context, project *openstack.Project, content openstack.Content, list []Server) error {
	found, gone, err := s.mendServers(ctx, project, s.state, list)
	s.found = found
	if err != nil || len(gone) == 0 {
		return err
	}
	state, err := project.ReplaceServers(ctx, s.stack().Name, content, gone)
	if err != nil {
		return err
	}
	s.state = state
	for _, server := range list {
		if addresses, ok := s.state.Addresses(server.ID()); ok && gone[server.ID()] != "" {
			if s.found[addresses.ServerID], err = project.Server(ctx, addresses.ServerID); err != nil {
				return err
			}
		}
	}
	return nil
}

// Addresses are the addresses of a server in the stack after a push, with its state in Nova then.
func (s *OwnStack) Addresses(server Server) (openstack.Addresses, openstack.ServerState, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	addresses, ok := s.state.Addresses(server.ID())
	if !ok {
		return addresses, openstack.ServerState{}, fmt.Errorf("the stack tells no address of server %s", server.Name())
	}
	addresses.Floating = s.state.Floating(server.Instance.ID())
	return addresses, s.found[addresses.ServerID], nil
}

// Amend changes resources of the environment's template, and keeps it if change reports a change.
func (s *OwnStack) Amend(ctx context.Context, interpreter *muranopl.Interpreter, change func(resources map[string]any) (changed bool)) error {
	own, changed := s.stacks.Own(), false
	err := s.stacks.amend(ctx, own, func(resources map[string]any) { changed = change(resources) })
	if err != nil || !changed {
		return err
	}
	s.tidyAtEnd(interpreter)
	own.mutex.Lock()
	defer own.mutex.Unlock()
	return s.stacks.keep(ctx, own)
}

// tidyAtEnd has the stack tidied up once when the task's action is done.
func (s *OwnStack) tidyAtEnd(interpreter *muranopl.Interpreter) {
	if root := s.runtime.Model(); root != nil {
		s.atEnd.Do(func() {
			s.runtime.AtEnd(func(ctx context.Context) error { return s.tidy(ctx, interpreter, root) })
		})
	}
}

// tidy removes unused resources from the stack; a stack that has only the environment's network and the security groups of servers is deleted. Both
// are made again with the next server.
func (s *OwnStack) tidy(ctx context.Context, interpreter *muranopl.Interpreter, environment *muranopl.Object) error {
	if s.region == "" && len(s.objects.Clusters()) > 0 {
		return s.Push(ctx, interpreter)
	}
	own := s.stack()
	template, err := s.stacks.KeptTemplate(ctx, own)
	if err != nil {
		return err
	}
	resources, _ := template["resources"].(map[string]any)
	for name := range resources {
		if !slices.Contains(networkResources, name) && !isGroup(name) {
			return s.Push(ctx, interpreter)
		}
	}
	if err := s.remove(ctx, environment); err != nil || len(resources) == 0 {
		return err
	}
	own.SetOutputs(map[string]any{})
	if network := EnvironmentNetwork(environment, s.region); network != nil && network.Class().IsEmbedded(task.ClassNeutronNetwork) {
		_, err = interpreter.Invoke(ctx, network, task.MethodEndDeploy, nil) // it is not there any more
	}
	return err
}

// remove deletes the stack, with every server, port and address of the environment, where one was ever made.
func (s *OwnStack) remove(ctx context.Context, environment *muranopl.Object) error {
	if made, err := s.all.noted(ctx, environment, s.region); err != nil || !made {
		return err
	}
	return s.runtime.Step(ctx, environment, s.step("delete stack"), func(ctx context.Context) error {
		project, err := s.project(ctx)
		if err != nil {
			return err
		}
		if _, err := s.maker(ctx, environment, project); err != nil {
			return err
		}
		if err := project.DeleteStack(ctx, s.stack().Name); err != nil {
			return err
		}
		if err := s.runtime.SetAttribute(ctx, environment, known.InRegion(attributeExternal, s.region), nil); err != nil { // with nothing there another may be chosen
			return err
		}
		return s.all.note(ctx, environment, s.region, false)
	})
}

// forgetAddresses removes the addresses of a lost server from its object.
func forgetAddresses(instance *muranopl.Object) error {
	if instance.Text("openstackId") == "" {
		return nil
	}
	for name, value := range map[string]any{"openstackId": nil, "ipAddresses": []any{}, "floatingIpAddress": nil, "joinedNetworks": []any{}} {
		if err := instance.Set(name, value); err != nil {
			return err
		}
	}
	return nil
}

// EnvironmentNetwork returns the network that an environment has in a region, or nil.
func EnvironmentNetwork(environment *muranopl.Object, name string) *muranopl.Object {
	region, _ := environment.Map("regions")[cmp.Or(name, environment.Text(propertyRegion))].(*muranopl.Object)
	if region == nil {
		return nil
	}
	network, _ := region.Map("defaultNetworks")["environment"].(*muranopl.Object)
	return network
}

// Limit limits how long a stack may take; outages of the cloud, which have a patience of their own, do not count.
func Limit(ctx context.Context, patience time.Duration) (context.Context, context.CancelFunc) {
	return openstack.Limit(ctx, patience, fmt.Errorf("the servers were not ready within %s (burano serve --server-patience)", patience))
}
