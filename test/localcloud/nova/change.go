package nova

import (
	"context"
	"fmt"
	"slices"

	"github.com/burano/burano/internal/fault"
)

// This file has Heat's operations on running servers whose properties change. Each method returns when it is done.

func runs(row Server) bool {
	return row.Status == StatusActive || row.Status == StatusShutoff || row.Status == StatusError
}

// cannotRebuild is Nova's error: it rebuilds no server that runs from a volume before its microversion 2.93.
var cannotRebuild = fault.New(fault.Invalid, "Unable to rebuild with a different image for a volume-backed server.")

// Rebuild gives a server a new disk from an image, by name or id.
func (s *Service) Rebuild(ctx context.Context, projectID, id, imageRef string) error {
	server, err := s.Get(ctx, projectID, id)
	if err != nil {
		return err
	}
	if server.ImageID == "" {
		return cannotRebuild
	}
	image, err := s.images.Find(ctx, server.ProjectID, imageRef)
	if err != nil {
		return fault.New(fault.Invalid, "%w", err)
	}
	op, err := s.beginWith(id, taskRebuild, runs, func(row *Server) { row.ImageID = image.ID }, s.rebuild)
	return s.ended(ctx, op, err, id)
}

// Resize shuts a server down and starts it with another flavor, by name or id.
func (s *Service) Resize(ctx context.Context, projectID, id, flavorRef string) error {
	if _, err := s.Get(ctx, projectID, id); err != nil {
		return err
	}
	flavor, ok := s.findFlavor(flavorRef)
	if !ok {
		return fault.New(fault.Invalid, "Flavor %s could not be found.", flavorRef)
	}
	op, err := s.beginWith(id, taskResize, runs, func(row *Server) { row.FlavorID = flavor.ID }, s.resize)
	return s.ended(ctx, op, err, id)
}

// Replug detaches a server's unwanted interfaces, and attaches missing ones: ports by their ids, and one on each of these networks. The system in the
// server has to configure them.
func (s *Service) Replug(ctx context.Context, projectID, id string, ports, networks []string) error {
	server, err := s.Get(ctx, projectID, id)
	if err != nil {
		return err
	}
	var kept, leaving []Interface
	for _, in := range server.Interfaces {
		wanted := &ports
		name := in.PortID
		if in.Own {
			wanted, name = &networks, in.NetworkID
		}
		if i := slices.Index(*wanted, name); i >= 0 {
			*wanted = slices.Delete(slices.Clone(*wanted), i, i+1)
			kept = append(kept, in)
		} else {
			leaving = append(leaving, in)
		}
	}
	request := CreateServer{noNetwork: true}
	for _, port := range ports {
		request.interfaces = append(request.interfaces, Interface{PortID: port})
	}
	for _, network := range networks {
		request.interfaces = append(request.interfaces, Interface{NetworkID: network})
	}
	coming, err := s.acceptInterfaces(ctx, server.ProjectID, request)
	if err != nil {
		return err
	}
	for _, in := range leaving {
		if err := s.networks.DetachPort(ctx, in.PortID, id); err != nil {
			return fmt.Errorf("detach port %s of server %s: %w", in.PortID, id, err)
		}
	}
	op, err := s.beginWith(id, taskReplug, runs, func(row *Server) { row.Interfaces = append(kept, coming...) }, func(ctx context.Context, id string) error {
		server, ok := s.servers.Get(id)
		if !ok {
			return nil
		}
		_, err := s.plug(ctx, server)
		return err
	})
	return s.ended(ctx, op, err, id)
}

// ended waits for the end of work on a server, and returns its result.
func (s *Service) ended(ctx context.Context, op *operation, err error, id string) error {
	if err != nil {
		return err
	}
	select {
	case <-op.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if server, ok := s.servers.Get(id); ok && server.Status == StatusError {
		return fmt.Errorf("server %s: %s", id, server.Fault)
	}
	return nil
}
