package store

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"gorm.io/gorm"
)

// Backup is an environment at one moment: its model, the state of its clusters' etcd, and the files of their claims.
type Backup struct {
	ID              string
	ProjectID       string
	EnvironmentID   string
	EnvironmentName string
	TaskID          string       // that makes it
	Kind            SnapshotKind // Requested, Scheduled, Uploaded or Passing
	Reason          string       // for a person
	Created         Time
	Touched         Time           // the last progress of the upload that makes it; 0 where a task makes it
	Whole           Time           // when all of it was stored; 0 before
	Held            int64          // for how many milliseconds pods were frozen
	Model           Model          `gorm:"serializer:sealed"`
	Parts           BackupContents `gorm:"serializer:sealed"`
}

// BackupContents are the parts of a backup beside the model.
type BackupContents struct {
	// Attributes are stored by code in MuranoPL with the environment's objects; Secrets are their sealed values, by name.
	Attributes []Attribute       `json:"attributes,omitempty"`
	Secrets    map[string][]byte `json:"secrets,omitempty"`
	Clusters   []BackupCluster   `json:"clusters,omitempty"`
	// Missing are absent claims, each with the reason, and Warnings other notes for a user.
	Missing  map[string]string `json:"missing,omitempty"`
	Warnings []string          `json:"warnings,omitempty"`
}

// BackupCluster is a cluster in a backup.
type BackupCluster struct {
	ObjectID string        `json:"objectId"`
	Class    string        `json:"class"` // of the object
	Name     string        `json:"name"`
	Snapshot string        `json:"snapshot"` // of its etcd
	Claims   []BackupClaim `json:"claims,omitempty"`
}

// BackupClaim is a claim in a backup.
type BackupClaim struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Class     string `json:"class"`
	Size      string `json:"size"` // that it asks for
	Volume    string `json:"volume"`
	Node      string `json:"node"`
	Bytes     int64  `json:"bytes"`    // of its files
	Content   string `json:"content"`  // the Snapshot that has them
	Checksum  string `json:"checksum"` // of the archive, by SHA-256
	Object    []byte `json:"object"`   // the claim to create at a restore, as JSON of Kubernetes
}

// Value writes the column.
func (c BackupContents) Value() (driver.Value, error) { return encode(c) }

// Scan reads the column.
func (c *BackupContents) Scan(source any) error { return decode(source, c) }

// Backups stores backups in the database.
type Backups struct{ *handle }

// Backups are the backups of environments.
func (s *Store) Backups() Backups { return Backups{s.handle} }

// Begin adds a backup that is being made; its id and time are set here.
func (b Backups) Begin(ctx context.Context, backup *Backup) error {
	backup.ID, backup.Created = NewID(), b.clock()
	if backup.TaskID == "" {
		backup.Touched = backup.Created
	}
	return wrap(b.rows(ctx).Create(backup).Error, "begin a backup")
}

// Keep notes that a backup is whole.
func (b Backups) Keep(ctx context.Context, backup Backup) error {
	backup.Whole = b.clock()
	return wrap(affected(b.rows(ctx).Select("created", "whole", "held", "parts").Where("id = ?", backup.ID).Updates(&backup)), "keep a backup")
}

// Touch notes that the upload of a backup goes on.
func (b Backups) Touch(ctx context.Context, id string) error {
	return wrap(affected(b.rows(ctx).Model(&Backup{}).Where("id = ? AND whole = 0", id).Update("touched", b.clock())), "note that an upload goes on")
}

// Admit refuses a backup that would not fit into the project's quota (Forbidden).
func (b Backups) Admit(ctx context.Context, projectID string, bytes int64) error {
	return b.transaction(ctx, "look whether a backup fits", func(tx *gorm.DB) error {
		return b.quotas.Admit(tx, projectID, QuotaSnapshotBytes, bytes)
	})
}

// LeftBackup is a backup that is not whole and that nothing makes any more.
type LeftBackup struct {
	ID, EnvironmentID string
	InCluster         bool // a task made it in the last days, and its environment is there: clusters may have remains of it
}

// remainsKept is how long it is tried to remove what a backup has left in clusters.
const remainsKept = 7 * 24 * time.Hour

// Left lists unfinished backups without a maker: their task has ended, or their upload has paused for longer than the patience.
func (b Backups) Left(ctx context.Context, patience time.Duration) (list []LeftBackup, err error) {
	err = b.reading(ctx).Model(&Backup{}).Select("id, environment_id, (task_id <> '' AND created > ? AND environment_id IN (SELECT id FROM environments WHERE deleted = 0)) AS in_cluster", b.clock()-Time(remainsKept.Microseconds())).Where("whole = 0 AND (task_id = '' AND touched < ? OR task_id <> '' AND NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.id = backups.task_id AND tasks.finished IS NULL))",
		b.clock()-Time(patience.Microseconds())).Order("created").Scan(&list).Error
	return list, wrap(err, "look for the remains of backups")
}

