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
)

// mend looks at each server as Nova sees it now, of which Heat knows nothing: one that was stopped is started, one that is gone
// is made anew. One in ERROR is left to people, because its disk may hold what nothing else does.
func (t *task) mend(ctx context.Context, project *openstack.Project, template openstack.Definition, instances []*muranopl.Object) error {
	states := make([]openstack.ServerState, len(instances))
	errs := make([]error, len(instances))
	var group sync.WaitGroup
	for i, instance := range instances {
		group.Go(func() {
			errs[i] = panics.Run(func() (err error) {
				if addresses, ok := t.stack.state.Addresses(instance.ID()); ok {
					states[i], err = project.Server(ctx, addresses.ServerID)
				} else {
					states[i].Status = openstack.Active // whoever needs its addresses complains
				}
				return err
			})
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	gone := map[string]string{}
	t.stack.launched = map[string]string{}
	var problems []error
	for i, instance := range instances {
		name := instance.Text("name")
		addresses, _ := t.stack.state.Addresses(instance.ID())
		t.stack.launched[addresses.ServerID] = states[i].Launched
		switch states[i].Status {
		case openstack.Gone:
			t.inform(ctx, instance, "Server %s (%s) is gone from Nova: a new one takes its place", name, addresses.ServerID)
			gone[instance.ID()] = "Nova does not know the server any more"
		case openstack.Shut:
			if err := t.startServer(ctx, project, instance, name, addresses.ServerID); err != nil {
				problems = append(problems, err)
			}
		case "ERROR":
			problems = append(problems, fmt.Errorf("server %s is %s: mend it, or delete it in Nova and deploy again for a new one in its place", name, states[i]))
		}
	}
	if err := errors.Join(problems...); err != nil || len(gone) == 0 {
		return err
	}
	state, err := project.ReplaceServers(ctx, stackName(t.EnvironmentID()), template, gone)
	if err == nil {
		t.stack.state = state
	}
	return err
}

// revive starts those nodes of a cluster that are off, and returns the names of those that Nova does not know any more: these can only
// leave the cluster before new ones take their place. The cluster cannot become smaller while it waits for either. A master that is gone
// is left to the report of what needs it.
func (t *task) revive(ctx context.Context, cluster *muranopl.Object, list []nodes.Node) (gone []string, err error) {
	project, err := t.Project(ctx)
	if err != nil {
		return nil, err
	}
	for _, node := range list {
		state, err := project.Server(ctx, node.Server)
		if err != nil {
			return nil, err
		}
		switch {
		case state.Status == openstack.Gone && node.Role != nodes.Master:
			gone = append(gone, node.Name)
		case state.Status == openstack.Shut:
			if err := t.startServer(ctx, project, cluster, node.Name, node.Server); err != nil {
				return nil, err
			}
		}
	}
	return gone, nil
}

func (t *task) startServer(ctx context.Context, project *openstack.Project, object *muranopl.Object, name, id string) error {
	t.inform(ctx, object, "Server %s is off: it is started", name)
	if err := project.StartServer(ctx, id); err != nil {
		return fmt.Errorf("server %s: %w", name, err)
	}
	return nil
}

// serverState is what Nova knows of a node's server: nothing when it cannot be asked.
func (t *task) serverState(ctx context.Context, list []nodes.Node, name string) nodes.ServerState {
	id := serverOf(list, name)
	project, err := t.Project(ctx)
	if err != nil || id == "" {
		return nodes.ServerState{}
	}
	state, err := project.Server(ctx, id)
	if err != nil || state.Status == openstack.Active && state.Task == "" {
		return nodes.ServerState{}
	}
	return nodes.ServerState{Note: fmt.Sprintf("its server %s is %s: deploy again to have it mended", id, state), Down: state.Down()}
}

// consoleLines is how much of a console a report carries.
const consoleLines = 10

// console returns the last lines of a node's console, or nothing when the cloud does not tell them.
func (t *task) console(ctx context.Context, list []nodes.Node, name string) string {
	project, err := t.Project(ctx)
	if err != nil {
		return ""
	}
	text, err := project.Console(ctx, serverOf(list, name), consoleLines)
	if err != nil {
		t.config.Logger.DebugContext(ctx, "the console of a server cannot be read", "server", name, "error", err)
	}
	return text
}

func serverOf(list []nodes.Node, name string) string {
	return list[slices.IndexFunc(list, func(node nodes.Node) bool { return node.Name == name })].Server
}
