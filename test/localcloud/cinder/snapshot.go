package cinder

import (
	"errors"
	"maps"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/test/localcloud/answer"
)

// Snapshot is a copy of a volume's content. It is always available.
type Snapshot struct {
	ID, ProjectID, VolumeID, Name, Description string
	SizeGB                                     int
	Bootable                                   bool
	ImageID, ImageName                         string // as of the volume
	Metadata                                   map[string]string
	CreatedAt, UpdatedAt                       time.Time
}

func (s *Service) snapshotOf(projectID, id string) (Snapshot, error) {
	snapshot, ok := s.snapshots.Get(id)
	if !ok || snapshot.ProjectID != projectID {
		return Snapshot{}, fault.New(fault.NotFound, "Snapshot %s could not be found.", id)
	}
	return snapshot, nil
}

func (s *Service) snapshotBody(snapshot Snapshot) map[string]any {
	metadata := snapshot.Metadata
	if metadata == nil {
		metadata = map[string]string{}
	}
	return map[string]any{
		"id": snapshot.ID, "volume_id": snapshot.VolumeID, "name": snapshot.Name, "description": optional(snapshot.Description),
		"size": snapshot.SizeGB, "status": StatusAvailable, "metadata": metadata, "os-extended-snapshot-attributes:progress": "100%",
		"os-extended-snapshot-attributes:project_id": snapshot.ProjectID, "created_at": timestamp(snapshot.CreatedAt),
		"updated_at": timestamp(snapshot.UpdatedAt),
	}
}

func (s *Service) listSnapshots(w http.ResponseWriter, r *http.Request) error {
	query, project := r.URL.Query(), identity.From(r.Context()).ProjectID
	found, err := page(r, s.snapshots.Where(func(one Snapshot) bool {
		return one.ProjectID == project && (!query.Has("name") || one.Name == query.Get("name")) &&
			(!query.Has("volume_id") || one.VolumeID == query.Get("volume_id"))
	}), func(one Snapshot) string { return one.ID })
	if err != nil {
		return err
	}
	bodies := []any{}
	for _, snapshot := range found {
		bodies = append(bodies, s.snapshotBody(snapshot))
	}
	answer.JSON(w, http.StatusOK, map[string]any{"snapshots": bodies})
	return nil
}

// createSnapshot copies a volume; an attached one only with force.
func (s *Service) createSnapshot(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Snapshot struct {
			VolumeID    string            `json:"volume_id"`
			Name        string            `json:"name"`
			Description string            `json:"description"`
			Force       any               `json:"force"` // a truth, or one in a text
			Metadata    map[string]string `json:"metadata"`
		} `json:"snapshot"`
	}
	if err := readJSON(r, &body); err != nil {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	wanted, project := body.Snapshot, identity.From(r.Context()).ProjectID
	volume, err := s.Get(project, wanted.VolumeID)
	if err != nil {
		return err
	}
	forced := wanted.Force == true || wanted.Force == "true" || wanted.Force == "True"
	if volume.Attachment != nil && !forced {
		return fault.New(fault.Conflict, "Invalid volume: Volume %s status must be available, but current status is: in-use.", volume.ID)
	}
	if err := s.checkQuota(project, usage{snapshots: 1, gigabytes: volume.SizeGB}); err != nil {
		return err
	}
	snapshot := Snapshot{
		ID: uuid.NewString(), ProjectID: project, VolumeID: volume.ID, Name: wanted.Name, Description: wanted.Description, SizeGB: volume.SizeGB,
		Bootable: volume.Bootable, ImageID: volume.ImageID, ImageName: volume.ImageName, Metadata: wanted.Metadata, CreatedAt: s.now(), UpdatedAt: s.now(),
	}
	if err := s.makeFile(r.Context(), snapshot.ID, volume.ID, volume.SizeGB); err != nil {
		return err
	}
	if err := s.snapshots.Put(snapshot.ID, snapshot); err != nil {
		return err
	}
	shown := s.snapshotBody(snapshot)
	shown["status"] = "creating" // as Cinder answers, which makes it afterwards
	answer.JSON(w, http.StatusAccepted, map[string]any{"snapshot": shown})
	return nil
}

func (s *Service) showSnapshot(w http.ResponseWriter, r *http.Request) error {
	snapshot, err := s.snapshotOf(identity.From(r.Context()).ProjectID, r.PathValue("id"))
	if err != nil {
		return err
	}
	answer.JSON(w, http.StatusOK, map[string]any{"snapshot": s.snapshotBody(snapshot)})
	return nil
}

