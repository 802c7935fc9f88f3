package cinder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/test/localcloud/answer"
	"github.com/burano/burano/test/localcloud/glance"
	"github.com/burano/burano/test/localcloud/hypervisor"
)

// The statuses of a volume; a snapshot has the first only.
const (
	StatusAvailable = "available"
	StatusInUse     = "in-use"
)

// Volume is the record of a volume.
type Volume struct {
	ID, ProjectID, UserID, Name, Description string
	SizeGB                                   int
	Type                                     string // its name
	Zone                                     string // "" is the first of the cloud's
	SnapshotID, SourceID                     string // the source of its data
	ReadOnly, Bootable                       bool
	ImageID, ImageName                       string // the image from which its data descend, "" for none
	Metadata                                 map[string]string
	Attachment                               *Attachment // nil while no server has it
	CreatedAt, UpdatedAt                     time.Time
}

// Attachment is a volume's place in a server.
type Attachment struct {
	ID, ServerID, Device string // Device like /dev/vdb
	At                   time.Time
}

// Status is available or in-use.
func (v Volume) Status() string {
	if v.Attachment != nil {
		return StatusInUse
	}
	return StatusAvailable
}

func (s *Service) zone(volume Volume) string { return cmp.Or(volume.Zone, s.zones[0]) }

// sameZone places a copy in the zone of its source, as Cinder does by default (cloned_volume_same_az).
func (s *Service) sameZone(made *Volume, of, kind string) error {
	original, _ := s.volumes.Get(of)
	zone := s.zone(original)
	if made.Zone != "" && made.Zone != zone {
		return fault.New(fault.Invalid, "Invalid input received: Volume must be in the same availability zone as the %s", kind)
	}
	made.Zone = zone
	return nil
}

// ZoneOf is the availability zone of a volume of the project.
func (s *Service) ZoneOf(projectID, id string) (string, error) {
	volume, err := s.Get(projectID, id)
	return s.zone(volume), err
}

// CreateVolume describes a new volume. With an ID a repetition finds it.
type CreateVolume struct {
	ID               string            `json:"-"`
	Name             string            `json:"name"`
	Description      string            `json:"description"`
	SizeGB           int               `json:"size"` // that of the source when 0
	Type             string            `json:"volume_type"`
	SnapshotID       string            `json:"snapshot_id"`
	SourceID         string            `json:"source_volid"`
	BackupID         string            `json:"backup_id"`
	ImageID          string            `json:"imageRef"`
	AvailabilityZone string            `json:"availability_zone"`
	Metadata         map[string]string `json:"metadata"`
}

