package nova

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/test/localcloud/answer"
	"github.com/burano/burano/test/localcloud/hypervisor"
)

// Volumes is the block storage service. Its errors are faults.
type Volumes interface {
	// Attach notes that a server has a volume of the project; Keep, which ones it has still.
	Attach(projectID, volumeID, serverID, device string) error
	Keep(serverID string, volumeIDs []string) error
	// Disk is a volume as the hypervisor takes it.
	Disk(volumeID, device string) (hypervisor.Disk, error)
	Delete(projectID, volumeID string) error
	// ZoneOf is the availability zone of a volume of the project.
	ZoneOf(projectID, volumeID string) (string, error)
	// CheckBootable is an error for a volume that no server can run from, or that is not the project's.
	CheckBootable(projectID, volumeID string) error
}

// VolumeAttachment is a volume in a server.
type VolumeAttachment struct {
	VolumeID, Device    string // Device like /dev/vdb
	DeleteOnTermination bool
	Boots               bool // the server runs from it, as rootDevice
}

const rootDevice = "/dev/vda"

// bootVolume is the volume that a server runs from, if it runs from one.
func bootVolume(volumes []VolumeAttachment) (VolumeAttachment, bool) {
	i := slices.IndexFunc(volumes, func(a VolumeAttachment) bool { return a.Boots })
	if i < 0 {
		return VolumeAttachment{}, false
	}
	return volumes[i], true
}

// AttachVolume gives a server a volume, as device when that is not "", and returns when the server has it.
func (s *Service) AttachVolume(ctx context.Context, projectID, id string, wanted VolumeAttachment) (VolumeAttachment, error) {
	op, err := s.oneVolume(id, func() (*operation, error) {
		server, err := s.Get(ctx, projectID, id)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(server.Volumes, func(a VolumeAttachment) bool { return a.VolumeID == wanted.VolumeID }); i >= 0 {
			wanted = server.Volumes[i]
			return nil, nil
		}
		if wanted.Device, err = freeDevice(server, wanted.Device); err != nil {
			return nil, err
		}
		zone, err := s.volumes.ZoneOf(server.ProjectID, wanted.VolumeID)
		if err != nil {
			return nil, err
		}
		if zone != server.AvailabilityZone { // as Nova does with cross_az_attach = false
			return nil, fault.New(fault.Invalid, "Invalid volume: Instance %s and volume %s are not in the same availability_zone. Instance is in %s. Volume is in %s", id, wanted.VolumeID,
				server.AvailabilityZone, zone)
		}
		if err := s.volumes.Attach(server.ProjectID, wanted.VolumeID, id, wanted.Device); err != nil {
			return nil, err
		}
		op, err := s.beginWith(id, taskVolumes, runs, func(row *Server) { row.Volumes = append(row.Volumes, wanted) }, s.plugVolumes)
		if err != nil { // the server does something else, and never got to know of it
			if giveBack := s.volumes.Keep(id, volumeIDs(server)); giveBack != nil {
				s.log.ErrorContext(ctx, "a volume stays reserved", "volume", wanted.VolumeID, "server", id, "error", giveBack)
			}
		}
		return op, err
	})
	if op == nil {
		return wanted, err
	}
	return wanted, s.ended(ctx, op, err, id)
}

// oneVolume lets a server attach or detach one volume at a time, until that has ended, also when the caller no longer waits. The reason: block storage
// gets the list of a server's volumes, and returns the other ones.
func (s *Service) oneVolume(id string, begin func() (*operation, error)) (*operation, error) {
	s.mutex.Lock()
	lock := s.plugging[id]
	if lock == nil {
		lock = &sync.Mutex{}
		s.plugging[id] = lock
	}
	s.mutex.Unlock()
	lock.Lock()
	op, err := begin()
	if op == nil {
		lock.Unlock()
		return nil, err
	}
	go func() {
		<-op.done
		lock.Unlock()
	}()
	return op, err
}

// DetachVolume takes a volume from a server, and returns when it has it no more.
func (s *Service) DetachVolume(ctx context.Context, projectID, id, volumeID string) error {
	op, err := s.oneVolume(id, func() (*operation, error) {
		server, err := s.Get(ctx, projectID, id)
		if err != nil {
			return nil, err
		}
		if root, ok := bootVolume(server.Volumes); ok && root.VolumeID == volumeID {
			return nil, fault.New(fault.Forbidden, "Cannot detach a root device volume")
		}
		has := func(a VolumeAttachment) bool { return a.VolumeID == volumeID }
		if !slices.ContainsFunc(server.Volumes, has) {
			return nil, fault.New(fault.NotFound, "volume_id not found: %s", volumeID)
		}
		return s.beginWith(id, taskVolumes, runs, func(row *Server) { row.Volumes = slices.DeleteFunc(row.Volumes, has) }, s.plugVolumes)
	})
	if err != nil {
		return err
	}
	return s.ended(ctx, op, nil, id)
}