func (s *Service) updateSnapshot(w http.ResponseWriter, r *http.Request) error {
	project := identity.From(r.Context()).ProjectID
	snapshot, err := s.snapshotOf(project, r.PathValue("id"))
	if err != nil {
		return err
	}
	var body struct {
		Snapshot Change `json:"snapshot"`
	}
	if err := readJSON(r, &body); err != nil {
		return err
	}
	_, err = s.snapshots.Update(snapshot.ID, func(row *Snapshot) {
		if body.Snapshot.Name != nil {
			row.Name = *body.Snapshot.Name
		}
		if body.Snapshot.Description != nil {
			row.Description = *body.Snapshot.Description
		}
		row.UpdatedAt = s.now()
		snapshot = *row
	})
	if err != nil {
		return err
	}
	answer.JSON(w, http.StatusOK, map[string]any{"snapshot": s.snapshotBody(snapshot)})
	return nil
}

// addSnapshotMetadata adds to the snapshot's metadata.
func (s *Service) addSnapshotMetadata(w http.ResponseWriter, r *http.Request) error {
	snapshot, err := s.snapshotOf(identity.From(r.Context()).ProjectID, r.PathValue("id"))
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
	_, err = s.snapshots.Update(snapshot.ID, func(row *Snapshot) {
		maps.Copy(next, row.Metadata)
		maps.Copy(next, body.Metadata)
		row.Metadata, row.UpdatedAt = next, s.now()
	})
	if err != nil {
		return err
	}
	answer.JSON(w, http.StatusOK, map[string]any{"metadata": next})
	return nil
}

func (s *Service) deleteSnapshot(w http.ResponseWriter, r *http.Request) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	snapshot, err := s.snapshotOf(identity.From(r.Context()).ProjectID, r.PathValue("id"))
	if err != nil {
		return err
	}
	if _, err := s.snapshots.Delete(snapshot.ID); err != nil {
		return err
	}
	if err := os.Remove(s.file(snapshot.ID)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// volumeType is a kind of volumes. All are the same files here.
type volumeType struct {
	ID, Name, Description string
}

var defaultType = volumeType{ID: "6a1e4c1c-5f0b-4b1b-9a0e-1d2f3c4b5a69", Name: "local", Description: "Files of this machine"}

// findType finds a type by name or id; the default one when ref is "".
func (s *Service) findType(ref string) (volumeType, bool) {
	if ref == "" {
		return defaultType, true
	}
	for _, one := range s.types.All() {
		if one.ID == ref || one.Name == ref {
			return one, true
		}
	}
	return volumeType{}, false
}

func (t volumeType) body() map[string]any {
	return map[string]any{
		"id": t.ID, "name": t.Name, "description": optional(t.Description), "is_public": true, "os-volume-type-access:is_public": true,
		"extra_specs": map[string]string{}, "qos_specs_id": nil,
	}
}

func (s *Service) listTypes(w http.ResponseWriter, _ *http.Request) error {
	bodies := []any{}
	for _, one := range s.types.All() {
		bodies = append(bodies, one.body())
	}
	answer.JSON(w, http.StatusOK, map[string]any{"volume_types": bodies})
	return nil
}

func (s *Service) showType(w http.ResponseWriter, r *http.Request) error {
	one, ok := s.types.Get(r.PathValue("id"))
	if r.PathValue("id") == "default" {
		one, ok = defaultType, true
	}
	if !ok {
		return fault.New(fault.NotFound, "Volume type %s could not be found.", r.PathValue("id"))
	}
	answer.JSON(w, http.StatusOK, map[string]any{"volume_type": one.body()})
	return nil
}

func (s *Service) createType(w http.ResponseWriter, r *http.Request) error {
	if err := adminOnly(r, "volume_extension:type_create"); err != nil {
		return err
	}
	var body struct {
		Type struct {
			Name        string `json:"name"`
			Description string `json:"description"`
		} `json:"volume_type"`
	}
	if err := readJSON(r, &body); err != nil {
		return err
	}
	name := strings.TrimSpace(body.Type.Name)
	if name == "" {
		return fault.New(fault.Invalid, "Invalid input for field/attribute name. A volume type has a name.")
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if _, there := s.findType(name); there {
		return answer.Failure{Status: http.StatusConflict, Message: "Volume Type " + name + " already exists."}
	}
	one := volumeType{ID: uuid.NewString(), Name: name, Description: body.Type.Description}
	if err := s.types.Put(one.ID, one); err != nil {
		return err
	}
	answer.JSON(w, http.StatusOK, map[string]any{"volume_type": one.body()})
	return nil
}

func (s *Service) deleteType(w http.ResponseWriter, r *http.Request) error {
	if err := adminOnly(r, "volume_extension:type_delete"); err != nil {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	one, ok := s.types.Get(r.PathValue("id"))
	switch {
	case !ok:
		return fault.New(fault.NotFound, "Volume type %s could not be found.", r.PathValue("id"))
	case one.ID == defaultType.ID || len(s.volumes.Where(func(v Volume) bool { return v.Type == one.Name })) > 0:
		return fault.New(fault.Invalid, "Target volume type is still in use.")
	}
	if _, err := s.types.Delete(one.ID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}
