package nova

import (
	"context"
	"encoding/json"

	"github.com/burano/burano/internal/fault"
)

// size is a server's state before its resize.
type size struct{ FlavorID, Status string }

// up reports whether a server should run.
func (s Server) up() bool {
	return s.Status == StatusActive || s.Status == StatusRescue || s.Status == StatusResized && s.Before.Status == StatusActive
}

// beginResize gives a server another flavor, which its owner confirms or reverts.
func (s *Service) beginResize(server Server, argument json.RawMessage) error {
	var wanted struct {
		FlavorRef string `json:"flavorRef"`
	}
	if err := json.Unmarshal(argument, &wanted); err != nil || wanted.FlavorRef == "" {
		return fault.New(fault.Invalid, "Invalid input for field/attribute resize: it is an object with a flavorRef.")
	}
	flavor, ok := s.findFlavor(lastPart(wanted.FlavorRef))
	if !ok {
		return fault.New(fault.Invalid, "Flavor %s could not be found.", wanted.FlavorRef)
	}
	if flavor.ID == server.FlavorID {
		return fault.New(fault.Invalid, "When resizing, instances must change flavor!")
	}
	stands := func(row Server) bool { return row.Status == StatusActive || row.Status == StatusShutoff }
	_, err := s.beginWith(server.ID, taskResize, stands, func(row *Server) {
		row.Before = &size{row.FlavorID, row.Status}
		row.FlavorID = flavor.ID
	}, s.resize)
	return err
}

// resize starts a server anew in the size that it is to have; one that was off stays off, and has it when it is started.
func (s *Service) resize(ctx context.Context, id string) error {
	if server, ok := s.servers.Get(id); ok && server.Before != nil && server.Before.Status == StatusShutoff {
		return nil
	}
	return s.reboot(ctx, id)
}

func resized(row Server) bool { return row.Status == StatusResized }

// confirmResize has a server keep its new size.
func (s *Service) confirmResize(id string) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var refused error
	_, err := s.servers.Update(id, func(row *Server) {
		if row.Task != taskNone || !resized(*row) {
			refused = fault.New(fault.Conflict, "Cannot 'confirmResize' instance %s while it is in vm_state %s", id, vmStates[row.Status])
			return
		}
		row.Status, row.Before, row.UpdatedAt = row.Before.Status, nil, s.now()
	})
	if err != nil {
		return err
	}
	return refused
}

// revertResize gives a server the size back that it had.
func (s *Service) revertResize(id string) error {
	_, err := s.beginWith(id, taskRevert, resized, func(row *Server) { row.FlavorID = row.Before.FlavorID }, s.resize)
	return err
}
