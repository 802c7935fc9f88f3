package volumes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/orchestrator/openstack"
)

// Backups of claims are backups of their volumes in Cinder, or snapshots where the cloud makes no backups. All that is known of them is in their metadata, so that they can be
// restored when their cluster is gone, and into another one of the project.
const (
	backupMetadata    = "burano_backup" // why it was made: Requested or Scheduled
	backupNamespace   = "burano_namespace"
	backupClaim       = "burano_claim"
	backupClass       = "burano_class"
	backupReclaim     = "burano_reclaim"
	backupModes       = "burano_access" // with commas
	backupMode        = "burano_mode"
	backupFileSystem  = "burano_file_system"
	backupZone        = "burano_zone"
	backupMount       = "burano_mount" // options, with commas
	backupClusterName = "burano_cluster_name"
)

// Why a backup is made.
const (
	Requested = "requested"
	Scheduled = "scheduled"
)

// The kinds of backups.
const (
	KindBackup   = "backup"   // one of Cinder, apart from its volume
	KindSnapshot = "snapshot" // no safer than its volume's disks, and an obstacle to its volume's deletion
)

// BackupCloud is the cloud's part (see each call in openstack.BlockStorage).
type BackupCloud interface {
	Backups(ctx context.Context, metadata map[string]string) ([]openstack.Backup, error)
	Backup(ctx context.Context, id string) (openstack.Backup, error)
	CreateBackup(ctx context.Context, wanted openstack.NewSnapshot) (openstack.Backup, error)
	DeleteBackup(ctx context.Context, id string) error
	TaggedSnapshots(ctx context.Context, name string, metadata map[string]string) ([]openstack.Snapshot, error)
	Snapshot(ctx context.Context, id string) (openstack.Snapshot, error)
	CreateSnapshot(ctx context.Context, wanted openstack.NewSnapshot) (openstack.Snapshot, error)
	DeleteSnapshot(ctx context.Context, id string) error
	Tagged(ctx context.Context, name string, metadata map[string]string) ([]openstack.Volume, error)
	Volume(ctx context.Context, id string) (openstack.Volume, error)
	Create(ctx context.Context, wanted openstack.NewVolume) (openstack.Volume, error)
	Delete(ctx context.Context, id string) error
}

// Claim is a claim with its volume, as a backup keeps it.
type Claim struct {
	Namespace, Name string
	Class           string   // its storage class; "" for none
	Reclaim         string   // Delete or Retain
	Modes           []string // of access
	Mode            string   // Filesystem or Block
	FileSystem      string
	Zone            string   // "" for any
	MountOptions    []string // none has a comma
	Volume          string   // id in Cinder
}

// String is the claim with its namespace.
func (c Claim) String() string { return c.Namespace + "/" + c.Name }

// Backup is a backup of a claim.
type Backup struct {
	ID, Name, Status, Description string
	Kind                          string // KindBackup or KindSnapshot
	Why                           string // Requested or Scheduled
	Cluster, ClusterName          string // Cluster is its ClusterID
	Claim                         Claim
	GiB                           int
	Made                          time.Time
	Failure                       string
}

func backupOf(kind, id, name, status, volume string, gib int, made time.Time, metadata map[string]string) Backup {
	listed := func(key string) []string {
		return slices.DeleteFunc(strings.Split(metadata[key], ","), func(one string) bool { return one == "" })
	}
	return Backup{ID: id, Name: name, Status: status, Kind: kind, Why: metadata[backupMetadata], Cluster: metadata[ClusterMetadata], ClusterName: metadata[backupClusterName], GiB: gib, Made: made,
		Claim: Claim{Namespace: metadata[backupNamespace], Name: metadata[backupClaim], Class: metadata[backupClass], Reclaim: metadata[backupReclaim], Modes: listed(backupModes),
			Mode: metadata[backupMode], FileSystem: metadata[backupFileSystem], Zone: metadata[backupZone], MountOptions: listed(backupMount), Volume: volume}}
}