// WaitedFor are the environments that wait for the files of backups, by the backups' ids, according to this attribute of their
// clusters.
func (b Backups) WaitedFor(ctx context.Context, attribute string) (map[string]string, error) {
	var list []Attribute
	if err := b.reading(ctx).Where("name = ? AND environment_id IN (SELECT id FROM environments WHERE deleted = 0)", attribute).Find(&list).Error; err != nil {
		return nil, wrap(err, "look which environments wait for backups")
	}
	waited := map[string]string{}
	for _, one := range list {
		var id string
		if json.Unmarshal([]byte(one.Value), &id) == nil {
			waited[id] = one.EnvironmentID
		}
	}
	return waited, nil
}

// Unbegun are the ids of environments that were made of backups before a time, as this attribute of their clusters says, and in which nothing was ever begun. Environments of drills
// are left out.
func (b Backups) Unbegun(ctx context.Context, attribute string, before Time) (ids []string, err error) {
	err = b.reading(ctx).Model(&Environment{}).Where("deleted = 0 AND created < ? AND id IN (SELECT environment_id FROM attributes WHERE name = ?) "+
		"AND NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.environment_id = environments.id) AND NOT EXISTS (SELECT 1 FROM backup_drills WHERE clone_id = environments.id AND ended = 0)", before, attribute).
		Pluck("id", &ids).Error
	return ids, wrap(err, "look for environments of backups that were not begun")
}

// BackupFilter narrows a list of backups; empty fields do not.
type BackupFilter struct {
	ProjectID, EnvironmentID, TaskID string
	Kind                             SnapshotKind
	Whole                            bool // leaves out the others
}

// List lists backups, the newest first, without their models.
func (b Backups) List(ctx context.Context, filter BackupFilter) ([]Backup, error) {
	query := b.reading(ctx).Omit("model").Order("created DESC, id")
	query = matching(query, map[string]string{"project_id": filter.ProjectID, "environment_id": filter.EnvironmentID, "task_id": filter.TaskID, "kind": string(filter.Kind)})
	if filter.Whole {
		query = query.Where("whole <> 0")
	}
	return readAll[Backup](query, "list backups")
}

// Get returns a backup, or ErrNotFound.
func (b Backups) Get(ctx context.Context, id string) (Backup, error) {
	return readOne[Backup](b.reading(ctx).Where("id = ?", id), "read a backup")
}

// Parts are the ids of the snapshots that a backup has, whole or not.
func (b Backups) Parts(ctx context.Context, id string) (ids []string, err error) {
	err = b.reading(ctx).Model(&Snapshot{}).Where("backup_id = ?", id).Order("created").Pluck("id", &ids).Error
	return ids, wrap(err, "list the parts of a backup")
}

// Remove removes a backup whose parts are gone.
func (b Backups) Remove(ctx context.Context, id string) error {
	return wrap(b.rows(ctx).Where("id = ?", id).Delete(&Backup{}).Error, "remove a backup")
}

// Kept are the attributes that code has stored with the objects of an environment, and the names of the secrets with their values: prefix begins the names of attributes. Attributes of
// Murano's core classes belong to servers and networks, and not to applications.
func (b Backups) Kept(ctx context.Context, environmentID, prefix string) (list []Attribute, secrets []string, err error) {
	err = b.reading(ctx).Where("environment_id = ? AND substr(name, 1, ?) = ? AND substr(class, 1, ?) <> ?", environmentID, len(prefix), prefix, len(coreClasses), coreClasses).Find(&list).Error
	if err == nil {
		err = b.reading(ctx).Model(&secretRow{}).Where("environment_id = ? AND substr(name, 1, ?) = ?", environmentID, len(attributeSecrets), attributeSecrets).Pluck("name", &secrets).Error
	}
	return list, secrets, wrap(err, "list what code has kept")
}

// IsCodes reports whether code has stored an attribute, so that Backups.Kept lists it.
func IsCodes(attribute Attribute, prefix string) bool {
	return strings.HasPrefix(attribute.Name, prefix) && !strings.HasPrefix(attribute.Class, coreClasses)
}

// IsAttributeSecret reports whether a secret of this name is the value of an attribute.
func IsAttributeSecret(name string) bool { return strings.HasPrefix(name, attributeSecrets) }

// coreClasses begins the names of Murano's core classes.
const coreClasses = "io.murano"

// BackupSchedule is the schedule of an environment's backups.
type BackupSchedule struct {
	EnvironmentID string `gorm:"primaryKey"`
	Hours         int64  // between two backups
	Kept          int64  // how many of them stay
	Incomplete    bool   // whether claims may be missing
	DrillHours    int64  // between two drills, 0 for none
	UserName      string // the user that has set it
	Updated       Time
}

// Schedule returns the schedule of an environment; false when it has none.
func (b Backups) Schedule(ctx context.Context, environmentID string) (schedule BackupSchedule, found bool, err error) {
	err = b.reading(ctx).Where("environment_id = ?", environmentID).Limit(1).Find(&schedule).Error
	return schedule, schedule.EnvironmentID != "", wrap(err, "read a schedule of backups")
}

