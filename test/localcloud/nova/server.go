package nova

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/test/localcloud/answer"
)

// The statuses of a server.
const (
	StatusBuild   = "BUILD"
	StatusActive  = "ACTIVE"
	StatusShutoff = "SHUTOFF"
	StatusError   = "ERROR"
	StatusRescue  = "RESCUE"
	StatusResized = "VERIFY_RESIZE"
)

// task is the present work on a server. It is stored before the work begins, so that the work continues after a restart.
type task string

const (
	taskNone     task = ""
	taskSpawn    task = "spawning"
	taskStart    task = "powering-on"
	taskStop     task = "powering-off"
	taskReboot   task = "rebooting"
	taskRebuild  task = "rebuilding"
	taskResize   task = "resize_migrating"
	taskRevert   task = "resize_reverting"
	taskReplug   task = "attaching"
	taskVolumes  task = "attaching_volumes"
	taskRescue   task = "rescuing"
	taskUnrescue task = "unrescuing"
	taskDelete   task = "deleting"
)

// Server is the record of a server.
type Server struct {
	ID, ProjectID, UserID, Name string
	Status                      string // BUILD, ACTIVE, SHUTOFF, ERROR, RESCUE or VERIFY_RESIZE
	Task                        task
	Fault                       string // why it is in ERROR
	FaultAt                     time.Time
	Hostname                    string
	FlavorID, ImageID           string
	RescueImageID               string // the image that it runs from while it is rescued
	Before                      *size  // its former size, until its resize is confirmed or reverted
	KeyName, PublicKey          string
	UserData                    []byte
	Metadata                    map[string]string
	Interfaces                  []Interface // in the order of eth0, eth1, …
	Volumes                     []VolumeAttachment
	SecurityGroups              []string // as named when it was made
	AvailabilityZone            string
	GroupID                     string // of the server group that it was made in, "" for none
	CreatedAt, UpdatedAt        time.Time
	LaunchedAt                  time.Time // when its disk was made: at first, or by a rebuild; zero before it was first up
}

// Interface is a server's place on a network.
type Interface struct {
	PortID    string
	NetworkID string
	FixedIP   string // wanted address of a port that Nova makes, "" for any
	Own       bool   // Nova makes the port, and it goes with the server
}

// Get returns a server of the project ("" for any), with its status as the hypervisor sees it.
func (s *Service) Get(ctx context.Context, projectID, id string) (Server, error) {
	server, ok := s.servers.Get(id)
	if !ok || (projectID != "" && server.ProjectID != projectID) {
		return Server{}, noServer(id)
	}
	return s.look(ctx, server), nil
}

// Rename gives a server another name and other metadata; its host name stays.
func (s *Service) Rename(ctx context.Context, projectID, id, name string, metadata map[string]string) error {
	if _, err := s.Get(ctx, projectID, id); err != nil {
		return err
	}
	_, err := s.servers.Update(id, func(row *Server) { row.Name, row.Metadata, row.UpdatedAt = name, metadata, s.now() })
	return err
}

// Servers lists the servers of a project ("" for all), oldest first.
func (s *Service) Servers(ctx context.Context, projectID string) []Server {
	var found []Server
	for _, server := range s.servers.All() {
		if projectID == "" || server.ProjectID == projectID {
			found = append(found, s.look(ctx, server))
		}
	}
	return found
}

// Show is a server as the API answers it.
func (s *Service) Show(ctx context.Context, server Server) map[string]any {
	return s.serverBody(ctx, server)
}

func noServer(id string) error {
	return fault.New(fault.NotFound, "Instance %s could not be found.", id)
}

// look notes that a server has stopped by itself.
func (s *Service) look(ctx context.Context, server Server) Server {
	if server.Status != StatusActive || server.Task != taskNone {
		return server
	}
	seen, err := s.hypervisor.State(ctx, server.ID)
	if err != nil {
		s.log.WarnContext(ctx, "the state of a server is not known", "server", server.ID, "error", err)
		return server
	}
	if seen == running {
		return server
	}
	_, err = s.servers.Update(server.ID, func(row *Server) {
		if row.Status == StatusActive && row.Task == taskNone {
			row.Status, row.UpdatedAt = StatusShutoff, s.now()
		}
		server = *row
	})
	if err != nil {
		s.log.ErrorContext(ctx, "the state of a server was not stored", "server", server.ID, "error", err)
	}
	return server
}