// Backups are a project's backups of claims, the newest first; the ones of one cluster unless its ClusterID is "".
func Backups(ctx context.Context, cloud BackupCloud, cluster string) (list []Backup, err error) {
	tag := map[string]string{}
	if cluster != "" {
		tag[ClusterMetadata] = cluster
	}
	backups, err := cloud.Backups(ctx, tag)
	if err != nil {
		return nil, err
	}
	snapshots, err := cloud.TaggedSnapshots(ctx, "", tag)
	if err != nil {
		return nil, err
	}
	for _, one := range backups {
		backup := backupOf(KindBackup, one.ID, one.Name, one.Status, one.Volume, one.GiB, one.Made, one.Metadata)
		backup.Failure, backup.Description = one.Failure, one.Description
		list = append(list, backup)
	}
	for _, one := range snapshots {
		list = append(list, backupOf(KindSnapshot, one.ID, one.Name, one.Status, one.Volume, one.GiB, one.Made, one.Metadata))
	}
	list = slices.DeleteFunc(list, func(one Backup) bool { return one.Why == "" }) // of another maker, or a VolumeSnapshot's
	slices.SortFunc(list, func(a, b Backup) int { return cmp.Or(b.Made.Compare(a.Made), cmp.Compare(a.ID, b.ID)) })
	return list, nil
}

// Order is the reason for backups.
type Order struct {
	Cluster, ClusterName string // Cluster is its ClusterID
	Why, Reason          string // Why is Requested or Scheduled, Reason for people
	Run                  string // one order has one: made again, it finds the backups that it has made
}

// BackUp makes the cloud begin a backup of a claim, unless the order has begun one already: list are all backups of the cluster. Where the cloud makes no
// backups, and has made none of the cluster's claims yet, it is a snapshot.
func BackUp(ctx context.Context, cloud BackupCloud, order Order, claim Claim, list []Backup) (Backup, error) {
	wanted := openstack.NewSnapshot{Name: "burano-" + order.Run + "-" + claim.Volume, Volume: claim.Volume, Description: strings.TrimSpace(fmt.Sprintf("Claim %s of cluster %s. %s", claim, order.ClusterName, order.Reason)),
		Metadata: map[string]string{ClusterMetadata: order.Cluster, backupClusterName: order.ClusterName, backupMetadata: order.Why, RetainMetadata: "true", backupNamespace: claim.Namespace, backupClaim: claim.Name,
			backupClass: claim.Class, backupReclaim: claim.Reclaim, backupModes: strings.Join(claim.Modes, ","), backupMode: claim.Mode, backupFileSystem: claim.FileSystem,
			backupZone: claim.Zone, backupMount: strings.Join(claim.MountOptions, ",")}}
	maps.DeleteFunc(wanted.Metadata, func(_, value string) bool { return value == "" })
	for _, one := range list {
		if one.Name == wanted.Name && !strings.HasPrefix(one.Status, openstack.VolumeError) {
			return one, nil
		}
	}
	backup, err := cloud.CreateBackup(ctx, wanted)
	if err == nil {
		return backupOf(KindBackup, backup.ID, backup.Name, backup.Status, claim.Volume, backup.GiB, backup.Made, wanted.Metadata), nil
	}
	if !errors.Is(err, openstack.ErrNoBackups) || slices.ContainsFunc(list, func(one Backup) bool { return one.Kind == KindBackup }) {
		return Backup{}, err
	}
	snapshot, err := cloud.CreateSnapshot(ctx, wanted)
	if err != nil {
		return Backup{}, err
	}
	return backupOf(KindSnapshot, snapshot.ID, snapshot.Name, snapshot.Status, claim.Volume, snapshot.GiB, snapshot.Made, wanted.Metadata), nil
}

// Complete waits until a backup can be restored. One that Cinder could not make is a fault with its reason.
func Complete(ctx context.Context, cloud BackupCloud, backup Backup) error {
	return looks.Until(ctx, func(ctx context.Context) error {
		state, failure, err := backupState(ctx, cloud, backup)
		switch {
		case err != nil:
			return err
		case state == openstack.VolumeAvailable:
			return nil
		case strings.HasPrefix(state, openstack.VolumeError):
			return fault.New(fault.Conflict, "Cinder could not make the %s %s of claim %s: %s", backup.Kind, backup.ID, backup.Claim, cmp.Or(failure, "it does not say why"))
		}
		return wait.Again(fmt.Errorf("the %s %s of claim %s is %s", backup.Kind, backup.ID, backup.Claim, state))
	})
}

