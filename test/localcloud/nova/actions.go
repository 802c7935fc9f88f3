package nova

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/test/localcloud/answer"
)

// act performs POST /servers/{id}/action: an object whose one key is the action's name.
func (s *Service) act(w http.ResponseWriter, r *http.Request) error {
	server, err := s.visible(r)
	if err != nil {
		return err
	}
	var request map[string]json.RawMessage
	if err := readJSON(r, &request); err != nil {
		return err
	}
	if len(request) != 1 {
		return fault.New(fault.Invalid, "There is no such action: an action's body has one key, its name.")
	}
	for name, argument := range request {
		switch name {
		case "os-start":
			err = s.begin(server.ID, taskStart, func(row Server) bool { return row.Status == StatusShutoff }, s.boot)
		case "os-stop":
			err = s.begin(server.ID, taskStop, func(row Server) bool { return row.Status == StatusActive || row.Status == StatusError }, s.powerOff)
		case "reboot":
			err = s.begin(server.ID, taskReboot, func(row Server) bool { return runs(row) || row.Status == StatusRescue }, s.reboot)
		case "rescue":
			return s.rescueServer(w, r, server, argument)
		case "unrescue":
			err = s.unrescue(server.ID)
		case "resize":
			err = s.beginResize(server, argument)
		case "confirmResize":
			if err := s.confirmResize(server.ID); err != nil {
				return err
			}
			w.WriteHeader(http.StatusNoContent)
			return nil
		case "revertResize":
			err = s.revertResize(server.ID)
		case "rebuild":
			return s.rebuildServer(w, r, server, argument)
		case "os-getConsoleOutput":
			return s.consoleOutput(w, r, server, argument)
		default:
			err = fault.New(fault.Invalid, "There is no such action: %s. The local cloud knows os-start, os-stop, reboot, rebuild, "+
				"rescue, unrescue, resize, confirmResize, revertResize and os-getConsoleOutput.", name)
		}
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

func (s *Service) rebuildServer(w http.ResponseWriter, r *http.Request, server Server, argument json.RawMessage) error {
	var wanted struct {
		ImageRef string `json:"imageRef"`
	}
	if err := json.Unmarshal(argument, &wanted); err != nil {
		return fault.New(fault.Invalid, "Invalid input for field/attribute rebuild: it is an object with an imageRef.")
	}
	if server.ImageID == "" {
		return cannotRebuild
	}
	if image := lastPart(wanted.ImageRef); image != server.ImageID {
		return fault.New(fault.Invalid, "The local cloud rebuilds a server from the image that it was made from, %s, and not from %s.", server.ImageID, image)
	}
	if err := s.begin(server.ID, taskRebuild, runs, s.rebuild); err != nil {
		return err
	}
	server, err := s.Get(r.Context(), server.ProjectID, server.ID)
	if err != nil {
		return err
	}
	answer.JSON(w, http.StatusAccepted, map[string]any{"server": s.serverBody(r.Context(), server)})
	return nil
}

func (s *Service) consoleOutput(w http.ResponseWriter, r *http.Request, server Server, argument json.RawMessage) error {
	var wanted struct {
		Length any `json:"length"` // a number, or one in a text
	}
	lines := 0 // all
	if err := json.Unmarshal(argument, &wanted); err == nil && wanted.Length != nil {
		if lines, err = strconv.Atoi(fmt.Sprint(wanted.Length)); err != nil {
			return fault.New(fault.Invalid, "Invalid input for field/attribute length. Value: %v. It is a number of lines.", wanted.Length)
		}
	}
	text, err := s.hypervisor.ConsoleLog(r.Context(), server.ID, max(lines, 0))
	if err != nil {
		return fmt.Errorf("read the console of server %s: %w", server.ID, err)
	}
	answer.JSON(w, http.StatusOK, map[string]any{"output": text})
	return nil
}
