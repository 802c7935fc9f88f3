package nova

import (
	"cmp"
	"encoding/json"
	"net/http"

	"github.com/google/uuid"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/test/localcloud/answer"
)

// rescueServer starts a server from a fresh disk, of the image that is named or else of its own, from which its disk can be mended.
func (s *Service) rescueServer(w http.ResponseWriter, r *http.Request, server Server, argument json.RawMessage) error {
	var wanted struct {
		Password string `json:"adminPass"`
		ImageRef string `json:"rescue_image_ref"`
	}
	if err := json.Unmarshal(argument, &wanted); err != nil {
		return fault.New(fault.Invalid, "Invalid input for field/attribute rescue: it is an object with a rescue_image_ref, or null.")
	}
	if server.ImageID == "" { // Nova's answer before its microversion 2.87
		return fault.New(fault.Invalid, "Instance %s cannot be rescued: Cannot rescue a volume-backed instance", server.ID)
	}
	imageID := server.ImageID
	if wanted.ImageRef != "" {
		image, err := s.images.Find(r.Context(), server.ProjectID, lastPart(wanted.ImageRef))
		if err != nil {
			return fault.New(fault.Invalid, "%w", err)
		}
		imageID = image.ID
	}
	if _, err := s.beginWith(server.ID, taskRescue, runs, func(row *Server) { row.RescueImageID = imageID }, s.reboot); err != nil {
		return err
	}
	answer.JSON(w, http.StatusOK, map[string]any{"adminPass": cmp.Or(wanted.Password, uuid.NewString()[:12])})
	return nil
}

// unrescue starts a rescued server from its own disk again.
func (s *Service) unrescue(id string) error {
	rescued := func(row Server) bool { return row.Status == StatusRescue }
	_, err := s.beginWith(id, taskUnrescue, rescued, func(row *Server) { row.RescueImageID = "" }, s.reboot)
	return err
}
