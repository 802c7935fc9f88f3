package nova

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/test/localcloud/answer"
	"github.com/burano/burano/test/localcloud/glance"
)

const maxUserData = 65535 // characters of base64, Nova's limit

// CreateServer describes a new server. Flavor and image may be given by id or name.
type CreateServer struct {
	Name, FlavorID, ImageID, KeyName string
	UserID                           string // whose key pair KeyName is; the caller of the context when ""
	UserData                         []byte
	Metadata                         map[string]string
	Ports                            []string // ids of ports that are there
	Networks                         []string // ids of networks in which Nova makes a port each, after the ports
	SecurityGroups                   []string // names or ids, for the ports that Nova makes
	AvailabilityZone                 string
	GroupID                          string             // of a server group, "" for none
	Volumes                          []VolumeAttachment // without a device: the next one that is free

	interfaces []Interface // in place of Ports and Networks, when their order matters
	noNetwork  bool        // no interface at all is wanted
}

// Create accepts a server and returns at once, with the server in BUILD; the rest continues in the background, also after a restart of the process. An
// unacceptable request is a fault.
func (s *Service) Create(ctx context.Context, projectID string, request CreateServer) (Server, error) {
	server, err := s.accept(ctx, projectID, request)
	if err != nil {
		return Server{}, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err := errors.Join(s.checkQuota(server), s.checkGroup(server)); err != nil {
		return Server{}, err
	}
	for _, volume := range request.Volumes {
		if volume.Boots {
			volume.Device = rootDevice
		} else {
			volume.Device, err = freeDevice(server, volume.Device)
		}
		if err == nil {
			err = s.volumes.Attach(projectID, volume.VolumeID, server.ID, volume.Device)
		}
		if err != nil {
			return Server{}, errors.Join(err, s.volumes.Keep(server.ID, nil))
		}
		server.Volumes = append(server.Volumes, volume)
	}
	if err := s.servers.Put(server.ID, server); err != nil {
		return Server{}, err
	}
	s.run(server.ID, server.Task, s.boot)
	return server, nil
}

func (s *Service) accept(ctx context.Context, projectID string, request CreateServer) (Server, error) {
	if request.Name == "" || len(request.Name) > 255 {
		return Server{}, fault.New(fault.Invalid, "Invalid input for field/attribute name. Value: %s. A name has 1 to 255 characters.", request.Name)
	}
	if base64.StdEncoding.EncodedLen(len(request.UserData)) > maxUserData {
		return Server{}, fault.New(fault.Invalid, "User data too large. User data must be no larger than 64KB once base64 encoded. "+
			"Your data is %d bytes", base64.StdEncoding.EncodedLen(len(request.UserData)))
	}
	zone := cmp.Or(request.AvailabilityZone, s.zones[0])
	if !slices.Contains(s.zones, zone) {
		return Server{}, fault.New(fault.Invalid, "The requested availability zone is not available: %s. This cloud has %s.", zone, strings.Join(s.zones, ", "))
	}
	if request.GroupID != "" {
		if _, err := s.serverGroup(projectID, request.GroupID); err != nil {
			return Server{}, fault.New(fault.Invalid, "%w", err)
		}
	}
	flavor, ok := s.findFlavor(request.FlavorID)
	if !ok {
		return Server{}, fault.New(fault.Invalid, "Flavor %s could not be found.", request.FlavorID)
	}
	imageID, err := s.acceptImage(ctx, projectID, request, flavor)
	if err != nil {
		return Server{}, err
	}
	if request.UserID == "" {
		request.UserID = identity.From(ctx).UserID
	}
	server := Server{
		ID: uuid.NewString(), ProjectID: projectID, UserID: request.UserID, Name: request.Name, Hostname: hostname(request.Name),
		Status: StatusBuild, Task: taskSpawn, FlavorID: flavor.ID, ImageID: imageID, KeyName: request.KeyName,
		UserData: request.UserData, Metadata: request.Metadata, SecurityGroups: request.SecurityGroups,
		AvailabilityZone: zone, GroupID: request.GroupID, CreatedAt: s.now(), UpdatedAt: s.now(),
	}
	if request.KeyName != "" {
		if server.PublicKey, ok = s.publicKey(ctx, request.UserID, projectID, request.KeyName); !ok {
			return Server{}, fault.New(fault.Invalid, "Invalid key_name provided.")
		}
	}
	for _, id := range request.Ports {
		request.interfaces = append(request.interfaces, Interface{PortID: id})
	}
	for _, id := range request.Networks {
		request.interfaces = append(request.interfaces, Interface{NetworkID: id})
	}
	if server.Interfaces, err = s.acceptInterfaces(ctx, projectID, request); err != nil {
		return Server{}, err
	}
	if len(server.SecurityGroups) == 0 && len(server.Interfaces) > 0 {
		server.SecurityGroups = []string{"default"}
	}
	return server, nil
}

// acceptImage returns the id of the image that a server is to run from, "" where it runs from a volume.
func (s *Service) acceptImage(ctx context.Context, projectID string, request CreateServer, flavor Flavor) (string, error) {
	if root, ok := bootVolume(request.Volumes); ok {
		return "", s.volumes.CheckBootable(projectID, root.VolumeID)
	}
	if request.ImageID == "" {
		return "", fault.New(fault.Invalid, "Invalid imageRef provided: a server has an image, or a volume to boot from.")
	}
	image, err := s.images.Find(ctx, projectID, request.ImageID)
	if err != nil {
		return "", fault.New(fault.Invalid, "%w", err)
	}
	switch {
	case image.Status != glance.StatusActive:
		return "", fault.New(fault.Invalid, "Image %s is not active.", image.ID)
	case image.MinRAM > flavor.MemoryMiB:
		return "", fault.New(fault.Invalid, "Flavor's memory is too small for requested image.")
	case image.MinDisk > flavor.DiskGB:
		return "", fault.New(fault.Invalid, "The created instance's disk would be too small.")
	}
	return image.ID, nil
}

// CheckImage is a fault when there is no image of this name or id that the project may use.
func (s *Service) CheckImage(ctx context.Context, projectID, ref string) error {
	_, err := s.images.Find(ctx, projectID, ref)
	return err
}

// CheckFlavor is a fault when there is no flavor of this name or id.
func (s *Service) CheckFlavor(ref string) error {
	if _, ok := s.findFlavor(ref); !ok {
		return fault.New(fault.NotFound, "Flavor %s could not be found.", ref)
	}
	return nil
}

var notInHostname = regexp.MustCompile(`[^a-z0-9.-]+`)

// hostname makes a host name of a server's name as Nova does.
func hostname(name string) string {
	clean := notInHostname.ReplaceAllString(strings.NewReplacer(" ", "-", "_", "-").Replace(strings.ToLower(name)), "")
	clean = strings.Trim(clean, ".-")
	if clean == "" {
		return "server"
	}
	return strings.TrimRight(clean[:min(63, len(clean))], ".-")
}

func hostID(projectID string) string {
	sum := sha256.Sum224([]byte(projectID + "localhost"))
	return hex.EncodeToString(sum[:])
}

// serverRequest is the body of POST /servers.
type serverRequest struct {
	Server struct {
		Name             string            `json:"name"`
		FlavorRef        string            `json:"flavorRef"`
		ImageRef         string            `json:"imageRef"`
		KeyName          string            `json:"key_name"`
		UserData         string            `json:"user_data"` // base64
		Metadata         map[string]string `json:"metadata"`
		AvailabilityZone string            `json:"availability_zone"`
		MinCount         int               `json:"min_count"`
		MaxCount         int               `json:"max_count"`
		Networks         json.RawMessage   `json:"networks"` // a list, or "auto" or "none"
		SecurityGroups   []struct {
			Name string `json:"name"`
		} `json:"security_groups"`
		BlockDevices []struct {
			BootIndex       any    `json:"boot_index"`
			UUID            string `json:"uuid"`
			SourceType      string `json:"source_type"`
			DestinationType string `json:"destination_type"`
			Device          string `json:"device_name"`
			Delete          bool   `json:"delete_on_termination"`
		} `json:"block_device_mapping_v2"`
	} `json:"server"`
	Hints    hints `json:"os:scheduler_hints"`
	OldHints hints `json:"OS-SCH-HNT:scheduler_hints"` // their former name
}

// hints are wishes for the place of a server; others than these have no meaning on one host.
type hints struct {
	Group string `json:"group"`
}

func (s *Service) createServer(w http.ResponseWriter, r *http.Request) error {
	var body serverRequest
	if err := readJSON(r, &body); err != nil {
		return err
	}
	wanted := body.Server
	if wanted.MinCount > 1 || wanted.MaxCount > 1 {
		return fault.New(fault.Invalid, "min_count and max_count are 1 in the local cloud: ask for each server by itself.")
	}
	var volumes []VolumeAttachment
	for _, device := range wanted.BlockDevices {
		boots := fmt.Sprint(device.BootIndex) == "0"
		switch {
		case device.SourceType == "image" && device.DestinationType == "local":
			wanted.ImageRef = device.UUID
		case device.SourceType == "volume":
			volumes = append(volumes, VolumeAttachment{VolumeID: device.UUID, Device: device.Device, DeleteOnTermination: device.Delete, Boots: boots})
		default:
			return fault.New(fault.Invalid, "Block Device Mapping is Invalid: in the local cloud a server boots from an image (source_type image, "+
				"destination_type local) or from a volume that is there, and has volumes that are there beside it (source_type volume).")
		}
	}
	userData, err := base64.StdEncoding.DecodeString(wanted.UserData)
	if err != nil {
		return fault.New(fault.Invalid, "Invalid input for field/attribute user_data: it is no base64: %w", err)
	}
	// An address of an image or flavor is accepted for its id, as of old.
	request := CreateServer{
		Name: wanted.Name, FlavorID: lastPart(wanted.FlavorRef), ImageID: lastPart(wanted.ImageRef), KeyName: wanted.KeyName,
		UserData: userData, Metadata: wanted.Metadata, AvailabilityZone: wanted.AvailabilityZone,
		GroupID: cmp.Or(body.Hints.Group, body.OldHints.Group), Volumes: volumes,
	}
	for _, group := range wanted.SecurityGroups {
		request.SecurityGroups = append(request.SecurityGroups, group.Name)
	}
	if err := request.readNetworks(wanted.Networks, since(r.Context(), 37)); err != nil {
		return err
	}
	server, err := s.Create(r.Context(), identity.From(r.Context()).ProjectID, request)
	if err != nil {
		return err
	}
	groups := []any{}
	for _, name := range server.SecurityGroups {
		groups = append(groups, map[string]any{"name": name})
	}
	links := s.links("servers", server.ID)
	w.Header().Set("Location", s.endpoint+"/compute/v2.1/servers/"+server.ID)
	answer.JSON(w, http.StatusAccepted, map[string]any{"server": map[string]any{
		"id": server.ID, "links": links, "OS-DCF:diskConfig": "MANUAL", "security_groups": groups, "adminPass": uuid.NewString()[:12],
	}})
	return nil
}

// readNetworks reads the "networks" of a request.
func (c *CreateServer) readNetworks(raw json.RawMessage, required bool) error {
	var word string
	var list []struct {
		UUID    string `json:"uuid"`
		Port    string `json:"port"`
		FixedIP string `json:"fixed_ip"`
	}
	switch {
	case len(raw) == 0 || string(raw) == "null":
		if required {
			return fault.New(fault.Invalid, "Invalid input for field/attribute server: 'networks' is a required property")
		}
	case json.Unmarshal(raw, &word) == nil:
		if c.noNetwork = word == "none"; !c.noNetwork && word != "auto" {
			return fault.New(fault.Invalid, "Invalid input for field/attribute networks. Value: %s. It is a list, auto or none.", word)
		}
	case json.Unmarshal(raw, &list) != nil:
		return fault.New(fault.Invalid, "Invalid input for field/attribute networks. It is a list, auto or none.")
	}
	for _, n := range list {
		if n.UUID == "" && n.Port == "" {
			return fault.New(fault.Invalid, "Invalid input for field/attribute networks. Each one has a uuid or a port.")
		}
		c.interfaces = append(c.interfaces, Interface{PortID: n.Port, NetworkID: n.UUID, FixedIP: n.FixedIP})
	}
	return nil
}

func lastPart(ref string) string { return ref[strings.LastIndex(ref, "/")+1:] }
