package neutron

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"time"
)

// ServeMetadata lets servers send requests to http://169.254.169.254, through the router of their network, as Neutron's metadata agent does. The server is
// identified by its source address: a port's own, not one of its address pairs. The function returns the handler for the server with this id. Call it
// before Restore.
func (s *Service) ServeMetadata(tell func(serverID string) http.Handler) { s.metadata = tell }

// listenMetadata makes a router answer. The caller holds the router's lock.
func (s *Service) listenMetadata(routerID string) error {
	if s.metadata == nil {
		return nil
	}
	if _, listens := s.metadataServers.Load(routerID); listens {
		return nil
	}
	listener, err := s.fabric.ListenMetadata(routerID)
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serverID, ok := s.serverAt(routerID, r.RemoteAddr)
		if !ok {
			http.Error(w, "404 Not Found: no server has the address that asks", http.StatusNotFound)
			return
		}
		s.metadata(serverID).ServeHTTP(w, r)
	})}
	s.metadataServers.Store(routerID, server)
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.logger.Error("the metadata service of a router ended", "router", routerID, "error", err)
		}
	}()
	return nil
}

// closeMetadata ends a router's answering.
func (s *Service) closeMetadata(routerID string) error {
	server, listens := s.metadataServers.LoadAndDelete(routerID)
	if !listens {
		return nil
	}
	return server.(*http.Server).Close()
}

// Close ends the listeners for servers. Networks stay as they are.
func (s *Service) Close() error {
	var problems error
	s.metadataServers.Range(func(id, _ any) bool {
		problems = errors.Join(problems, s.closeMetadata(id.(string)))
		return true
	})
	return problems
}

// serverAt finds the server that has an address in one of a router's networks.
func (s *Service) serverAt(routerID, remote string) (serverID string, ok bool) {
	from, err := netip.ParseAddrPort(remote)
	if err != nil {
		return "", false
	}
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	var networks []string
	for _, port := range s.interfacePorts(routerID) {
		networks = append(networks, port.NetworkID)
	}
	for _, port := range s.ports.All() {
		if port.DeviceOwner == ownerServer && slices.Contains(networks, port.NetworkID) && port.has(from.Addr().Unmap()) {
			return port.DeviceID, true
		}
	}
	return "", false
}

// DescribePort returns the configuration of a port for its server.
func (s *Service) DescribePort(_ context.Context, portID string) (Interface, error) {
	port, ok := s.ports.Get(portID)
	if !ok {
		return Interface{}, notFound("Port", "Port", portID)
	}
	return s.describe(port), nil
}