// freeDevice is the name that a server gives to its next volume, which may be asked for.
func freeDevice(server Server, wanted string) (string, error) {
	taken := map[string]bool{rootDevice: true}
	for _, volume := range server.Volumes {
		taken[volume.Device] = true
	}
	if wanted != "" {
		if taken[wanted] {
			return "", fault.New(fault.Conflict, "The supplied device path (%s) is in use.", wanted)
		}
		if len(wanted) != len("/dev/vdb") || wanted[:len("/dev/vd")] != "/dev/vd" || wanted[len("/dev/vd")] < 'b' || wanted[len("/dev/vd")] > 'z' {
			return "", fault.New(fault.Invalid, "The supplied device path (%s) is invalid. The local cloud has /dev/vdb to /dev/vdz.", wanted)
		}
		return wanted, nil
	}
	for letter := 'b'; letter <= 'z'; letter++ {
		if name := "/dev/vd" + string(letter); !taken[name] {
			return name, nil
		}
	}
	return "", fault.New(fault.Forbidden, "The maximum allowed number of volumes (25) of server %s has been exceeded.", server.ID)
}

func volumeIDs(server Server) []string {
	var ids []string
	for _, volume := range server.Volumes {
		ids = append(ids, volume.VolumeID)
	}
	return ids
}

// disks are a server's volumes as the hypervisor takes them.
func (s *Service) disks(server Server) ([]hypervisor.Disk, error) {
	var disks []hypervisor.Disk
	for _, volume := range server.Volumes {
		disk, err := s.volumes.Disk(volume.VolumeID, volume.Device)
		if err != nil {
			return nil, err
		}
		disks = append(disks, disk)
	}
	return disks, nil
}

// plugVolumes applies the desired volumes of a server to the hypervisor and the block storage.
func (s *Service) plugVolumes(ctx context.Context, id string) error {
	server, ok := s.servers.Get(id)
	if !ok {
		return nil
	}
	disks, err := s.disks(server)
	if err != nil {
		return err
	}
	if err := s.hypervisor.SetDisks(ctx, id, disks); err != nil {
		return err
	}
	return s.volumes.Keep(id, volumeIDs(server))
}

// releaseVolumes returns the volumes of a deleted server, or deletes volumes that go with it.
func (s *Service) releaseVolumes(server Server) error {
	if err := s.volumes.Keep(server.ID, nil); err != nil {
		return err
	}
	for _, volume := range server.Volumes {
		if !volume.DeleteOnTermination {
			continue
		}
		if err := s.volumes.Delete(server.ProjectID, volume.VolumeID); err != nil && fault.KindOf(err) != fault.NotFound {
			return err
		}
	}
	return nil
}

func (a VolumeAttachment) body(serverID string) map[string]any {
	return map[string]any{"id": a.VolumeID, "serverId": serverID, "volumeId": a.VolumeID, "device": a.Device}
}

func (s *Service) listVolumes(w http.ResponseWriter, r *http.Request) error {
	server, err := s.visible(r)
	if err != nil {
		return err
	}
	bodies := []any{}
	for _, volume := range server.Volumes {
		bodies = append(bodies, volume.body(server.ID))
	}
	answer.JSON(w, http.StatusOK, map[string]any{"volumeAttachments": bodies})
	return nil
}

func (s *Service) showVolume(w http.ResponseWriter, r *http.Request) error {
	server, err := s.visible(r)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(server.Volumes, func(a VolumeAttachment) bool { return a.VolumeID == r.PathValue("volume") })
	if i < 0 {
		return fault.New(fault.NotFound, "Instance %s is not attached to volume %s.", server.ID, r.PathValue("volume"))
	}
	answer.JSON(w, http.StatusOK, map[string]any{"volumeAttachment": server.Volumes[i].body(server.ID)})
	return nil
}

func (s *Service) attachVolume(w http.ResponseWriter, r *http.Request) error {
	server, err := s.visible(r)
	if err != nil {
		return err
	}
	var body struct {
		Attachment struct {
			VolumeID string `json:"volumeId"`
			Device   string `json:"device"`
			Delete   bool   `json:"delete_on_termination"`
		} `json:"volumeAttachment"`
	}
	if err := readJSON(r, &body); err != nil {
		return err
	}
	if slices.Contains(volumeIDs(server), body.Attachment.VolumeID) {
		return fault.New(fault.Conflict, "volume %s already attached", body.Attachment.VolumeID)
	}
	made, err := s.AttachVolume(r.Context(), server.ProjectID, server.ID, VolumeAttachment{
		VolumeID: body.Attachment.VolumeID, Device: body.Attachment.Device, DeleteOnTermination: body.Attachment.Delete,
	})
	if err != nil {
		return fmt.Errorf("attach volume %s: %w", body.Attachment.VolumeID, err)
	}
	answer.JSON(w, http.StatusOK, map[string]any{"volumeAttachment": made.body(server.ID)})
	return nil
}

func (s *Service) detachVolume(w http.ResponseWriter, r *http.Request) error {
	server, err := s.visible(r)
	if err != nil {
		return err
	}
	if err := s.DetachVolume(r.Context(), server.ProjectID, server.ID, r.PathValue("volume")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}
