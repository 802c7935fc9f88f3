package cinder

import (
	"errors"
	"net/http"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/test/localcloud/answer"
)

// Backup is a copy of a volume's content, independent of the volume. It is always available.
type Backup struct {
	ID, ProjectID, VolumeID, Name, Description string
	SizeGB                                     int
	Metadata                                   map[string]string
	CreatedAt                                  time.Time
}

func (s *Service) backupOf(projectID, id string) (Backup, error) {
	backup, ok := s.backups.Get(id)
	if !ok || backup.ProjectID != projectID {
		return Backup{}, fault.New(fault.NotFound, "Backup %s could not be found.", id)
	}
	return backup, nil
}

func (s *Service) backupBody(backup Backup) map[string]any {
	metadata := backup.Metadata
	if metadata == nil {
		metadata = map[string]string{}
	}
	return map[string]any{
		"id": backup.ID, "volume_id": backup.VolumeID, "snapshot_id": nil, "name": backup.Name, "description": optional(backup.Description), "size": backup.SizeGB,
		"status": StatusAvailable, "fail_reason": nil, "object_count": 0, "container": "backups", "is_incremental": false, "has_dependent_backups": false,
		"metadata": metadata, "availability_zone": s.zones[0], "created_at": timestamp(backup.CreatedAt), "updated_at": timestamp(backup.CreatedAt),
		"data_timestamp": timestamp(backup.CreatedAt), "links": s.links("backups", backup.ProjectID, backup.ID),
	}
}

func (s *Service) listBackups(w http.ResponseWriter, r *http.Request) error {
	project := identity.From(r.Context()).ProjectID
	found, err := page(r, s.backups.Where(func(one Backup) bool { return one.ProjectID == project }), func(one Backup) string { return one.ID })
	if err != nil {
		return err
	}
	bodies := []any{}
	for _, backup := range found {
		bodies = append(bodies, s.backupBody(backup))
	}
	answer.JSON(w, http.StatusOK, map[string]any{"backups": bodies})
	return nil
}

// createBackup copies a volume; one that a server has only when that is forced.
func (s *Service) createBackup(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Backup struct {
			VolumeID    string            `json:"volume_id"`
			Name        string            `json:"name"`
			Description string            `json:"description"`
			Force       bool              `json:"force"`
			Metadata    map[string]string `json:"metadata"`
		} `json:"backup"`
	}
	if err := readJSON(r, &body); err != nil {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	wanted, project := body.Backup, identity.From(r.Context()).ProjectID
	volume, err := s.Get(project, wanted.VolumeID)
	if err != nil {
		return err
	}
	if volume.Attachment != nil && !wanted.Force {
		return fault.New(fault.Conflict, "Invalid volume: Backing up an in-use volume must use the force flag.")
	}
	if err := s.checkQuota(project, usage{backups: 1, backupGigabytes: volume.SizeGB}); err != nil {
		return err
	}
	backup := Backup{ID: uuid.NewString(), ProjectID: project, VolumeID: volume.ID, Name: wanted.Name, Description: wanted.Description, SizeGB: volume.SizeGB, Metadata: wanted.Metadata, CreatedAt: s.now()}
	if err := s.makeFile(r.Context(), backup.ID, volume.ID, volume.SizeGB); err != nil {
		return err
	}
	if err := s.backups.Put(backup.ID, backup); err != nil {
		return err
	}
	answer.JSON(w, http.StatusAccepted, map[string]any{"backup": map[string]any{"id": backup.ID, "name": backup.Name, "links": s.links("backups", project, backup.ID)}}) // as Cinder, which makes it afterwards
	return nil
}

func (s *Service) showBackup(w http.ResponseWriter, r *http.Request) error {
	backup, err := s.backupOf(identity.From(r.Context()).ProjectID, r.PathValue("id"))
	if err != nil {
		return err
	}
	answer.JSON(w, http.StatusOK, map[string]any{"backup": s.backupBody(backup)})
	return nil
}

func (s *Service) deleteBackup(w http.ResponseWriter, r *http.Request) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	backup, err := s.backupOf(identity.From(r.Context()).ProjectID, r.PathValue("id"))
	if err != nil {
		return err
	}
	if _, err := s.backups.Delete(backup.ID); err != nil {
		return err
	}
	if err := os.Remove(s.file(backup.ID)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}
