package nova

import (
	"context"
	"fmt"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/test/localcloud/hypervisor"
)

// running is the hypervisor's word for a machine that runs.
const running = hypervisor.State("running")

// operation is the work being done on one server. There is at most one: a later one waits until the former has ended.
type operation struct {
	task   task
	cancel context.CancelFunc
	done   chan struct{}
}

// run does work on a server in the background. A deletion that goes on already is joined; other work is ended first. The caller
// holds the mutex and has stored the task.
func (s *Service) run(id string, kind task, work func(ctx context.Context, id string) error) *operation {
	previous := s.running[id]
	if previous != nil && previous.task == kind {
		return previous
	}
	ctx, cancel := context.WithCancel(s.background)
	op := &operation{task: kind, cancel: cancel, done: make(chan struct{})}
	s.running[id] = op
	s.group.Go(func() {
		defer close(op.done)
		defer cancel()
		if previous != nil {
			previous.cancel()
			<-previous.done
		}
		err := work(ctx, id)
		s.mutex.Lock()
		defer s.mutex.Unlock()
		if s.running[id] == op {
			delete(s.running, id)
		}
		// Work that was ended is no failure: it goes on at the next start, or a deletion takes its place.
		if err == nil || ctx.Err() == nil {
			s.endTask(id, kind, err)
		}
	})
	return op
}

// endTask stores the end of a task, unless another has taken its place. The caller holds the mutex.
func (s *Service) endTask(id string, kind task, failure error) {
	if failure != nil {
		s.log.Error("work on a server failed", "server", id, "task", kind, "error", failure)
	}
	var err error
	if kind == taskDelete && failure == nil {
		_, err = s.servers.Delete(id)
	} else {
		_, err = s.servers.Update(id, func(row *Server) {
			if row.Task != kind {
				return
			}
			row.Task, row.Fault, row.UpdatedAt = taskNone, "", s.now()
			switch {
			case failure != nil:
				row.Status, row.Fault, row.FaultAt = StatusError, failure.Error(), s.now()
				row.RescueImageID = "" // it is started from its own disk again
				if row.Before != nil {
					row.FlavorID, row.Before = row.Before.FlavorID, nil
				}
			case kind == taskVolumes: // runs or not as before
			case kind == taskStop:
				row.Status = StatusShutoff
			case row.RescueImageID != "":
				row.Status = StatusRescue
			case row.Before != nil && kind == taskRevert:
				row.Status, row.Before = row.Before.Status, nil
			case row.Before != nil:
				row.Status = StatusResized
			default:
				row.Status = StatusActive
				if row.LaunchedAt.IsZero() || kind == taskRebuild {
					row.LaunchedAt = s.now()
				}
			}
		})
	}
	if err != nil {
		s.log.Error("the end of work on a server was not stored", "server", id, "task", kind, "error", err)
	}
}

// begin stores a task for a server that has none, and runs it.
func (s *Service) begin(id string, kind task, allowed func(Server) bool, work func(context.Context, string) error) error {
	_, err := s.beginWith(id, kind, allowed, func(*Server) {}, work)
	return err
}

// beginWith is begin with a change of the server's desired state.
func (s *Service) beginWith(id string, kind task, allowed func(Server) bool, change func(*Server), work func(context.Context, string) error) (*operation, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var refused error
	found, err := s.servers.Update(id, func(row *Server) {
		switch {
		case row.Task != taskNone:
			refused = fault.New(fault.Conflict, "Cannot do '%s' while instance %s is in task_state %s", kind, id, row.Task)
		case !allowed(*row):
			refused = fault.New(fault.Conflict, "Cannot do '%s' while instance %s is in vm_state %s", kind, id, vmStates[row.Status])
		default:
			row.Task, row.UpdatedAt = kind, s.now()
			change(row)
		}
	})
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, noServer(id)
	case refused != nil:
		return nil, refused
	}
	return s.run(id, kind, work), nil
}

// Restore continues work that was unfinished when the process ended, and starts servers again that were running when the machine went down. It returns at
// once; the work continues in the background.
func (s *Service) Restore(ctx context.Context) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, server := range s.servers.All() {
		kind := server.Task
		if kind == taskNone && server.up() {
			seen, err := s.hypervisor.State(ctx, server.ID)
			if err != nil {
				return fmt.Errorf("restore server %s: %w", server.ID, err)
			}
			if seen == running {
				continue
			}
			kind = taskStart
			if _, err := s.servers.Update(server.ID, func(row *Server) { row.Task = kind }); err != nil {
				return fmt.Errorf("restore server %s: %w", server.ID, err)
			}
		}
		switch kind {
		case taskNone:
		case taskSpawn, taskStart, taskReplug:
			s.run(server.ID, kind, s.boot)
		case taskReboot, taskRescue, taskUnrescue:
			s.run(server.ID, kind, s.reboot)
		case taskResize, taskRevert:
			s.run(server.ID, kind, s.resize)
		case taskRebuild:
			s.run(server.ID, kind, s.rebuild)
		case taskVolumes:
			s.run(server.ID, kind, s.plugVolumes)
		case taskStop:
			s.run(server.ID, kind, s.powerOff)
		case taskDelete:
			s.run(server.ID, kind, s.remove)
		}
	}
	return nil
}

