// Package heattest is a Nova for tests of Heat: its servers are namespaces with plugged ports and nothing running in them.
package heattest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/google/uuid"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/test/localcloud/cinder"
	"github.com/burano/burano/test/localcloud/heat"
	"github.com/burano/burano/test/localcloud/neutron"
)

// Compute is the fake. Set its fields before use.
type Compute struct {
	Networks *neutron.Service
	Volumes  *cinder.Service
	// Broken has the reason why a server of this flavor goes to ERROR.
	Broken map[string]string

	mutex    sync.Mutex
	servers  map[string]*server
	keyPairs map[string]heat.KeyPair
	held     bool
}

type server struct {
	project string
	heat.Server
	request heat.ServerRequest
	looked  int
}

// CheckImage finds every image.
func (c *Compute) CheckImage(context.Context, string, string) error { return nil }

// CheckFlavor finds every flavor but m1.unknown; m1.none is found, and yet no server can be made with it.
func (c *Compute) CheckFlavor(_ context.Context, _, ref string) error {
	if ref == "m1.unknown" {
		return fault.New(fault.NotFound, "No Flavor matching {'name': 'm1.unknown'}.")
	}
	return nil
}

// CreateServer plugs the ports at once; the server is in BUILD until it was looked at a second time.
func (c *Compute) CreateServer(ctx context.Context, projectID string, request heat.ServerRequest) (heat.Server, error) {
	if request.Flavor == "m1.none" {
		return heat.Server{}, fault.New(fault.Invalid, "Flavor m1.none could not be found.")
	}
	s := &server{project: projectID, request: request, Server: heat.Server{ID: uuid.NewString(), Name: request.Name, Status: "BUILD", Show: map[string]any{"name": request.Name}}}
	ports := request.Ports
	for _, network := range request.Networks {
		port, err := c.Networks.CreatePort(ctx, projectID, neutron.PortRequest{NetworkID: network, DeleteWithServer: true})
		if err != nil {
			return heat.Server{}, err
		}
		ports = append(ports, port.ID)
	}
	if _, err := c.Networks.CreateServerNamespace(ctx, s.ID); err != nil {
		return heat.Server{}, err
	}
	for i, port := range ports {
		if _, err := c.Networks.AttachPort(ctx, port, s.ID, fmt.Sprintf("eth%d", i)); err != nil {
			return heat.Server{}, errors.Join(err, c.Networks.DetachServer(ctx, s.ID), c.Networks.DeleteServerNamespace(ctx, s.ID))
		}
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.servers == nil {
		c.servers = map[string]*server{}
	}
	c.servers[s.ID] = s
	return s.Server, nil
}

// GetServer looks at a server.
func (c *Compute) GetServer(_ context.Context, projectID, id string) (heat.Server, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	s, ok := c.servers[id]
	if !ok || s.project != projectID {
		return heat.Server{}, fault.New(fault.NotFound, "Instance %s could not be found.", id)
	}
	if s.looked++; s.looked > 2 && s.Status == "BUILD" && !c.held {
		s.Status = "ACTIVE"
		if reason, broken := c.Broken[s.request.Flavor]; broken {
			s.Status, s.Fault = "ERROR", reason
		}
	}
	return s.Server, nil
}

// Hold keeps every server that is in BUILD there until Release.
func (c *Compute) Hold() { c.hold(true) }

// Release lets servers become ACTIVE again.
func (c *Compute) Release() { c.hold(false) }

func (c *Compute) hold(held bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.held = held
}

// Building counts the servers in BUILD.
func (c *Compute) Building() (count int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, s := range c.servers {
		if s.Status == "BUILD" {
			count++
		}
	}
	return count
}

// FindServers finds servers by name.
func (c *Compute) FindServers(_ context.Context, projectID, name string) (ids []string, err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for id, s := range c.servers {
		if s.Name == name && s.project == projectID {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// RenameServer gives a server another name; its metadata is not stored.
func (c *Compute) RenameServer(ctx context.Context, projectID, id, name string, _ map[string]string) error {
	if _, err := c.GetServer(ctx, projectID, id); err != nil {
		return err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.servers[id].Name = name
	return nil
}

// RebuildServer finds the server.
func (c *Compute) RebuildServer(ctx context.Context, projectID, id, _ string) error {
	_, err := c.GetServer(ctx, projectID, id)
	return err
}

// ResizeServer finds the server.
func (c *Compute) ResizeServer(ctx context.Context, projectID, id, _ string) error {
	_, err := c.GetServer(ctx, projectID, id)
	return err
}

// ReplugServer replaces the ports of a server.
func (c *Compute) ReplugServer(ctx context.Context, projectID, id string, ports, _ []string) error {
	if _, err := c.GetServer(ctx, projectID, id); err != nil {
		return err
	}
	if err := c.Networks.DetachServer(ctx, id); err != nil {
		return err
	}
	for i, port := range ports {
		if _, err := c.Networks.AttachPort(ctx, port, id, fmt.Sprintf("eth%d", i)); err != nil {
			return err
		}
	}
	return nil
}

// DeleteServer unplugs and forgets a server.
func (c *Compute) DeleteServer(ctx context.Context, projectID, id string) error {
	if _, err := c.GetServer(ctx, projectID, id); err != nil {
		return err
	}
	if err := errors.Join(c.Networks.DetachServer(ctx, id), c.Networks.DeleteServerNamespace(ctx, id)); err != nil {
		return err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.servers, id)
	return nil
}

// CreateKeyPair keeps a key pair.
func (c *Compute) CreateKeyPair(_ context.Context, _, name, publicKey string) (heat.KeyPair, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.keyPairs == nil {
		c.keyPairs = map[string]heat.KeyPair{}
	}
	if _, ok := c.keyPairs[name]; ok {
		return heat.KeyPair{}, fault.New(fault.Conflict, "Key pair '%s' already exists.", name)
	}
	pair := heat.KeyPair{Name: name, PublicKey: publicKey}
	if publicKey == "" {
		pair.PublicKey, pair.PrivateKey = "public", "private"
	}
	c.keyPairs[name] = pair
	return pair, nil
}

// DeleteKeyPair forgets a key pair.
func (c *Compute) DeleteKeyPair(_ context.Context, _, name string) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if _, ok := c.keyPairs[name]; !ok {
		return fault.New(fault.NotFound, "Keypair %s not found.", name)
	}
	delete(c.keyPairs, name)
	return nil
}

// CreateServerGroup takes every group.
func (c *Compute) CreateServerGroup(context.Context, string, string, string, string) error {
	return nil
}

// DeleteServerGroup finds every group.
func (c *Compute) DeleteServerGroup(context.Context, string, string) error { return nil }

// Servers are the requests of the servers that are there, by id.
func (c *Compute) Servers() map[string]heat.ServerRequest {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	requests := map[string]heat.ServerRequest{}
	for id, s := range c.servers {
		requests[id] = s.request
	}
	return requests
}

// KeyPairs counts the key pairs that are there.
func (c *Compute) KeyPairs() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return len(c.keyPairs)
}

// AttachVolume notes with Cinder that a server has a volume.
func (c *Compute) AttachVolume(_ context.Context, projectID, serverID, volumeID, device string) error {
	return c.Volumes.Attach(projectID, volumeID, serverID, device)
}

// DetachVolume records that a server has no volumes any more: servers of tests have one.
func (c *Compute) DetachVolume(_ context.Context, _, serverID, _ string) error {
	return c.Volumes.Keep(serverID, nil)
}