// Create makes a volume with its data.
func (s *Service) Create(ctx context.Context, projectID string, request CreateVolume) (Volume, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if known, ok := s.volumes.Get(request.ID); ok {
		return known, nil
	}
	if request.AvailabilityZone != "" && !slices.Contains(s.zones, request.AvailabilityZone) {
		return Volume{}, fault.New(fault.Invalid, "Invalid input received: Availability zone '%s' is invalid.", request.AvailabilityZone)
	}
	of, known := s.findType(request.Type)
	if !known {
		return Volume{}, fault.New(fault.NotFound, "Volume type with name %s could not be found.", request.Type)
	}
	volume := Volume{
		ID: request.ID, ProjectID: projectID, UserID: identity.From(ctx).UserID, Name: request.Name, Description: request.Description,
		Type: of.Name, Zone: request.AvailabilityZone, SnapshotID: request.SnapshotID, SourceID: request.SourceID, Metadata: request.Metadata, CreatedAt: s.now(), UpdatedAt: s.now(),
	}
	source, size := "", 0
	switch {
	case request.ImageID != "":
		image, err := s.images.Find(ctx, projectID, request.ImageID)
		if err != nil {
			return Volume{}, fault.New(fault.Invalid, "Invalid image identifier or unable to access requested image. %w", err)
		}
		if image.Status != glance.StatusActive {
			return Volume{}, fault.New(fault.Invalid, "Invalid input received: Invalid image %s is not active.", image.ID)
		}
		volume.Bootable, volume.ImageID, volume.ImageName, size = true, image.ID, image.Name, image.MinDisk
	case request.SnapshotID != "":
		snapshot, err := s.snapshotOf(projectID, request.SnapshotID)
		if err != nil {
			return Volume{}, err
		}
		if err := s.sameZone(&volume, snapshot.VolumeID, "snapshot"); err != nil {
			return Volume{}, err
		}
		source, size = snapshot.ID, snapshot.SizeGB
		volume.Bootable, volume.ImageID, volume.ImageName = snapshot.Bootable, snapshot.ImageID, snapshot.ImageName
	case request.BackupID != "":
		backup, err := s.backupOf(projectID, request.BackupID)
		if err != nil {
			return Volume{}, err
		}
		source, size = backup.ID, backup.SizeGB
	case request.SourceID != "":
		original, err := s.Get(projectID, request.SourceID)
		if err != nil {
			return Volume{}, err
		}
		if err := s.sameZone(&volume, original.ID, "source volume"); err != nil {
			return Volume{}, err
		}
		source, size = original.ID, original.SizeGB
		volume.Bootable, volume.ImageID, volume.ImageName = original.Bootable, original.ImageID, original.ImageName
	}
	if request.SizeGB == 0 {
		request.SizeGB = size
	}
	if request.SizeGB < max(1, size) {
		return Volume{}, fault.New(fault.Invalid, "Invalid input received: Volume size '%dGB' cannot be smaller than %dGB.", request.SizeGB, max(1, size))
	}
	if err := s.checkQuota(projectID, usage{volumes: 1, gigabytes: request.SizeGB}); err != nil {
		return Volume{}, err
	}
	volume.SizeGB = request.SizeGB
	if volume.ID == "" {
		volume.ID = uuid.NewString()
	}
	if err := s.makeFile(ctx, volume.ID, source, volume.SizeGB); err != nil {
		return Volume{}, err
	}
	if request.ImageID != "" {
		if err := s.images.Write(ctx, volume.ImageID, s.file(volume.ID)); err != nil {
			return Volume{}, errors.Join(fmt.Errorf("write image %s to the volume: %w", volume.ImageID, err), os.Remove(s.file(volume.ID)))
		}
	}
	return volume, s.volumes.Put(volume.ID, volume)
}

// makeFile makes the file of a volume, snapshot or backup: a sparse one, with the content of source when one is named.
func (s *Service) makeFile(ctx context.Context, id, source string, gigabytes int) error {
	if source != "" {
		output, err := exec.CommandContext(ctx, "cp", "--sparse=always", "--reflink=auto", s.file(source), s.file(id)).CombinedOutput()
		if err != nil {
			return fmt.Errorf("copy the data of %s: %w: %s", source, err, output)
		}
	} else if err := os.WriteFile(s.file(id), nil, 0o600); err != nil {
		return err
	}
	return os.Truncate(s.file(id), int64(gigabytes)<<30)
}

func noVolume(id string) error {
	return fault.New(fault.NotFound, "Volume %s could not be found.", id)
}

// Get returns a volume of the project ("" for any).
func (s *Service) Get(projectID, id string) (Volume, error) {
	volume, ok := s.volumes.Get(id)
	if !ok || (projectID != "" && volume.ProjectID != projectID) {
		return Volume{}, noVolume(id)
	}
	return volume, nil
}

// Change has the changes of a volume; nil leaves a field.
type Change struct {
	Name        *string           `json:"name"`
	Description *string           `json:"description"`
	Metadata    map[string]string `json:"metadata"`
	ReadOnly    *bool             `json:"-"`
}