// boot starts a server: its interfaces, its config drive, its machine. Each step finds the results of an earlier try, so that it can be done again from
// the beginning.
func (s *Service) boot(ctx context.Context, id string) error {
	server, ok := s.servers.Get(id)
	if !ok {
		return nil
	}
	flavor := s.flavorOfServer(server)
	if flavor.MemoryMiB > s.memory {
		return noHost
	}
	if err := s.scheduled(ctx, server); err != nil {
		return err
	}
	namespace, err := s.networks.CreateServerNamespace(ctx, id)
	if err != nil {
		return fmt.Errorf("make the network namespace: %w", err)
	}
	plugged, err := s.plug(ctx, server)
	if err != nil {
		return err
	}
	drive, err := configDrive(server, plugged)
	if err != nil {
		return fmt.Errorf("make the config drive: %w", err)
	}
	seen, err := s.hypervisor.State(ctx, id)
	if err != nil {
		return fmt.Errorf("look at the machine: %w", err)
	}
	disks, err := s.disks(server)
	if err != nil {
		return fmt.Errorf("look for its volumes: %w", err)
	}
	if seen != running {
		err = s.hypervisor.Start(ctx, hypervisor.Server{
			ID: id, Hostname: server.Hostname, ImageID: server.ImageID, RescueImageID: server.RescueImageID, NetNS: namespace,
			MemoryMiB: flavor.MemoryMiB, VCPUs: flavor.VCPUs, Disks: disks, ConfigDrive: drive,
		})
		if err != nil {
			return fmt.Errorf("start the machine: %w", err)
		}
	}
	return nil
}

func (s *Service) powerOff(ctx context.Context, id string) error {
	if err := s.hypervisor.Stop(ctx, id); err != nil {
		return fmt.Errorf("stop the machine: %w", err)
	}
	return nil
}

func (s *Service) reboot(ctx context.Context, id string) error {
	if err := s.hypervisor.Stop(ctx, id); err != nil {
		return fmt.Errorf("stop the machine: %w", err)
	}
	return s.boot(ctx, id)
}

// rebuild gives a server a new disk from its image. Its place on the networks, its user-data and its id stay.
func (s *Service) rebuild(ctx context.Context, id string) error {
	if err := s.hypervisor.Delete(ctx, id); err != nil {
		return fmt.Errorf("delete the former disk: %w", err)
	}
	return s.boot(ctx, id)
}

// Delete removes a server and waits until nothing of it is left.
func (s *Service) Delete(ctx context.Context, projectID, id string) error {
	server, ok := s.servers.Get(id)
	if !ok || (projectID != "" && server.ProjectID != projectID) {
		return noServer(id)
	}
	op, err := s.beginDelete(id)
	if err != nil {
		return err
	}
	select {
	case <-op.done:
	case <-ctx.Done():
		return fmt.Errorf("delete server %s: %w", id, ctx.Err())
	}
	if left, ok := s.servers.Get(id); ok {
		if left.Task == taskDelete {
			return fmt.Errorf("delete server %s: it goes on when the cloud is started again: %w", id, s.background.Err())
		}
		return fmt.Errorf("delete server %s: %s", id, left.Fault)
	}
	return nil
}

// beginDelete ends whatever is being done to a server and removes it in the background.
func (s *Service) beginDelete(id string) (*operation, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	found, err := s.servers.Update(id, func(row *Server) { row.Task, row.UpdatedAt = taskDelete, s.now() })
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, noServer(id)
	}
	return s.run(id, taskDelete, s.remove), nil
}

func (s *Service) remove(ctx context.Context, id string) error {
	if err := s.hypervisor.Delete(ctx, id); err != nil {
		return fmt.Errorf("delete the machine: %w", err)
	}
	if err := s.networks.DetachServer(ctx, id); err != nil {
		return fmt.Errorf("unplug the machine: %w", err)
	}
	if err := s.networks.DeleteServerNamespace(ctx, id); err != nil {
		return fmt.Errorf("delete the network namespace: %w", err)
	}
	server, ok := s.servers.Get(id)
	if !ok || len(server.Volumes) == 0 {
		return nil
	}
	if err := s.releaseVolumes(server); err != nil {
		return fmt.Errorf("give its volumes back: %w", err)
	}
	return nil
}
