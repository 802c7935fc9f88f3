package nova

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/test/localcloud/answer"
)

// computeID is the id of the one compute service.
const computeID = "6f2a2f0e-5c8b-4f0e-9a39-3c1f6f0f5a01"

// compute is the service that makes servers, as far as an admin changes it. Disabled, it takes no new servers, which then find no host. Forced down, it
// simulates a dead one: its work stays undone until it is up again.
type compute struct {
	Disabled   bool
	Reason     string // of the disabling
	ForcedDown bool
	UpdatedAt  time.Time
}

func (s *Service) computeBody(ctx context.Context) map[string]any {
	c, _ := s.computes.Get(computeID)
	status, state := "enabled", "up"
	if c.Disabled {
		status = "disabled"
	}
	if c.ForcedDown {
		state = "down"
	}
	body := map[string]any{
		"id": any(1), "binary": "nova-compute", "host": "localhost", "zone": s.zones[0], "status": status, "state": state, "disabled_reason": nil, "updated_at": nil,
	}
	if since(ctx, 53) {
		body["id"] = computeID
	}
	if since(ctx, 11) {
		body["forced_down"] = c.ForcedDown
	}
	if c.Reason != "" {
		body["disabled_reason"] = c.Reason
	}
	if !c.UpdatedAt.IsZero() {
		body["updated_at"] = c.UpdatedAt.UTC().Format("2006-01-02T15:04:05.000000")
	}
	return body
}

func (s *Service) listServices(w http.ResponseWriter, r *http.Request) error {
	if !identity.From(r.Context()).Admin {
		return fault.New(fault.Forbidden, "Policy doesn't allow os_compute_api:os-services:list to be performed.")
	}
	answer.JSON(w, http.StatusOK, map[string]any{"services": []any{s.computeBody(r.Context())}})
	return nil
}

// updateService is that of microversion 2.53 and later.
func (s *Service) updateService(w http.ResponseWriter, r *http.Request) error {
	if !identity.From(r.Context()).Admin {
		return fault.New(fault.Forbidden, "Policy doesn't allow os_compute_api:os-services:update to be performed.")
	}
	if id := r.PathValue("id"); id != computeID || !since(r.Context(), 53) {
		return fault.New(fault.NotFound, "Service %s not found.", id)
	}
	var request struct {
		Status     string `json:"status"`
		Reason     string `json:"disabled_reason"`
		ForcedDown *bool  `json:"forced_down"`
	}
	if err := readJSON(r, &request); err != nil {
		return err
	}
	if request.Status == "" && request.ForcedDown == nil || request.Status != "" && request.Status != "enabled" && request.Status != "disabled" {
		return fault.New(fault.Invalid, "Invalid input for field/attribute service: it has a status (enabled or disabled), or forced_down, or both.")
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	c, _ := s.computes.Get(computeID)
	if request.Status != "" {
		c.Disabled, c.Reason = request.Status == "disabled", request.Reason
	}
	if request.ForcedDown != nil {
		c.ForcedDown = *request.ForcedDown
	}
	c.UpdatedAt = s.now()
	if err := s.computes.Put(computeID, c); err != nil {
		return err
	}
	close(s.computeChanged)
	s.computeChanged = make(chan struct{})
	answer.JSON(w, http.StatusOK, map[string]any{"service": s.computeBody(r.Context())})
	return nil
}

// scheduled returns when the compute service does a server's work; a new server finds no host when it is disabled.
func (s *Service) scheduled(ctx context.Context, server Server) error {
	for {
		s.mutex.Lock()
		c, _ := s.computes.Get(computeID)
		changed := s.computeChanged
		s.mutex.Unlock()
		switch {
		case server.LaunchedAt.IsZero() && (c.Disabled || s.keptApart(server)):
			return noHost
		case !c.ForcedDown:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for the compute service: %w", ctx.Err())
		}
	}
}

// noHost is the fault of a server for which there is no place.
var noHost = answer.Failure{Status: http.StatusInternalServerError, Message: "No valid host was found. There are not enough hosts available."}