// Update changes a volume's name, and its metadata.
func (s *Service) Update(projectID, id string, change Change) (Volume, error) {
	if _, err := s.Get(projectID, id); err != nil {
		return Volume{}, err
	}
	_, err := s.volumes.Update(id, func(row *Volume) {
		if change.Name != nil {
			row.Name = *change.Name
		}
		if change.Description != nil {
			row.Description = *change.Description
		}
		if change.Metadata != nil {
			row.Metadata = change.Metadata
		}
		if change.ReadOnly != nil {
			row.ReadOnly = *change.ReadOnly
		}
		row.UpdatedAt = s.now()
	})
	if err != nil {
		return Volume{}, err
	}
	return s.Get(projectID, id)
}

// Extend makes a volume larger, also while a server has it.
func (s *Service) Extend(ctx context.Context, projectID, id string, gigabytes int) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	volume, err := s.Get(projectID, id)
	if err != nil {
		return err
	}
	if gigabytes <= volume.SizeGB {
		return fault.New(fault.Invalid, "Invalid input received: New size for extend must be greater than current size. (current: %d, extended: %d).", volume.SizeGB, gigabytes)
	}
	if err := s.checkQuota(projectID, usage{gigabytes: gigabytes - volume.SizeGB}); err != nil {
		return err
	}
	if err := os.Truncate(s.file(id), int64(gigabytes)<<30); err != nil {
		return err
	}
	if err := hypervisor.GrowLoop(ctx, s.file(id)); err != nil {
		return err
	}
	_, err = s.volumes.Update(id, func(row *Volume) { row.SizeGB, row.UpdatedAt = gigabytes, s.now() })
	return err
}

