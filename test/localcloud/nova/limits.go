package nova

import (
	"net/http"
	"strings"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/test/localcloud/answer"
)

func (s *Service) listZones(w http.ResponseWriter, r *http.Request) error {
	var hosts any
	if strings.HasSuffix(r.URL.Path, "/detail") {
		if !identity.From(r.Context()).Admin {
			return fault.New(fault.Forbidden, "Policy doesn't allow os_compute_api:os-availability-zone:detail to be performed.")
		}
		hosts = map[string]any{"localhost": map[string]any{
			"nova-compute": map[string]any{"available": true, "active": true, "updated_at": nil},
		}}
	}
	var zones []any
	for _, zone := range s.zones {
		zones = append(zones, map[string]any{"zoneName": zone, "zoneState": map[string]any{"available": true}, "hosts": hosts})
	}
	answer.JSON(w, http.StatusOK, map[string]any{"availabilityZoneInfo": zones})
	return nil
}
