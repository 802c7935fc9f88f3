package native

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/panics"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/task"
)

// servers looks at servers as Nova sees them now, of which Heat knows nothing.
type servers struct {
	runtime interface {
		Project(ctx context.Context) (*openstack.Project, error)
	}
	reports  task.Reports
	settings nodeSettings
}

// mend starts servers that were stopped, and returns the lost servers by their ids in the stack, each with its reason: new servers replace them. A
// server in ERROR is left to people, because its disk may have the only copy of data. found are the states of servers in Nova, by their ids there.
func (s servers) mend(ctx context.Context, project *openstack.Project, stack openstack.Stack, list []nodeServer) (found map[string]openstack.ServerState, gone map[string]string, err error) {
	states, err := s.states(ctx, project, stack, list)
	if err != nil {
		return nil, nil, err
	}
	found, gone = map[string]openstack.ServerState{}, map[string]string{}
	var problems []error
	for i, server := range list {
		instance, name := server.instance, server.name()
		addresses, _ := stack.Addresses(server.id())
		found[addresses.ServerID] = states[i]
		switch states[i].Status {
		case openstack.Gone:
			s.reports.Inform(ctx, instance, "S%s", goneServer(name, addresses.ServerID)[1:])
			gone[server.id()] = "Nova does not know the server any more"
		case openstack.Shut:
			settings, err := s.settings.of(ctx, instance)
			if err == nil && !settings.Locked { // whoever has locked it starts it
				err = s.start(ctx, project, instance, name, addresses.ServerID)
			}
			if err != nil {
				problems = append(problems, err)
			}
		case statusError:
			problems = append(problems, inError(name, states[i]))
		}
	}
	return found, gone, errors.Join(problems...)
}

// statusError is Nova's report of a server that it could not start, or has lost.
const statusError = "ERROR"

func goneServer(name, id string) string {
	return fmt.Sprintf("server %s (%s) is gone from Nova: a new one takes its place", name, id)
}

func offServer(name string) string { return fmt.Sprintf("server %s is off: it is started", name) }

func inError(name string, state openstack.ServerState) error {
	return fmt.Errorf("server %s is %s: mend it, or delete it in Nova and deploy again for a new one in its place", name, state)
}

// states are the states of servers in Nova. A server without an address in the stack counts as active: whatever needs its addresses complains.
func (s servers) states(ctx context.Context, project *openstack.Project, stack openstack.Stack, list []nodeServer) ([]openstack.ServerState, error) {
	states := make([]openstack.ServerState, len(list))
	errs := make([]error, len(list))
	var group sync.WaitGroup
	for i, server := range list {
		group.Go(func() {
			errs[i] = panics.Run(func() (err error) {
				if addresses, ok := stack.Addresses(server.id()); ok {
					states[i], err = project.Server(ctx, addresses.ServerID)
				} else {
					states[i].Status = openstack.Active
				}
				return err
			})
		})
	}
	group.Wait()
	return states, errors.Join(errs...)
}

// revive starts the nodes of a cluster that are off, and returns the names of the nodes that Nova no longer knows: these can only leave the cluster
// before new ones take their place. The cluster cannot become smaller while it waits for either. A lost master is left to the report of the work that
// needs it.
func (s servers) revive(ctx context.Context, cluster *muranopl.Object, list []nodes.Node) (gone []string, err error) {
	project, err := s.runtime.Project(ctx)
	if err != nil {
		return nil, err
	}
	for _, node := range list {
		if node.Machine != nil {
			continue
		}
		state, err := project.Server(ctx, node.Server)
		if err != nil {
			return nil, err
		}
		switch {
		case state.Status == openstack.Gone && node.Role != nodes.Master:
			gone = append(gone, node.Name)
		case state.Status == openstack.Shut && !node.Settings.Locked:
			if err := s.start(ctx, project, cluster, node.Name, node.Server); err != nil {
				return nil, err
			}
		}
	}
	return gone, nil
}

func (s servers) start(ctx context.Context, project *openstack.Project, object *muranopl.Object, name, id string) error {
	s.reports.Inform(ctx, object, "S%s", offServer(name)[1:])
	if err := project.StartServer(ctx, id); err != nil {
		return fmt.Errorf("server %s: %w", name, err)
	}
	return nil
}

// state is Nova's record of a node's server: nothing if Nova does not answer.
func (s servers) state(ctx context.Context, list []nodes.Node, name string) nodes.ServerState {
	id := serverOf(list, name)
	project, err := s.runtime.Project(ctx)
	if err != nil || id == "" {
		return nodes.ServerState{}
	}
	state, err := project.Server(ctx, id)
	if err != nil || state.Status == openstack.Active && state.Task == "" {
		return nodes.ServerState{}
	}
	return nodes.ServerState{Note: fmt.Sprintf("its server %s is %s: deploy again to have it mended", id, state), Down: state.Down(), Gone: state.Status == openstack.Gone}
}

// consoleLines is how much of a console a report carries.
const consoleLines = 10

// console returns the last lines of a node's console, or nothing if the cloud does not give them.
func (s servers) console(ctx context.Context, list []nodes.Node, name string) string {
	project, err := s.runtime.Project(ctx)
	if err != nil || serverOf(list, name) == "" {
		return ""
	}
	text, err := project.Console(ctx, serverOf(list, name), consoleLines)
	if err != nil {
		s.reports.Logger.DebugContext(ctx, "the console of a server cannot be read", "server", name, "error", err)
	}
	return text
}

func serverOf(list []nodes.Node, name string) string {
	return list[slices.IndexFunc(list, func(node nodes.Node) bool { return node.Name == name })].Server
}
