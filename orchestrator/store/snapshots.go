package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
)

// QuotaSnapshotBytes is how many bytes the snapshots of a project's clusters may take here, sealed.
const QuotaSnapshotBytes = "snapshot_bytes"

// SnapshotKind is the reason of a snapshot, which decides how long it stays.
type SnapshotKind string

// The kinds.
const (
	Requested    SnapshotKind = "requested" // by a user: it stays until a user deletes it
	Scheduled    SnapshotKind = "scheduled"
	Uploaded     SnapshotKind = "uploaded" // of backups only: it came as a file
	Passing      SnapshotKind = "clone"    // of backups only: it goes when the clone that it was made for has its files
	BeforeChange SnapshotKind = "change"   // before nodes or keys of the cluster changed
	OfBackup     SnapshotKind = "backup"   // a part of a backup, with its lifetime
	ClaimFiles   SnapshotKind = "claim"    // a part of a backup, too: the files of a claim, in place of etcd's state
)

// Snapshot is the state of a cluster's etcd at one moment. Its content is in pieces, which are sealed.
type Snapshot struct {
	ID              string
	ProjectID       string
	EnvironmentID   string
	EnvironmentName string
	ClusterID       string // the object's
	ClusterName     string
	Kind            SnapshotKind
	Reason          string // for a person
	Secrets         string `gorm:"serializer:sealed"` // the keys without which it cannot be used
	Revision        int64  // of etcd
	Size            int64  // bytes of the snapshot
	Stored          int64  // bytes of its pieces
	Created         Time
	Verified        Time   // when it was opened and found to be whole; 0 while it is being written
	Orphaned        Time   // when its environment was deleted; 0 while that is there
	BackupID        string // the backup that it belongs to; "" for none

	// Container is the address of the container with its pieces, "" for the table here; then Pieces is how many there may be, and
	// PieceKey the key that they are sealed under.
	Container string
	Pieces    int64
	PieceKey  string `gorm:"serializer:sealed"`
}

// snapshotPiece is a row of the table snapshot_pieces.
type snapshotPiece struct {
	SnapshotID string
	Number     int64
	Value      string // sealed
}

const (
	// abandoned is how long the writing of a snapshot takes at most; an older unfinished one was left by a server that
	// died.
	abandoned = 6 * time.Hour
	// removedPieces is how many pieces a transaction removes: few, because they are large.
	removedPieces = 64
)

// SnapshotOwner is the purpose for which a piece of a snapshot is sealed.
func SnapshotOwner(id string, number int64) string { return fmt.Sprintf("snapshot/%s/%d", id, number) }

// Snapshots stores the snapshots of clusters.
type Snapshots struct{ *handle }

// Snapshots are the snapshots of clusters.
func (s *Store) Snapshots() Snapshots { return Snapshots{s.handle} }

// BeginSnapshot adds a snapshot that is being written; its id and time are set here.
func (s Snapshots) BeginSnapshot(ctx context.Context, snapshot *Snapshot) error {
	snapshot.ID, snapshot.Created = NewID(), s.clock()
	return wrap(s.rows(ctx).Create(snapshot).Error, "begin a snapshot")
}

// AddPiece adds the next sealed piece of a snapshot that is being written; a full quota of the project is a fault
// (Forbidden).
func (s Snapshots) AddPiece(ctx context.Context, id string, number int64, sealed string) error {
	return s.transaction(ctx, "write a piece of a snapshot", func(tx *gorm.DB) error {
		if err := s.admitPiece(tx, id, int64(len(sealed)), nil); err != nil {
			return err
		}
		return tx.Create(&snapshotPiece{id, number, sealed}).Error
	})
}

// CountPiece counts the next piece of a snapshot, of so many bytes, before it is put into its container; a full quota of the project is a
// fault (Forbidden).
func (s Snapshots) CountPiece(ctx context.Context, id string, number, size int64) error {
	return s.transaction(ctx, "count a piece of a snapshot", func(tx *gorm.DB) error {
		return s.admitPiece(tx, id, size, map[string]any{"pieces": number + 1})
	})
}

func (s Snapshots) admitPiece(tx *gorm.DB, id string, size int64, change map[string]any) error {
	var snapshot Snapshot
	if err := tx.Select("project_id").Where("id = ?", id).Take(&snapshot).Error; err != nil {
		return err
	}
	if err := s.quotas.Admit(tx, snapshot.ProjectID, QuotaSnapshotBytes, size); err != nil {
		return err
	}
	if change == nil {
		change = map[string]any{}
	}
	change["stored"] = gorm.Expr("stored + ?", size)
	return tx.Model(&Snapshot{}).Where("id = ?", id).Updates(change).Error
}

// KeepSnapshot marks a snapshot as whole and readable.
func (s Snapshots) KeepSnapshot(ctx context.Context, id string, revision, size int64) error {
	return wrap(affected(s.rows(ctx).Model(&Snapshot{}).Where("id = ?", id).Updates(map[string]any{"revision": revision, "size": size, "verified": s.clock()})), "keep a snapshot")
}

