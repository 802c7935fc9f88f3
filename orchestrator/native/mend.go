package native

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/burano/burano/catalog/muranopl"
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
			if addresses, ok := t.stack.state.Addresses(instance.ID()); ok {
				states[i], errs[i] = project.Server(ctx, addresses.ServerID)
			} else {
				states[i].Status = openstack.Active // whoever needs its addresses complains
			}
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
			t.inform(ctx, instance, "Server %s is off: it is started", name)
			if err := project.StartServer(ctx, addresses.ServerID); err != nil {
				problems = append(problems, fmt.Errorf("server %s: %w", name, err))
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

// serverNote says for the report of a node's failure what Nova knows of its server, if that is remarkable.
func (t *task) serverNote(ctx context.Context, project *openstack.Project, list []nodes.Node, name string) string {
	id := serverOf(list, name)
	state, err := project.Server(ctx, id)
	if err != nil || state.Status == openstack.Active && state.Task == "" {
		return ""
	}
	return fmt.Sprintf("its server %s is %s: deploy again to have it mended", id, state)
}

// consoleLines is how much of a console a report carries.
const consoleLines = 10

// console returns the last lines of a node's console, or nothing when the cloud does not tell them.
func (t *task) console(ctx context.Context, project *openstack.Project, list []nodes.Node, name string) string {
	text, err := project.Console(ctx, serverOf(list, name), consoleLines)
	if err != nil {
		t.config.Logger.DebugContext(ctx, "the console of a server cannot be read", "server", name, "error", err)
	}
	return text
}

func serverOf(list []nodes.Node, name string) string {
	return list[slices.IndexFunc(list, func(node nodes.Node) bool { return node.Name == name })].Server
}
