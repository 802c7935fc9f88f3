package nova

import (
	"net/http"
	"slices"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/test/localcloud/answer"
)

// This file is how users change servers that run.

func (s *Service) renameServer(w http.ResponseWriter, r *http.Request) error {
	server, err := s.visible(r)
	if err != nil {
		return err
	}
	var wanted struct {
		Server struct {
			Name *string `json:"name"`
		} `json:"server"`
	}
	if err := readJSON(r, &wanted); err != nil {
		return err
	}
	name := server.Name
	if wanted.Server.Name != nil {
		name = *wanted.Server.Name
	}
	return s.changed(w, r, server, name, server.Metadata)
}

func (s *Service) changed(w http.ResponseWriter, r *http.Request, server Server, name string, metadata map[string]string) error {
	if err := s.Rename(r.Context(), server.ProjectID, server.ID, name, metadata); err != nil {
		return err
	}
	server, err := s.Get(r.Context(), server.ProjectID, server.ID)
	if err != nil {
		return err
	}
	answer.JSON(w, http.StatusOK, map[string]any{"server": s.serverBody(r.Context(), server)})
	return nil
}

// replaceMetadata gives a server these metadata and no others.
func (s *Service) replaceMetadata(w http.ResponseWriter, r *http.Request) error {
	server, err := s.visible(r)
	if err != nil {
		return err
	}
	var wanted struct {
		Metadata map[string]string `json:"metadata"`
	}
	if err := readJSON(r, &wanted); err != nil {
		return err
	}
	if err := s.Rename(r.Context(), server.ProjectID, server.ID, server.Name, wanted.Metadata); err != nil {
		return err
	}
	answer.JSON(w, http.StatusOK, map[string]any{"metadata": wanted.Metadata})
	return nil
}

// plugged are the ports that a server was given, and the networks in which Nova has made it some.
func plugged(server Server) (ports, networks []string) {
	for _, in := range server.Interfaces {
		if in.Own {
			networks = append(networks, in.NetworkID)
		} else {
			ports = append(ports, in.PortID)
		}
	}
	return ports, networks
}

func (s *Service) attachInterface(w http.ResponseWriter, r *http.Request) error {
	server, err := s.visible(r)
	if err != nil {
		return err
	}
	var wanted struct {
		Interface struct {
			Port    string `json:"port_id"`
			Network string `json:"net_id"`
		} `json:"interfaceAttachment"`
	}
	if err := readJSON(r, &wanted); err != nil {
		return err
	}
	ports, networks := plugged(server)
	switch {
	case wanted.Interface.Port != "":
		ports = append(ports, wanted.Interface.Port)
	case wanted.Interface.Network != "":
		networks = append(networks, wanted.Interface.Network)
	default:
		return fault.New(fault.Invalid, "Invalid input for field/attribute interfaceAttachment: the local cloud wants a port_id or a net_id.")
	}
	if err := s.Replug(r.Context(), server.ProjectID, server.ID, ports, networks); err != nil {
		return err
	}
	answer.JSON(w, http.StatusOK, map[string]any{"interfaceAttachment": map[string]any{"port_id": wanted.Interface.Port, "net_id": wanted.Interface.Network}})
	return nil
}

func (s *Service) detachInterface(w http.ResponseWriter, r *http.Request) error {
	server, err := s.visible(r)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(server.Interfaces, func(in Interface) bool { return in.PortID == r.PathValue("port") })
	if i < 0 {
		return fault.New(fault.NotFound, "Port %s is not attached to server %s.", r.PathValue("port"), server.ID)
	}
	server.Interfaces = slices.Delete(slices.Clone(server.Interfaces), i, i+1)
	ports, networks := plugged(server)
	if err := s.Replug(r.Context(), server.ProjectID, server.ID, ports, networks); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}