func backupState(ctx context.Context, cloud BackupCloud, backup Backup) (state, failure string, err error) {
	if backup.Kind == KindSnapshot {
		now, err := cloud.Snapshot(ctx, backup.ID)
		return now.Status, "", err
	}
	now, err := cloud.Backup(ctx, backup.ID)
	return now.Status, now.Failure, err
}

// DeleteBackup asks for a backup to be deleted.
func DeleteBackup(ctx context.Context, cloud BackupCloud, backup Backup) error {
	if backup.Kind == KindSnapshot {
		return cloud.DeleteSnapshot(ctx, backup.ID)
	}
	return cloud.DeleteBackup(ctx, backup.ID)
}

// BackupGone waits until Cinder has deleted a backup. One that it could not delete is a fault.
func BackupGone(ctx context.Context, cloud BackupCloud, backup Backup) error {
	if backup.Kind == KindSnapshot {
		return SnapshotGone(ctx, cloud, backup.ID)
	}
	err := looks.Until(ctx, func(ctx context.Context) error {
		now, err := cloud.Backup(ctx, backup.ID)
		if err != nil {
			return err
		}
		return stillThere("backup", backup.ID, now.Status)
	})
	if fault.KindOf(err) == fault.NotFound {
		return nil
	}
	return err
}

// Due are the claims of which no scheduled backup is as young as this, and none is being made.
func Due(claims []Claim, list []Backup, every time.Duration, now time.Time) []Claim {
	return slices.DeleteFunc(slices.Clone(claims), func(claim Claim) bool {
		return slices.ContainsFunc(list, func(one Backup) bool {
			return one.Why == Scheduled && one.Claim.String() == claim.String() && !strings.HasPrefix(one.Status, openstack.VolumeError) && now.Sub(one.Made) < every
		})
	})
}

// Surplus are the scheduled backups beyond the number that is kept of each claim, and the ones that Cinder could not make. list has the newest first.
func Surplus(list []Backup, kept int) (surplus []Backup) {
	there := map[string]int{}
	for _, one := range list {
		switch {
		case one.Why != Scheduled:
		case strings.HasPrefix(one.Status, openstack.VolumeError):
			surplus = append(surplus, one)
		case one.Status == openstack.VolumeAvailable:
			if there[one.Claim.String()]++; there[one.Claim.String()] > kept {
				surplus = append(surplus, one)
			}
		}
	}
	return surplus
}

// Restore has the cloud make a volume of a backup for a cluster, by its ClusterID, or finds the one of this name that an earlier call has had it make. It returns when that is available.
// The volume has the name of its PersistentVolume.
func Restore(ctx context.Context, cloud BackupCloud, backup Backup, cluster, name string, claim Claim) (openstack.Volume, error) {
	tag := map[string]string{ClusterMetadata: cluster}
	there, err := cloud.Tagged(ctx, name, tag)
	if err != nil {
		return openstack.Volume{}, err
	}
	var volume openstack.Volume
	if len(there) > 0 {
		volume = there[0]
	} else {
		wanted := openstack.NewVolume{Name: name, Description: fmt.Sprintf("Claim %s, of %s %s of %s, made by Burano", claim, backup.Kind, backup.ID, backup.Claim), Zone: claim.Zone, GiB: backup.GiB, Metadata: tag}
		if claim.Reclaim == "Retain" {
			tag[RetainMetadata] = "true"
		}
		if backup.Kind == KindSnapshot {
			wanted.Snapshot = backup.ID
		} else {
			wanted.Backup = backup.ID
		}
		if volume, err = cloud.Create(ctx, wanted); err != nil {
			return volume, err
		}
	}
	err = looks.Until(ctx, func(ctx context.Context) error {
		if volume, err = cloud.Volume(ctx, volume.ID); err != nil {
			return err
		}
		switch {
		case volume.Status == openstack.VolumeAvailable || volume.Status == openstack.VolumeInUse:
			return nil
		case strings.HasPrefix(volume.Status, openstack.VolumeError):
			return errors.Join(fault.New(fault.Conflict, "Cinder could not make volume %s of %s %s (its status is %s): it is deleted", volume.ID, backup.Kind, backup.ID, volume.Status), cloud.Delete(ctx, volume.ID))
		}
		return wait.Again(fmt.Errorf("volume %s is %s", volume.ID, volume.Status))
	})
	return volume, err
}
