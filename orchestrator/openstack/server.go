package openstack

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
)

// The states of a server in Nova that are used here: https://docs.openstack.org/api-guide/compute/server_concepts.html.
const (
	Active = "ACTIVE"
	Shut   = "SHUTOFF"
	Gone   = "" // Nova has no such server

	Shelved   = "SHELVED"           // it was shut down, and its disk is stored as an image
	Offloaded = "SHELVED_OFFLOADED" // and it is on no host any more
)

// ServerState is a server's state in Nova.
type ServerState struct {
	Status string // ACTIVE, BUILD, SHUTOFF, ERROR, …; Gone when it is not there
	Task   string // Nova's present work on it, "" for none
	Fault  string // why it is in ERROR
	// Launched is when it was set up last: also a rebuild changes it. Empty before the first time.
	Launched string
	Zone     string // Nova's availability zone in which it is; "" where that is not known
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

// Down is true if the server does not run, Nova does no work on it, and it did not fail: it was switched off or deleted, from inside or outside.
func (s ServerState) Down() bool {
	return s.Status == Gone || s.Status == Shut && s.Task == ""
}

// Off is true if the server certainly runs nowhere, and Nova does no work on it: beside a server that is Down, a shelved one, whose disk is an image by
// now or soon.
func (s ServerState) Off() bool {
	return s.Down() || (s.Status == Shelved || s.Status == Offloaded) && s.Task == ""
}

// foundServer has a server's properties in Nova. Names are "" where they are not known.
type foundServer struct {
	ServerState
	name            string
	flavorID, image string
	imageID, flavor string
}

// there is true if the server may run, or have data on its disk.
func (s foundServer) there() bool { return s.Status != Gone && s.Status != "ERROR" }

// choices are the possible spellings of the server's values, by Heat's names of properties.
func (s foundServer) choices() map[string][]string {
	words := map[string][]string{}
	for property, pair := range map[string][2]string{"flavor": {s.flavorID, s.flavor}, "image": {s.imageID, s.image}} {
		for _, word := range pair {
			if word != "" {
				words[property] = append(words[property], word)
			}
		}
	}
	return words
}

// found asks Nova and Glance for a server's properties.
func (p *Project) found(ctx context.Context, id string) (foundServer, error) {
	state, server, err := p.server(ctx, id)
	if err != nil || state.Status == Gone {
		return foundServer{ServerState: state}, err
	}
	found := foundServer{ServerState: state, name: server.Name}
	found.flavorID, _ = server.Flavor["id"].(string)
	found.imageID, _ = server.Image["id"].(string)
	if flavor, err := flavors.Get(ctx, p.compute, found.flavorID).Extract(); err == nil {
		found.flavor = flavor.Name
	} else if !gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return found, fmt.Errorf("ask Nova for flavor %s: %w", found.flavorID, err)
	}
	if found.imageID == "" {
		return found, nil
	}
	client, err := p.Glance.client()
	if err != nil {
		return found, err
	}
	image, err := images.Get(ctx, client, found.imageID).Extract()
	if err == nil {
		found.image = image.Name
	} else if !gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return found, fmt.Errorf("ask Glance for image %s: %w", found.imageID, err)
	}
	return found, nil
}

// Server asks Nova for the state of a server.
func (n Nova) Server(ctx context.Context, id string) (ServerState, error) {
	state, _, err := n.server(ctx, id)
	return state, err
}

func (n Nova) server(ctx context.Context, id string) (ServerState, *servers.Server, error) {
	if identified("server", id) != nil {
		return ServerState{Status: Gone}, nil, nil
	}
	server, err := servers.Get(ctx, n.compute, id).Extract()
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return ServerState{Status: Gone}, nil, nil
	}
	if err != nil {
		return ServerState{}, nil, fmt.Errorf("ask Nova for server %s: %w", id, err)
	}
	if server.Status == "DELETED" || server.Status == "SOFT_DELETED" {
		return ServerState{Status: Gone}, server, nil
	}
	state := ServerState{Status: server.Status, Task: server.TaskState, Fault: server.Fault.Message, Zone: server.AvailabilityZone}
	if !server.LaunchedAt.IsZero() {
		state.Launched = server.LaunchedAt.UTC().Format(time.RFC3339Nano)
	}
	return state, server, nil
}

// Console returns the last lines that a server has written to its console.
func (n Nova) Console(ctx context.Context, id string, lines int) (string, error) {
	var text string
	if err := identified("server", id); err != nil {
		return "", err
	}
	err := Patiently(ctx, "compute", func(ctx context.Context) (err error) {
		text, err = servers.ShowConsoleOutput(ctx, n.compute, id, servers.ShowConsoleOutputOpts{Length: lines}).Extract()
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the console of server %s: %w", id, err)
	}
	return text, nil
}

// RebootServer restarts a running server, in order or, hard, by its power switch, and waits until Nova reports that it runs.
func (n Nova) RebootServer(ctx context.Context, id string, hard bool) error {
	if err := identified("server", id); err != nil {
		return err
	}
	method := servers.SoftReboot
	if hard {
		method = servers.HardReboot
	}
	err := Patiently(ctx, "compute", func(ctx context.Context) error {
		return servers.Reboot(ctx, n.compute, id, servers.RebootOpts{Type: method}).ExtractErr()
	})
	// After a conflict the reboot has begun, or waits for other work.
	if err != nil && !gophercloud.ResponseCodeIs(err, http.StatusConflict) {
		return fmt.Errorf("reboot server %s: %w", id, err)
	}
	return poll(ctx, func() (bool, error) {
		state, err := n.Server(ctx, id)
		if err == nil && (state.Status == Gone || state.Status == "ERROR") {
			err = fmt.Errorf("reboot server %s: it is %s", id, state)
		}
		return state.Status == Active && state.Task == "", err
	})
}

// StopServer switches a server off in order, and waits until it is off. Its disk and its addresses stay.
func (n Nova) StopServer(ctx context.Context, id string) error {
	return poll(ctx, func() (bool, error) {
		state, err := n.Server(ctx, id)
		switch {
		case err != nil:
			return false, err
		case state.Off():
			return true, nil
		case state.Status == "ERROR":
			return false, fmt.Errorf("stop server %s: it is %s", id, state)
		case state.Status != Active || state.Task != "":
			return false, nil // Nova is at work on it
		}
		err = Patiently(ctx, "compute", func(ctx context.Context) error { return servers.Stop(ctx, n.compute, id).ExtractErr() })
		// After a conflict it begins to stop already; else the call is repeated.
		if err != nil && !gophercloud.ResponseCodeIs(err, http.StatusConflict) {
			return false, fmt.Errorf("stop server %s: %w", id, err)
		}
		return false, nil
	})
}

// StartServer starts a server that is off, and waits until it runs.
func (n Nova) StartServer(ctx context.Context, id string) error {
	return poll(ctx, func() (bool, error) {
		state, err := n.Server(ctx, id)
		switch {
		case err != nil:
			return false, err
		case state.Status == Gone || state.Status == "ERROR":
			return false, fmt.Errorf("start server %s: it is %s", id, state)
		case !state.Down():
			return state.Status == Active, nil
		}
		err = Patiently(ctx, "compute", func(ctx context.Context) error { return servers.Start(ctx, n.compute, id).ExtractErr() })
		// After a conflict it runs already, or begins to; else the call is repeated.
		if err != nil && !gophercloud.ResponseCodeIs(err, http.StatusConflict) {
			return false, fmt.Errorf("start server %s: %w", id, err)
		}
		return false, nil
	})
}
