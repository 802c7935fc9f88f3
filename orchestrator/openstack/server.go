package openstack

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
)

// What Nova says of a server, as far as it is looked at here:
// https://docs.openstack.org/api-guide/compute/server_concepts.html.
const (
	Active = "ACTIVE"
	Shut   = "SHUTOFF"
	Gone   = "" // Nova has no such server
)

// ServerState is what Nova says of a server.
type ServerState struct {
	Status string // ACTIVE, BUILD, SHUTOFF, ERROR, …; Gone when it is not there
	Task   string // what Nova is doing with it, "" for nothing
	Fault  string // why it is in ERROR
	// Launched is when it was set up last: also a rebuild changes it. Empty before the first time.
	Launched string
}

func (s ServerState) String() string {
	if s.Status == Gone {
		return "gone from Nova"
	}
	text := s.Status + " in Nova"
	if s.Task != "" {
		text += " (" + s.Task + ")"
	}
	if s.Fault != "" {
		text += ": " + s.Fault
	}
	return text
}

// Down says that the server does not run, that Nova is doing nothing about it, and that it did not fail: somebody has switched it off
// or deleted it, from inside or outside.
func (s ServerState) Down() bool {
	return s.Status == Gone || s.Status == Shut && s.Task == ""
}

// Server asks Nova for the state of a server.
func (p *Project) Server(ctx context.Context, id string) (ServerState, error) {
	server, err := servers.Get(ctx, p.compute, id).Extract()
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return ServerState{Status: Gone}, nil
	}
	if err != nil {
		return ServerState{}, fmt.Errorf("ask Nova for server %s: %w", id, err)
	}
	if server.Status == "DELETED" || server.Status == "SOFT_DELETED" {
		return ServerState{Status: Gone}, nil
	}
	state := ServerState{Status: server.Status, Task: server.TaskState, Fault: server.Fault.Message}
	if !server.LaunchedAt.IsZero() {
		state.Launched = server.LaunchedAt.UTC().Format(time.RFC3339Nano)
	}
	return state, nil
}

// Console returns the last lines that a server has written to its console.
func (p *Project) Console(ctx context.Context, id string, lines int) (string, error) {
	text, err := servers.ShowConsoleOutput(ctx, p.compute, id, servers.ShowConsoleOutputOpts{Length: lines}).Extract()
	if err != nil {
		return "", fmt.Errorf("read the console of server %s: %w", id, err)
	}
	return text, nil
}

// StartServer starts a server that is off, and waits until it runs.
func (p *Project) StartServer(ctx context.Context, id string) error {
	err := servers.Start(ctx, p.compute, id).ExtractErr()
	// A conflict means that it runs already, or begins to.
	if err != nil && !gophercloud.ResponseCodeIs(err, http.StatusConflict) {
		return fmt.Errorf("start server %s: %w", id, err)
	}
	return poll(ctx, func() (bool, error) {
		state, err := p.Server(ctx, id)
		if err == nil && (state.Status == Gone || state.Status == "ERROR") {
			err = fmt.Errorf("start server %s: it is %s", id, state)
		}
		return state.Status == Active, err
	})
}
