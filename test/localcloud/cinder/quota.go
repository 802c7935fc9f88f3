package cinder

import (
	"cmp"
	"fmt"
	"net/http"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/test/localcloud/answer"
)

// Quota is the limits of a project; a negative one is unlimited.
type Quota struct {
	Volumes   *int `json:"volumes,omitempty"`
	Gigabytes *int `json:"gigabytes,omitempty"` // of volumes and snapshots
	Snapshots *int `json:"snapshots,omitempty"`
	Backups   *int `json:"backups,omitempty"`
}

// usage is a project's use, or its limits.
type usage struct{ volumes, gigabytes, snapshots, backups, backupGigabytes int }

// generous is the default quota of a project.
func generous() usage {
	return usage{volumes: 100, gigabytes: 1000, snapshots: 100, backups: 100, backupGigabytes: 1000}
}

func (s *Service) quotaOf(projectID string) usage {
	limit := generous()
	set, _ := s.quotas.Get(projectID)
	for wanted, field := range map[*int]*int{set.Volumes: &limit.volumes, set.Gigabytes: &limit.gigabytes, set.Snapshots: &limit.snapshots, set.Backups: &limit.backups} {
		if wanted != nil {
			*field = *wanted
		}
	}
	return limit
}

func (s *Service) used(projectID string) (sum usage) {
	for _, volume := range s.volumes.Where(func(one Volume) bool { return one.ProjectID == projectID }) {
		sum.volumes, sum.gigabytes = sum.volumes+1, sum.gigabytes+volume.SizeGB
	}
	for _, snapshot := range s.snapshots.Where(func(one Snapshot) bool { return one.ProjectID == projectID }) {
		sum.snapshots, sum.gigabytes = sum.snapshots+1, sum.gigabytes+snapshot.SizeGB
	}
	for _, backup := range s.backups.Where(func(one Backup) bool { return one.ProjectID == projectID }) {
		sum.backups, sum.backupGigabytes = sum.backups+1, sum.backupGigabytes+backup.SizeGB
	}
	return sum
}

// checkQuota refuses an addition beyond a project's quota. The caller holds the mutex.
func (s *Service) checkQuota(projectID string, more usage) error {
	limit, used := s.quotaOf(projectID), s.used(projectID)
	exceeds := func(more, used, limit int) bool { return more > 0 && limit >= 0 && used+more > limit }
	switch { // as Cinder: of several full quotas it names the room first
	case exceeds(more.gigabytes, used.gigabytes, limit.gigabytes):
		return fault.New(fault.TooLarge, "VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota. Requested %dG, "+
			"quota is %dG and %dG has been consumed.", more.gigabytes, limit.gigabytes, used.gigabytes)
	case exceeds(more.backupGigabytes, used.backupGigabytes, limit.backupGigabytes):
		return fault.New(fault.TooLarge, "VolumeBackupSizeExceedsAvailableQuota: Requested backup exceeds allowed Backup gigabytes quota. Requested %dG, quota is %dG and %dG has been consumed.",
			more.backupGigabytes, limit.backupGigabytes, used.backupGigabytes)
	case exceeds(more.volumes, used.volumes, limit.volumes):
		return fault.New(fault.TooLarge, "VolumeLimitExceeded: Maximum number of volumes allowed (%d) exceeded for quota 'volumes'.", limit.volumes)
	case exceeds(more.snapshots, used.snapshots, limit.snapshots):
		return fault.New(fault.TooLarge, "SnapshotLimitExceeded: Maximum number of snapshots allowed (%d) exceeded", limit.snapshots)
	case exceeds(more.backups, used.backups, limit.backups):
		return fault.New(fault.TooLarge, "BackupLimitExceeded: Maximum number of backups allowed (%d) exceeded", limit.backups)
	}
	return nil
}

func (s *Service) showLimits(w http.ResponseWriter, r *http.Request) error {
	project := identity.From(r.Context()).ProjectID
	limit, used := s.quotaOf(project), s.used(project)
	answer.JSON(w, http.StatusOK, map[string]any{"limits": map[string]any{"rate": []any{}, "absolute": map[string]any{
		"maxTotalVolumes": limit.volumes, "maxTotalVolumeGigabytes": limit.gigabytes, "maxTotalSnapshots": limit.snapshots,
		"maxTotalBackups": limit.backups, "maxTotalBackupGigabytes": limit.backupGigabytes, "totalVolumesUsed": used.volumes, "totalGigabytesUsed": used.gigabytes,
		"totalSnapshotsUsed": used.snapshots, "totalBackupsUsed": used.backups, "totalBackupGigabytesUsed": used.backupGigabytes,
	}}})
	return nil
}

func (s *Service) quotaBody(project string, limit usage, withUsage bool) map[string]any {
	used := s.used(project)
	value := func(limit, used int) any {
		if withUsage {
			return map[string]any{"limit": limit, "in_use": used, "reserved": 0, "allocated": 0}
		}
		return limit
	}
	return map[string]any{
		"id": project, "volumes": value(limit.volumes, used.volumes), "gigabytes": value(limit.gigabytes, used.gigabytes),
		"snapshots": value(limit.snapshots, used.snapshots), "backups": value(limit.backups, used.backups),
		"backup_gigabytes":     value(limit.backupGigabytes, used.backupGigabytes),
		"per_volume_gigabytes": value(-1, 0), "groups": value(0, 0),
	}
}

func (s *Service) showQuota(w http.ResponseWriter, r *http.Request) error {
	project := r.PathValue("of")
	if caller := identity.From(r.Context()); !caller.Admin && caller.ProjectID != project {
		return fault.New(fault.Forbidden, "Policy doesn't allow volume_extension:quotas:show to be performed.")
	}
	usage := r.URL.Query().Get("usage")
	answer.JSON(w, http.StatusOK, map[string]any{"quota_set": s.quotaBody(project, s.quotaOf(project), usage == "True" || usage == "true")})
	return nil
}

func (s *Service) showDefaultQuota(w http.ResponseWriter, r *http.Request) error {
	answer.JSON(w, http.StatusOK, map[string]any{"quota_set": s.quotaBody(r.PathValue("of"), generous(), false)})
	return nil
}

func (s *Service) updateQuota(w http.ResponseWriter, r *http.Request) error {
	if err := adminOnly(r, "volume_extension:quotas:update"); err != nil {
		return err
	}
	var body struct {
		Quota Quota `json:"quota_set"`
	}
	if err := readJSON(r, &body); err != nil {
		return err
	}
	project := r.PathValue("of")
	s.mutex.Lock()
	defer s.mutex.Unlock()
	set, _ := s.quotas.Get(project)
	set.Volumes = cmp.Or(body.Quota.Volumes, set.Volumes)
	set.Gigabytes = cmp.Or(body.Quota.Gigabytes, set.Gigabytes)
	set.Snapshots = cmp.Or(body.Quota.Snapshots, set.Snapshots)
	set.Backups = cmp.Or(body.Quota.Backups, set.Backups)
	if err := s.quotas.Put(project, set); err != nil {
		return fmt.Errorf("store a quota: %w", err)
	}
	answer.JSON(w, http.StatusOK, map[string]any{"quota_set": s.quotaBody(project, s.quotaOf(project), false)})
	return nil
}