// visible returns the server of the request's path, if the caller may see it.
func (s *Service) visible(r *http.Request) (Server, error) {
	caller := identity.From(r.Context())
	projectID := caller.ProjectID
	if caller.Admin {
		projectID = ""
	}
	return s.Get(r.Context(), projectID, r.PathValue("id"))
}

func (s *Service) listServers(w http.ResponseWriter, r *http.Request) error {
	query, caller := r.URL.Query(), identity.From(r.Context())
	everywhere := caller.Admin && slices.Contains([]string{"1", "true", "True"}, query.Get("all_tenants"))
	name, err := regexp.Compile(query.Get("name"))
	if err != nil {
		return fault.New(fault.Invalid, "Invalid filter name: %w", err)
	}
	limit := 1000
	if text := query.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 0 {
			return fault.New(fault.Invalid, "Invalid input for query parameters limit. Value: %s. A limit is a number that is not negative.", text)
		}
		limit = min(limit, 1000)
	}
	projectID, status := caller.ProjectID, query.Get("status")
	if everywhere {
		projectID = ""
	}
	var found []Server
	for _, server := range slices.Backward(s.Servers(r.Context(), projectID)) { // newest first
		if name.MatchString(server.Name) && (status == "" || strings.EqualFold(status, server.Status)) {
			found = append(found, server)
		}
	}
	if marker := query.Get("marker"); marker != "" {
		i := slices.IndexFunc(found, func(server Server) bool { return server.ID == marker })
		if i < 0 {
			return fault.New(fault.Invalid, "marker [%s] not found", marker)
		}
		found = found[i+1:]
	}
	body := map[string]any{}
	if limit > 0 && len(found) > limit {
		query.Set("marker", found[limit-1].ID)
		body["servers_links"] = []map[string]any{{"rel": "next", "href": s.endpoint + "/compute" + r.URL.Path + "?" + query.Encode()}}
	}
	bodies := []any{}
	for _, server := range found[:min(limit, len(found))] {
		if strings.HasSuffix(r.URL.Path, "/detail") {
			bodies = append(bodies, s.serverBody(r.Context(), server))
		} else {
			bodies = append(bodies, map[string]any{"id": server.ID, "name": server.Name, "links": s.links("servers", server.ID)})
		}
	}
	body["servers"] = bodies
	answer.JSON(w, http.StatusOK, body)
	return nil
}

func (s *Service) showServer(w http.ResponseWriter, r *http.Request) error {
	server, err := s.visible(r)
	if err != nil {
		return err
	}
	answer.JSON(w, http.StatusOK, map[string]any{"server": s.serverBody(r.Context(), server)})
	return nil
}

// Nova's names and numbers for the states under a status.
var vmStates = map[string]string{StatusBuild: "building", StatusActive: "active", StatusShutoff: "stopped", StatusError: "error", StatusRescue: "rescued", StatusResized: "resized"}
var powerStates = map[string]int{StatusBuild: 0, StatusActive: 1, StatusShutoff: 4, StatusError: 0, StatusRescue: 1, StatusResized: 1}

// imageOf is the image of a server: an empty text when it runs from a volume.
func (s *Service) imageOf(server Server) any {
	if server.ImageID == "" {
		return ""
	}
	return map[string]any{"id": server.ImageID, "links": s.links("images", server.ImageID)[1:]}
}

