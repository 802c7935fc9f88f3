package native

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/openstack"
)

// mend looks at each server as Nova sees it now, of which Heat knows nothing: one that was stopped is started, one that is gone
// is made anew. One in ERROR is left to people, because its disk may hold what nothing else does.
func (t *task) mend(ctx context.Context, project *openstack.Project, template openstack.Template, instances []*muranopl.Object) error {
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
	var problems []error
	for i, instance := range instances {
		name := instance.Text("name")
		addresses, _ := t.stack.state.Addresses(instance.ID())
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
	for _, node := range list {
		if node.Name != name {
			continue
		}
		state, err := project.Server(ctx, node.Server)
		if err != nil || state.Status == openstack.Active && state.Task == "" {
			return ""
		}
		return fmt.Sprintf("its server %s is %s: deploy again to have it mended", node.Server, state)
	}
	return ""
}