// Delete removes a volume that no server has, and its data.
func (s *Service) Delete(projectID, id string) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	volume, err := s.Get(projectID, id)
	if err != nil {
		return err
	}
	snapshots := s.snapshots.Where(func(one Snapshot) bool { return one.VolumeID == id })
	if volume.Attachment != nil || len(snapshots) > 0 {
		return fault.New(fault.Conflict, "Invalid volume: Volume status must be available or error or error_restoring or error_extending or error_managing "+
			"and must not be migrating, attached, belong to a group, have snapshots, awaiting a transfer, or be disassociated from snapshots after volume transfer.")
	}
	if _, err := s.volumes.Delete(id); err != nil {
		return err
	}
	if err := os.Remove(s.file(id)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// CheckBootable is a fault for a volume that no server can run from, or that is not the project's.
func (s *Service) CheckBootable(projectID, id string) error {
	volume, err := s.Get(projectID, id)
	if err == nil && !volume.Bootable {
		err = fault.New(fault.Invalid, "Block Device %s is not bootable.", id)
	}
	return err
}

// Attach notes that a server has a volume from now on; again for the same server is fine.
func (s *Service) Attach(projectID, id, serverID, device string) error {
	if _, err := s.Get(projectID, id); err != nil {
		return err
	}
	var refused error
	_, err := s.volumes.Update(id, func(row *Volume) {
		switch {
		case row.Attachment == nil:
			row.Attachment = &Attachment{ID: uuid.NewString(), ServerID: serverID, Device: device, At: s.now()}
			row.UpdatedAt = s.now()
		case row.Attachment.ServerID != serverID:
			refused = fault.New(fault.Invalid, "Invalid input received: Invalid volume: Volume %s status must be available or downloading to reserve, "+
				"but the current status is in-use.", id)
		}
	})
	return errors.Join(err, refused)
}

// Keep sets the volumes of a server; its others are available again.
func (s *Service) Keep(serverID string, ids []string) error {
	for _, volume := range s.volumes.Where(func(one Volume) bool { return one.Attachment != nil && one.Attachment.ServerID == serverID }) {
		if slices.Contains(ids, volume.ID) {
			continue
		}
		if _, err := s.volumes.Update(volume.ID, func(row *Volume) { row.Attachment, row.UpdatedAt = nil, s.now() }); err != nil {
			return err
		}
	}
	return nil
}

// Disk is a volume as a server gets it.
func (s *Service) Disk(id, device string) (hypervisor.Disk, error) {
	volume, err := s.Get("", id)
	if err != nil {
		return hypervisor.Disk{}, err
	}
	return hypervisor.Disk{Device: strings.TrimPrefix(device, "/dev/"), File: s.file(id), Serial: id, ReadOnly: volume.ReadOnly}, nil
}

// Show is a volume as the API answers it.
func (s *Service) Show(volume Volume) map[string]any {
	attachments := []any{}
	metadata := maps.Clone(volume.Metadata)
	if metadata == nil {
		metadata = map[string]string{}
	}
	if a := volume.Attachment; a != nil {
		attachments = append(attachments, map[string]any{
			"id": volume.ID, "volume_id": volume.ID, "attachment_id": a.ID, "server_id": a.ServerID, "device": a.Device, "host_name": "localhost",
			"attached_at": timestamp(a.At),
		})
		metadata["attached_mode"] = "rw"
	}
	if volume.ReadOnly {
		metadata["readonly"] = "True"
	}
	links := s.links("volumes", volume.ProjectID, volume.ID)
	shown := map[string]any{
		"id": volume.ID, "name": volume.Name, "description": optional(volume.Description), "size": volume.SizeGB, "status": volume.Status(),
		"volume_type": volume.Type, "snapshot_id": optional(volume.SnapshotID), "source_volid": optional(volume.SourceID),
		"bootable": fmt.Sprint(volume.Bootable), "encrypted": false, "multiattach": false, "availability_zone": s.zone(volume), "metadata": metadata,
		"attachments": attachments, "created_at": timestamp(volume.CreatedAt), "updated_at": timestamp(volume.UpdatedAt),
		"user_id": volume.UserID, "os-vol-tenant-attr:tenant_id": volume.ProjectID, "replication_status": nil, "consistencygroup_id": nil,
		"migration_status": nil, "links": links,
	}
	if volume.ImageID != "" {
		shown["volume_image_metadata"] = map[string]string{"image_id": volume.ImageID, "image_name": volume.ImageName}
	}
	return shown
}

func (s *Service) links(collection, projectID, id string) []map[string]any {
	return []map[string]any{
		{"rel": "self", "href": s.endpoint + "/volume/v3/" + projectID + "/" + collection + "/" + id},
		{"rel": "bookmark", "href": s.endpoint + "/volume/" + projectID + "/" + collection + "/" + id},
	}
}

func (s *Service) listVolumes(w http.ResponseWriter, r *http.Request) error {
	query, caller := r.URL.Query(), identity.From(r.Context())
	everywhere := caller.Admin && slices.Contains([]string{"1", "true", "True"}, query.Get("all_tenants"))
	found, err := page(r, s.volumes.Where(func(one Volume) bool {
		return (everywhere || one.ProjectID == caller.ProjectID) && (!query.Has("name") || one.Name == query.Get("name")) &&
			(!query.Has("status") || one.Status() == query.Get("status"))
	}), func(one Volume) string { return one.ID })
	if err != nil {
		return err
	}
	bodies := []any{}
	for _, volume := range found {
		if strings.HasSuffix(r.URL.Path, "/detail") {
			bodies = append(bodies, s.Show(volume))
		} else {
			bodies = append(bodies, map[string]any{"id": volume.ID, "name": volume.Name, "links": s.links("volumes", volume.ProjectID, volume.ID)})
		}
	}
	answer.JSON(w, http.StatusOK, map[string]any{"volumes": bodies})
	return nil
}

func (s *Service) createVolume(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Volume *CreateVolume `json:"volume"`
	}
	if err := readJSON(r, &body); err != nil {
		return err
	}
	if body.Volume == nil {
		return fault.New(fault.Invalid, "Invalid input for field/attribute volume: it is a required property")
	}
	volume, err := s.Create(r.Context(), identity.From(r.Context()).ProjectID, *body.Volume)
	if err != nil {
		return err
	}
	shown := s.Show(volume)
	shown["status"] = "creating" // as Cinder answers, which makes it afterwards
	answer.JSON(w, http.StatusAccepted, map[string]any{"volume": shown})
	return nil
}