// SetSchedule sets an environment's schedule, in place of a former one.
func (b Backups) SetSchedule(ctx context.Context, schedule BackupSchedule) error {
	schedule.Updated = b.clock()
	return wrap(b.rows(ctx).Save(&schedule).Error, "write a schedule of backups")
}

// BackupsDuty is the name of the keeper's duty that makes scheduled backups.
const BackupsDuty = "environment-backups"

// LookNow makes the duty due now in an environment. A running look does not count.
func (b Backups) LookNow(ctx context.Context, environmentID string) error {
	return b.transaction(ctx, "make a duty due", func(tx *gorm.DB) error {
		var row Keeper
		err := locked(tx).Where("environment_id = ?", environmentID).Take(&row).Error
		if errors.Is(err, gorm.ErrRecordNotFound) {
			return nil // all are due
		}
		if err != nil {
			return err
		}
		delete(row.Duties, BackupsDuty)
		return tx.Model(&Keeper{}).Where("environment_id = ?", environmentID).Updates(map[string]any{"due": 0, "duties": row.Duties}).Error
	})
}

// RemoveSchedule removes an environment's schedule.
func (b Backups) RemoveSchedule(ctx context.Context, environmentID string) error {
	return wrap(b.rows(ctx).Where("environment_id = ?", environmentID).Delete(&BackupSchedule{}).Error, "remove a schedule of backups")
}

// BackupDrill is a test whether a backup can be restored: it makes a second environment of it, and removes that again.
type BackupDrill struct {
	ID               string
	ProjectID        string
	EnvironmentID    string // whose backup it is
	BackupID         string
	CloneID          string // the environment beside
	CloneName        string
	UserID, UserName string // the user that requested it
	Began            Time
	Answered         Time   // when all applications answered; 0 when they did not
	Failure          string // why they did not; "" while that is not known
	NextLook         Time
	Ended            Time // when the second environment was gone; 0 before
}

// AddDrill adds a drill that begins; its id, the second environment's id, and times are set here.
func (b Backups) AddDrill(ctx context.Context, drill *BackupDrill, patience time.Duration) error {
	drill.ID, drill.CloneID, drill.Began = NewID(), NewID(), b.clock()
	drill.NextLook = drill.Began + Time(patience.Microseconds())
	return wrap(b.rows(ctx).Create(drill).Error, "begin a drill")
}

// Drills lists the drills of an environment's backups, the newest first, at most so many.
func (b Backups) Drills(ctx context.Context, environmentID string, most int) ([]BackupDrill, error) {
	return readAll[BackupDrill](b.reading(ctx).Where("environment_id = ?", environmentID).Order("began DESC, id").Limit(most), "list drills")
}

// TakeDrill returns a drill that is due; false when there is none. Other callers do not get it during the pause.
func (b Backups) TakeDrill(ctx context.Context, pause time.Duration) (drill BackupDrill, found bool, err error) {
	err = b.transaction(ctx, "take a drill", func(tx *gorm.DB) error {
		now := b.clock()
		var due []BackupDrill
		if err := tx.Where("ended = 0 AND next_look <= ?", now).Order("next_look").Limit(1).Find(&due).Error; err != nil || len(due) == 0 {
			return err
		}
		taken := tx.Model(&BackupDrill{}).Where("id = ? AND next_look = ?", due[0].ID, due[0].NextLook).Update("next_look", now+Time(pause.Microseconds()))
		if drill, found = due[0], taken.RowsAffected == 1; taken.Error != nil {
			found = false
		}
		return taken.Error
	})
	return drill, found, err
}

// NoteDrill writes the state of a drill, which is due again after the pause.
func (b Backups) NoteDrill(ctx context.Context, drill BackupDrill, pause time.Duration) error {
	values := map[string]any{"answered": drill.Answered, "failure": drill.Failure, "ended": drill.Ended, "next_look": b.clock() + Time(pause.Microseconds())}
	return wrap(b.rows(ctx).Model(&BackupDrill{}).Where("id = ?", drill.ID).Updates(values).Error, "note a drill")
}

// DrillsDue are the schedules with a due drill: none runs, and the interval since the last one has passed, in hours of this length.
func (b Backups) DrillsDue(ctx context.Context, hour time.Duration) ([]BackupSchedule, error) {
	return readAll[BackupSchedule](b.reading(ctx).Where("drill_hours > 0 AND NOT EXISTS (SELECT 1 FROM backup_drills d WHERE d.environment_id = backup_schedules.environment_id "+
		"AND (d.ended = 0 OR d.began > ? - backup_schedules.drill_hours * ?))", b.clock(), hour.Microseconds()), "look which drills are due")
}

// ForgetDrills removes drills that ended before a time.
func (b Backups) ForgetDrills(ctx context.Context, before Time) error {
	return wrap(b.rows(ctx).Where("ended <> 0 AND ended < ?", before).Delete(&BackupDrill{}).Error, "forget drills")
}
