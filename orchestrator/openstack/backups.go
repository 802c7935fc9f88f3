package openstack

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/backups"

	"github.com/burano/burano/internal/fault"
)

// backupVersion is the version of Cinder's API from which on backups have metadata (3.43), and volumes are made of them in one call (3.47).
const backupVersion = "3.47"

// Backup is a backup of a volume, as Cinder has it. Its statuses are called as a volume's.
type Backup struct {
	ID, Name, Description, Status string
	Volume                        string // its id; that volume need not be there any more
	GiB                           int
	Metadata                      map[string]string
	Made                          time.Time
	Failure                       string // why its status is error, in Cinder's words
}

func backupOf(one backups.Backup) Backup {
	backup := Backup{ID: one.ID, Name: one.Name, Description: one.Description, Status: one.Status, Volume: one.VolumeID, GiB: one.Size, Made: one.CreatedAt, Failure: one.FailReason}
	if one.Metadata != nil {
		backup.Metadata = maps.Clone(*one.Metadata)
	}
	return backup
}

func (b *BlockStorage) withBackups() *gophercloud.ServiceClient {
	client := *b.cinder
	client.Microversion = backupVersion
	return &client
}

// Backups are the project's backups with all of this metadata, the oldest first.
func (b *BlockStorage) Backups(ctx context.Context, metadata map[string]string) ([]Backup, error) {
	found, err := listAll(ctx, backups.ListDetail(b.withBackups(), backups.ListDetailOpts{}), backups.ExtractBackups)
	if err != nil {
		return nil, refusal(ctx, "Cinder", "list backups of volumes", err)
	}
	var list []Backup
	for _, one := range found {
		backup := backupOf(one)
		if subset(metadata, func(key, value string) bool { return backup.Metadata[key] == value }) {
			list = append(list, backup)
		}
	}
	slices.SortFunc(list, func(a, b Backup) int { return cmp.Or(a.Made.Compare(b.Made), cmp.Compare(a.ID, b.ID)) })
	return list, nil
}

// ErrNoBackups is the error of a cloud whose Cinder has no service for backups of volumes.
var ErrNoBackups = fault.New(fault.NotFound, "the cloud's Cinder makes no backups of volumes (it has no service cinder-backup that is up)")

// CreateBackup starts a backup of a volume, also of an attached one; it is complete when it is available. The error is ErrNoBackups in a cloud without backups. After an error
// that is no fault there may be a backup all the same.
func (b *BlockStorage) CreateBackup(ctx context.Context, wanted NewSnapshot) (Backup, error) {
	made, err := backups.Create(ctx, b.withBackups(), backups.CreateOpts{VolumeID: wanted.Volume, Force: true, Name: wanted.Name, Description: wanted.Description, Metadata: wanted.Metadata}).Extract()
	// https://opendev.org/openstack/cinder/src/branch/master/cinder/api/contrib/backups.py
	if gophercloud.ResponseCodeIs(err, http.StatusServiceUnavailable) && strings.Contains(err.Error(), "cinder-backup") {
		return Backup{}, ErrNoBackups
	}
	if err != nil {
		return Backup{}, refusal(ctx, "Cinder", "make a backup of volume "+wanted.Volume, err)
	}
	return Backup{ID: made.ID, Name: made.Name, Volume: wanted.Volume, Metadata: wanted.Metadata, Status: "creating"}, nil // Cinder answers with its id and name only
}

// Backup is the one with this id; NotFound when there is none.
func (b *BlockStorage) Backup(ctx context.Context, id string) (Backup, error) {
	if err := identified("backup", id); err != nil {
		return Backup{}, err
	}
	found, err := backups.Get(ctx, b.withBackups(), id).Extract()
	if err != nil {
		return Backup{}, refusal(ctx, "Cinder", "look at backup "+id, err)
	}
	return backupOf(*found), nil
}

// DeleteBackup asks for a backup to be deleted. That there is none is fine.
func (b *BlockStorage) DeleteBackup(ctx context.Context, id string) error {
	if err := identified("backup", id); err != nil {
		return err
	}
	err := backups.Delete(ctx, b.withBackups(), id).ExtractErr()
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return nil
	}
	return refusal(ctx, "Cinder", "delete backup "+id, err)
}