// SnapshotFilter narrows a list of snapshots; empty fields do not.
type SnapshotFilter struct{ ProjectID, EnvironmentID, ClusterID string }

// Snapshots lists the snapshots of etcd that are whole, the newest first, without their secrets and keys.
func (s Snapshots) Snapshots(ctx context.Context, filter SnapshotFilter) ([]Snapshot, error) {
	query := s.reading(ctx).Omit("secrets", "piece_key").Where("verified <> 0 AND kind <> ?", ClaimFiles).Order("created DESC, id")
	query = matching(query, map[string]string{"project_id": filter.ProjectID, "environment_id": filter.EnvironmentID, "cluster_id": filter.ClusterID})
	return readAll[Snapshot](query, "list snapshots")
}

// Snapshot returns a snapshot that is whole, or ErrNotFound.
func (s Snapshots) Snapshot(ctx context.Context, id string) (Snapshot, error) {
	return readOne[Snapshot](s.reading(ctx).Where("id = ? AND verified <> 0", id), "read a snapshot")
}

// Environment returns the environment of a snapshot that is to be made, or ErrNotFound.
func (s Snapshots) Environment(ctx context.Context, id string) (Environment, error) {
	return Environments(s).Get(ctx, id)
}

// SnapshotPieces returns the place of a snapshot's pieces, whole or not: of Snapshot only ID, Container, Pieces and PieceKey are set.
func (s Snapshots) SnapshotPieces(ctx context.Context, id string) (Snapshot, error) {
	return readOne[Snapshot](s.reading(ctx).Select("id", "container", "pieces", "piece_key").Where("id = ?", id), "look where the pieces of a snapshot are")
}

// HideSnapshot removes a snapshot from lists, so that it can be removed.
func (s Snapshots) HideSnapshot(ctx context.Context, id string) error {
	return wrap(s.rows(ctx).Model(&Snapshot{}).Where("id = ?", id).Update("verified", 0).Error, "remove a snapshot")
}

// Piece returns a sealed piece of a snapshot; false when it has no more.
func (s Snapshots) Piece(ctx context.Context, id string, number int64) (string, bool, error) {
	var rows []snapshotPiece
	err := s.reading(ctx).Where("snapshot_id = ? AND number = ?", id, number).Limit(1).Find(&rows).Error
	if err != nil || len(rows) == 0 {
		return "", false, wrap(err, "read a piece of a snapshot")
	}
	return rows[0].Value, true, nil
}

// DeleteSnapshot removes the rows of a snapshot, whole or not; a missing one is no error. It is listed no more as soon as that begins.
func (s Snapshots) DeleteSnapshot(ctx context.Context, id string) error {
	err := s.HideSnapshot(ctx, id)
	for more := true; more && err == nil; {
		err = s.transaction(ctx, "remove a snapshot", func(tx *gorm.DB) error {
			var numbers []int64
			if err := tx.Model(&snapshotPiece{}).Where("snapshot_id = ?", id).Limit(removedPieces).Pluck("number", &numbers).Error; err != nil {
				return err
			}
			if more = len(numbers) > 0; !more {
				return tx.Where("id = ?", id).Delete(&Snapshot{}).Error
			}
			return tx.Where("snapshot_id = ? AND number IN ?", id, numbers).Delete(&snapshotPiece{}).Error
		})
	}
	return wrap(err, "remove a snapshot")
}

// orphan marks the snapshots of a deleted environment.
func (s Snapshots) orphan(tx *gorm.DB, environmentID string) error {
	return tx.Model(&Snapshot{}).Where("environment_id = ?", environmentID).Update("orphaned", s.clock()).Error
}

// sweepSnapshots removes the snapshots of environments that were deleted before the time, and cannot be restored, except parts of backups.
func (s Expired) sweepSnapshots(ctx context.Context, until Time, swept *Swept, remove removal) (more bool, err error) {
	return s.sweepSnapshotsWhere(ctx, swept, remove, "orphaned <> 0 AND orphaned < ? AND backup_id = '' AND NOT EXISTS (SELECT 1 FROM deleted_environments WHERE deleted_environments.environment_id = snapshots.environment_id)", until)
}

// sweepAbandoned removes snapshots whose writer has died.
func (s Expired) sweepAbandoned(ctx context.Context, swept *Swept, remove removal) (more bool, err error) {
	return s.sweepSnapshotsWhere(ctx, swept, remove, "verified = 0 AND created < ?", s.clock()-Time(abandoned.Microseconds()))
}

// removal removes a snapshot with all its pieces, wherever they are.
type removal func(ctx context.Context, id string) error

func (s Expired) sweepSnapshotsWhere(ctx context.Context, swept *Swept, remove removal, condition string, until Time) (more bool, err error) {
	var ids []string
	err = s.sweeping(ctx, "look for old snapshots", func(tx *gorm.DB) error {
		return tx.Model(&Snapshot{}).Where(condition, until).Limit(sweptTogether).Pluck("id", &ids).Error
	})
	for _, id := range ids {
		failed := remove(ctx, id)
		if failed == nil {
			swept.Snapshots++
		}
		err = errors.Join(err, failed) // the others go on
	}
	return len(ids) == sweptTogether, err
}
