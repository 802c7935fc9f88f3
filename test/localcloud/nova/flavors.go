package nova

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/test/localcloud/answer"
)

// Flavor is a size of server.
type Flavor struct {
	ID, Name  string
	VCPUs     int
	MemoryMiB int
	DiskGB    int
	Deleted   bool // it stays for its servers
}

// Flavors are the sizes that the local cloud has, with the ids that OpenStack's own installers give them.
func Flavors() []Flavor {
	return []Flavor{
		{ID: "2", Name: "m1.small", VCPUs: 1, MemoryMiB: 1024, DiskGB: 10},
		{ID: "3", Name: "m1.medium", VCPUs: 2, MemoryMiB: 2048, DiskGB: 20},
		{ID: "4", Name: "m1.large", VCPUs: 2, MemoryMiB: 4096, DiskGB: 40},
	}
}

// allFlavors are the cloud's own flavors, then the flavors of admins.
func (s *Service) allFlavors() []Flavor {
	return slices.DeleteFunc(append(Flavors(), s.flavors.All()...), func(f Flavor) bool { return f.Deleted })
}

// findFlavor returns the flavor with this id or name.
func (s *Service) findFlavor(ref string) (Flavor, bool) {
	for _, f := range s.allFlavors() {
		if f.ID == ref || f.Name == ref {
			return f, true
		}
	}
	return Flavor{}, false
}

// flavorOfServer returns the flavor that a server was made with, also after the flavor's deletion.
func (s *Service) flavorOfServer(server Server) Flavor {
	for _, f := range append(Flavors(), s.flavors.All()...) {
		if f.ID == server.FlavorID {
			return f
		}
	}
	return Flavor{}
}

func (s *Service) flavorBody(ctx context.Context, f Flavor) map[string]any {
	body := map[string]any{
		"id": f.ID, "name": f.Name, "vcpus": f.VCPUs, "ram": f.MemoryMiB, "disk": f.DiskGB, "swap": "", "rxtx_factor": 1.0,
		"os-flavor-access:is_public": true, "OS-FLV-DISABLED:disabled": false, "OS-FLV-EXT-DATA:ephemeral": 0,
		"links": s.links("flavors", f.ID),
	}
	if since(ctx, 55) {
		body["description"] = nil
	}
	if since(ctx, 61) {
		body["extra_specs"] = map[string]any{}
	}
	if since(ctx, 75) {
		body["swap"] = 0
	}
	return body
}

func (s *Service) listFlavors(w http.ResponseWriter, r *http.Request) error {
	bodies := []any{}
	for _, f := range s.allFlavors() {
		if strings.HasSuffix(r.URL.Path, "/detail") {
			bodies = append(bodies, s.flavorBody(r.Context(), f))
		} else {
			bodies = append(bodies, map[string]any{"id": f.ID, "name": f.Name, "links": s.links("flavors", f.ID)})
		}
	}
	answer.JSON(w, http.StatusOK, map[string]any{"flavors": bodies})
	return nil
}

func (s *Service) showFlavor(w http.ResponseWriter, r *http.Request) error {
	if f, ok := s.findFlavor(r.PathValue("id")); ok && f.ID == r.PathValue("id") {
		answer.JSON(w, http.StatusOK, map[string]any{"flavor": s.flavorBody(r.Context(), f)})
		return nil
	}
	return fault.New(fault.NotFound, "Flavor %s could not be found.", r.PathValue("id"))
}

func (s *Service) showExtraSpecs(w http.ResponseWriter, _ *http.Request) error {
	answer.JSON(w, http.StatusOK, map[string]any{"extra_specs": map[string]any{}})
	return nil
}

func (s *Service) createFlavor(w http.ResponseWriter, r *http.Request) error {
	if !identity.From(r.Context()).Admin {
		return fault.New(fault.Forbidden, "Policy doesn't allow os_compute_api:os-flavor-manage:create to be performed.")
	}
	var body struct {
		Flavor struct {
			ID    string `json:"id"`
			Name  string `json:"name"`
			VCPUs int    `json:"vcpus"`
			RAM   int    `json:"ram"`
			Disk  int    `json:"disk"`
		} `json:"flavor"`
	}
	if err := readJSON(r, &body); err != nil {
		return err
	}
	wanted := body.Flavor
	if wanted.Name == "" || wanted.VCPUs < 1 || wanted.RAM < 1 || wanted.Disk < 0 {
		return fault.New(fault.Invalid, "Invalid input for field/attribute flavor: it has a name, at least 1 of vcpus and ram, and a disk.")
	}
	if wanted.ID == "" || wanted.ID == "auto" {
		wanted.ID = uuid.NewString()
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, taken := range []string{wanted.ID, wanted.Name} {
		if _, ok := s.findFlavor(taken); ok {
			return fault.New(fault.Conflict, "Flavor with name or ID %s already exists.", taken)
		}
	}
	made := Flavor{ID: wanted.ID, Name: wanted.Name, VCPUs: wanted.VCPUs, MemoryMiB: wanted.RAM, DiskGB: wanted.Disk}
	if err := s.flavors.Put(made.ID, made); err != nil {
		return err
	}
	answer.JSON(w, http.StatusOK, map[string]any{"flavor": s.flavorBody(r.Context(), made)})
	return nil
}

// deleteFlavor deletes a flavor that an admin has made; the cloud's own stay.
func (s *Service) deleteFlavor(w http.ResponseWriter, r *http.Request) error {
	if !identity.From(r.Context()).Admin {
		return fault.New(fault.Forbidden, "Policy doesn't allow os_compute_api:os-flavor-manage:delete to be performed.")
	}
	id := r.PathValue("id")
	there := false
	_, err := s.flavors.Update(id, func(f *Flavor) { there, f.Deleted = !f.Deleted, true })
	switch {
	case err != nil:
		return err
	case !there:
		return fault.New(fault.NotFound, "Flavor %s could not be found, or belongs to the local cloud itself.", id)
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}