// visible returns the volume of the request's path, if the caller may see it.
func (s *Service) visible(r *http.Request) (Volume, error) {
	caller := identity.From(r.Context())
	if caller.Admin {
		return s.Get("", r.PathValue("id"))
	}
	return s.Get(caller.ProjectID, r.PathValue("id"))
}

func (s *Service) showVolume(w http.ResponseWriter, r *http.Request) error {
	volume, err := s.visible(r)
	if err != nil {
		return err
	}
	answer.JSON(w, http.StatusOK, map[string]any{"volume": s.Show(volume)})
	return nil
}

func (s *Service) updateVolume(w http.ResponseWriter, r *http.Request) error {
	volume, err := s.visible(r)
	if err != nil {
		return err
	}
	var body struct {
		Volume Change `json:"volume"`
	}
	if err := readJSON(r, &body); err != nil {
		return err
	}
	if volume, err = s.Update(volume.ProjectID, volume.ID, body.Volume); err != nil {
		return err
	}
	answer.JSON(w, http.StatusOK, map[string]any{"volume": s.Show(volume)})
	return nil
}

func (s *Service) deleteVolume(w http.ResponseWriter, r *http.Request) error {
	volume, err := s.visible(r)
	if err != nil {
		return err
	}
	if err := s.Delete(volume.ProjectID, volume.ID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// act performs POST /volumes/{id}/action: an object whose one key is the action's name.
func (s *Service) act(w http.ResponseWriter, r *http.Request) error {
	volume, err := s.visible(r)
	if err != nil {
		return err
	}
	var request struct {
		Extend *struct {
			Size int `json:"new_size"`
		} `json:"os-extend"`
		ReadOnly *struct {
			ReadOnly bool `json:"readonly"`
		} `json:"os-update_readonly_flag"`
		Bootable *struct {
			Bootable bool `json:"bootable"`
		} `json:"os-set_bootable"`
	}
	if err := readJSON(r, &request); err != nil {
		return err
	}
	switch {
	case request.Extend != nil:
		err = s.Extend(r.Context(), volume.ProjectID, volume.ID, request.Extend.Size)
	case request.ReadOnly != nil:
		_, err = s.Update(volume.ProjectID, volume.ID, Change{ReadOnly: &request.ReadOnly.ReadOnly})
	case request.Bootable != nil:
		_, err = s.volumes.Update(volume.ID, func(row *Volume) { row.Bootable = request.Bootable.Bootable })
	default:
		err = fault.New(fault.Invalid, "There is no such action. The local cloud knows os-extend, os-update_readonly_flag and os-set_bootable.")
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

func (s *Service) showMetadata(w http.ResponseWriter, r *http.Request) error {
	volume, err := s.visible(r)
	if err != nil {
		return err
	}
	answer.JSON(w, http.StatusOK, map[string]any{"metadata": s.Show(volume)["metadata"]})
	return nil
}

// updateMetadata adds to the metadata, or with PUT replaces them.
func (s *Service) updateMetadata(w http.ResponseWriter, r *http.Request) error {
	volume, err := s.visible(r)
	if err != nil {
		return err
	}
	var body struct {
		Metadata map[string]string `json:"metadata"`
	}
	if err := readJSON(r, &body); err != nil {
		return err
	}
	next := map[string]string{}
	if r.Method == http.MethodPost {
		maps.Copy(next, volume.Metadata)
	}
	maps.Copy(next, body.Metadata)
	if _, err := s.Update(volume.ProjectID, volume.ID, Change{Metadata: next}); err != nil {
		return err
	}
	answer.JSON(w, http.StatusOK, map[string]any{"metadata": next})
	return nil
}
