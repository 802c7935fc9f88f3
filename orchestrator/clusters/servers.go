package clusters

import (
	"context"
	"fmt"
	"slices"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/stacks"
	"github.com/burano/burano/orchestrator/task"
)

// servers looks at the servers of nodes in Nova.
type servers struct {
	runtime interface {
		Project(ctx context.Context) (*openstack.Project, error)
	}
	reports task.Reports
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
			if err := stacks.StartServer(ctx, s.reports, project, cluster, node.Name, node.Server); err != nil {
				return nil, err
			}
		}
	}
	return gone, nil
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