func (s *Service) serverBody(ctx context.Context, server Server) map[string]any {
	status := server.Status
	if server.Task == taskReboot {
		status = "REBOOT"
	}
	if server.Task == taskRebuild {
		status = "REBUILD"
	}
	if server.Task == taskResize {
		status = "RESIZE"
	}
	if server.Task == taskRevert {
		status = "REVERT_RESIZE"
	}
	metadata := server.Metadata
	if metadata == nil {
		metadata = map[string]string{}
	}
	attached := []any{}
	for _, volume := range server.Volumes {
		attached = append(attached, map[string]any{"id": volume.VolumeID, "delete_on_termination": volume.DeleteOnTermination})
	}
	body := map[string]any{
		"id": server.ID, "name": server.Name, "status": status, "tenant_id": server.ProjectID, "user_id": server.UserID,
		"created": timestamp(server.CreatedAt), "updated": timestamp(server.UpdatedAt), "hostId": "", "metadata": metadata,
		"image":     s.imageOf(server),
		"flavor":    s.flavorOf(ctx, server),
		"addresses": s.addresses(server.ID), "accessIPv4": "", "accessIPv6": "", "links": s.links("servers", server.ID),
		"key_name": nil, "config_drive": "True", "OS-DCF:diskConfig": "MANUAL", "OS-EXT-AZ:availability_zone": server.AvailabilityZone,
		"OS-EXT-STS:task_state": nil, "OS-EXT-STS:vm_state": vmStates[server.Status], "OS-EXT-STS:power_state": powerStates[server.Status],
		"OS-SRV-USG:launched_at": nil, "OS-SRV-USG:terminated_at": nil, "os-extended-volumes:volumes_attached": attached,
	}
	if server.Status == StatusActive || server.Status == StatusBuild {
		body["progress"] = 0
	}
	if server.Task != taskNone {
		body["OS-EXT-STS:task_state"] = string(server.Task)
	}
	if server.KeyName != "" {
		body["key_name"] = server.KeyName
	}
	if !server.LaunchedAt.IsZero() {
		body["OS-SRV-USG:launched_at"] = server.LaunchedAt.UTC().Format("2006-01-02T15:04:05.000000")
		body["hostId"] = hostID(server.ProjectID)
	}
	if len(server.SecurityGroups) > 0 {
		groups := []any{}
		for _, name := range server.SecurityGroups {
			groups = append(groups, map[string]any{"name": name})
		}
		body["security_groups"] = groups
	}
	if server.Fault != "" && server.Status == StatusError {
		body["fault"] = map[string]any{
			"code": http.StatusInternalServerError, "message": server.Fault, "created": timestamp(server.FaultAt),
		}
	}
	s.addByMicroversion(ctx, server, body)
	return body
}

// addByMicroversion adds the fields of later versions of the API and of admins.
func (s *Service) addByMicroversion(ctx context.Context, server Server, body map[string]any) {
	if identity.From(ctx).Admin {
		body["OS-EXT-SRV-ATTR:host"], body["OS-EXT-SRV-ATTR:hypervisor_hostname"] = "localhost", "localhost"
		body["OS-EXT-SRV-ATTR:instance_name"] = "instance-" + server.ID[:8]
		if since(ctx, 3) {
			body["OS-EXT-SRV-ATTR:hostname"] = server.Hostname
		}
	}
	if since(ctx, 9) {
		body["locked"] = false
	}
	if since(ctx, 19) {
		body["description"] = nil
	}
	if since(ctx, 26) {
		body["tags"] = []string{}
	}
	if since(ctx, 63) {
		body["trusted_image_certificates"] = nil
	}
	if since(ctx, 71) {
		body["server_groups"] = []string{}
	}
	if since(ctx, 73) {
		body["locked_reason"] = nil
	}
	if since(ctx, 90) {
		body["OS-EXT-SRV-ATTR:hostname"] = server.Hostname
	}
}

func (s *Service) flavorOf(ctx context.Context, server Server) map[string]any {
	if !since(ctx, 47) {
		return map[string]any{"id": server.FlavorID, "links": s.links("flavors", server.FlavorID)[1:]}
	}
	flavor := s.flavorOfServer(server)
	return map[string]any{
		"original_name": flavor.Name, "vcpus": flavor.VCPUs, "ram": flavor.MemoryMiB, "disk": flavor.DiskGB, "ephemeral": 0, "swap": 0,
		"extra_specs": map[string]any{},
	}
}

func (s *Service) addresses(id string) map[string][]any {
	byNetwork := map[string][]any{}
	for _, a := range s.networks.ServerAddresses(id) {
		version := 4
		if a.IP.Is6() {
			version = 6
		}
		byNetwork[a.Network] = append(byNetwork[a.Network], map[string]any{
			"version": version, "addr": a.IP.String(), "OS-EXT-IPS:type": a.Type, "OS-EXT-IPS-MAC:mac_addr": a.MAC,
		})
	}
	return byNetwork
}

func (s *Service) deleteServer(w http.ResponseWriter, r *http.Request) error {
	server, err := s.visible(r)
	if err != nil {
		return err
	}
	if _, err := s.beginDelete(server.ID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
