package stacks

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/panics"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/task"
)

// mendServers starts servers that were stopped, and returns the lost servers by their ids in the stack, each with its reason: new servers replace them. A
// server in ERROR is left to people, because its disk may have the only copy of data. found are the states of servers in Nova, by their ids there.
func (s *OwnStack) mendServers(ctx context.Context, project *openstack.Project, stack openstack.Stack, list []Server) (found map[string]openstack.ServerState, gone map[string]string, err error) {
	states, err := serverStates(ctx, project, stack, list)
	if err != nil {
		return nil, nil, err
	}
	found, gone = map[string]openstack.ServerState{}, map[string]string{}
	var problems []error
	for i, server := range list {
		instance, name := server.Instance, server.Name()
		addresses, _ := stack.Addresses(server.ID())
		found[addresses.ServerID] = states[i]
		switch states[i].Status {
		case openstack.Gone:
			s.reports.Inform(ctx, instance, "S%s", goneServer(name, addresses.ServerID)[1:])
			gone[server.ID()] = "Nova does not know the server any more"
		case openstack.Shut:
			locked, err := s.Nodes.Locked(ctx, instance)
			if err == nil && !locked { // whoever has locked it starts it
				err = StartServer(ctx, s.reports, project, instance, name, addresses.ServerID)
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

// serverStates are the states of servers in Nova. A server without an address in the stack counts as active: the reader of its addresses reports that.
func serverStates(ctx context.Context, project *openstack.Project, stack openstack.Stack, list []Server) ([]openstack.ServerState, error) {
	states := make([]openstack.ServerState, len(list))
	errs := make([]error, len(list))
	var group sync.WaitGroup
	for i, server := range list {
		group.Go(func() {
			errs[i] = panics.Run(func() (err error) {
				if addresses, ok := stack.Addresses(server.ID()); ok {
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

// StartServer starts a server that is off, and reports it.
func StartServer(ctx context.Context, reports task.Reports, project *openstack.Project, object *muranopl.Object, name, id string) error {
	reports.Inform(ctx, object, "S%s", offServer(name)[1:])
	if err := project.StartServer(ctx, id); err != nil {
		return fmt.Errorf("server %s: %w", name, err)
	}
	return nil
}
