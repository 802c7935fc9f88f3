// Package heat is the local cloud's Orchestration API v1: stacks from HOT templates, whose resources are made through Nova and Neutron in the order of
// their dependencies and as parallel as these allow.
//
// A stack is one row. An operation (create, update, delete) writes its target and its status first and then works in the background, recording each
// resource's state in the row as it changes; interrupted work continues at the next Restore. Resources of Neutron get their ids before they are made, so
// that nothing is made twice; a server that was being made is found again by its name.
//
// A table has the operations of each resource type (resource types are values of resourceType). Nested stacks exist for groups only, and there are no
// actions on stacks other than these three.
package heat

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/test/localcloud/state"
)

// Config has Heat's state and the services that it uses.
type Config struct {
	StateDir string
	Compute  Compute
	Network  Network
	Volumes  Volumes
	// Delegations are where Heat makes a trust for each stack, to act for its user later; nil: it makes none.
	Delegations Delegations
	Logger      *slog.Logger
	Now         func() time.Time // time.Now when nil
}

// Delegations makes trusts from tokens, checks whether they are still valid, and ends them.
type Delegations interface {
	Delegate(token string) (trustID string, ok bool)
	Delegates(trustID string) bool
	EndDelegation(trustID string) error
}

// Service is Heat.
type Service struct {
	config Config
	logger *slog.Logger
	stacks *state.Table[Stack]
	events *state.Table[Event]
	types  map[string]resourceType

	background context.Context
	stop       context.CancelFunc
	mutex      sync.Mutex // held while an operation is decided on
	running    map[string]*operation
}

// operation is a stack's present operation.
type operation struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// New opens the state. Unfinished operations rest until Restore.
func New(config Config) (*Service, error) {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	dir := filepath.Join(config.StateDir, "heat")
	stacks, errStacks := state.Open[Stack](dir, "stacks")
	events, errEvents := state.Open[Event](dir, "stackevents")
	if err := errors.Join(errStacks, errEvents); err != nil {
		return nil, fmt.Errorf("start heat: %w", err)
	}
	s := &Service{config: config, logger: config.Logger, stacks: stacks, events: events, running: map[string]*operation{}}
	s.types = s.resourceTypes()
	s.background, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// Restore continues the operations that were in progress when the process ended.
func (s *Service) Restore(context.Context) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, stack := range s.stacks.All() {
		if stack.Status == inProgress && !stack.Group { // that of a group goes on with the stack that has the group
			s.logger.Info("stack operation goes on", "stack", stack.Name, "action", stack.Action)
			s.start(stack)
		}
	}
	return nil
}

// Close stops the work on all operations, as the end of the process does, and waits until it has stopped.
func (s *Service) Close() {
	s.stop()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, operation := range s.running {
		<-operation.done
	}
}

// start begins, or continues, the operation in the stack's row. The caller holds the mutex.
func (s *Service) start(stack Stack) {
	ctx, cancel := context.WithCancel(s.background)
	ctx = identity.With(ctx, identity.Caller{UserID: stack.UserID, ProjectID: stack.ProjectID})
	operation := &operation{cancel: cancel, done: make(chan struct{})}
	s.running[stack.ID] = operation
	go func() {
		defer close(operation.done)
		defer cancel()
		s.run(ctx, stack.ID)
	}()
}

// interrupt ends the operation on a stack, if there is one, without an end state. The caller holds the mutex.
func (s *Service) interrupt(stackID string) {
	if operation, ok := s.running[stackID]; ok {
		operation.cancel()
		<-operation.done
		delete(s.running, stackID)
	}
}

func (s *Service) now() string { return s.config.Now().UTC().Format(time.RFC3339) }
