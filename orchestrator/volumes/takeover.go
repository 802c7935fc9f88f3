package volumes

import (
	"context"
	"fmt"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/openstack"
)

// MarkedVolumes is what TakeOver asks Cinder for (openstack.BlockStorage).
type MarkedVolumes interface {
	Tagged(ctx context.Context, name string, metadata map[string]string) ([]openstack.Volume, error)
	TaggedSnapshots(ctx context.Context, name string, metadata map[string]string) ([]openstack.Snapshot, error)
	Note(ctx context.Context, id string, metadata map[string]string) error
	NoteSnapshot(ctx context.Context, id string, metadata map[string]string) error
}

// MarkedShares is what TakeOverShares asks Manila for (openstack.SharedFileSystems).
type MarkedShares interface {
	Tagged(ctx context.Context, name string, metadata map[string]string) ([]openstack.Share, error)
	Note(ctx context.Context, id string, metadata map[string]string) error
}

// TakeOver marks the volumes of a cluster that is gone, and their snapshots, as those of another one, both by their ClusterID, and names them. Backups stay
// under the mark of the cluster that they are of.
func TakeOver(ctx context.Context, cloud MarkedVolumes, from, to string) (taken []string, err error) {
	tag, mark := map[string]string{ClusterMetadata: from}, map[string]string{ClusterMetadata: to}
	snapshots, err := cloud.TaggedSnapshots(ctx, "", tag)
	if err != nil {
		return nil, err
	}
	for _, one := range snapshots {
		if one.Metadata[backupMetadata] != "" {
			continue
		}
		if err := cloud.NoteSnapshot(ctx, one.ID, mark); fault.KindOf(err) == fault.NotFound {
			continue
		} else if err != nil {
			return taken, err
		}
		taken = append(taken, fmt.Sprintf("snapshot %s (%s)", one.ID, one.Name))
	}
	all, err := cloud.Tagged(ctx, "", tag)
	if err != nil {
		return taken, err
	}
	for _, one := range all {
		if err := cloud.Note(ctx, one.ID, mark); fault.KindOf(err) == fault.NotFound {
			continue
		} else if err != nil {
			return taken, err
		}
		taken = append(taken, fmt.Sprintf("volume %s (%s, %d GiB)", one.ID, one.Name, one.GiB))
	}
	return taken, nil
}

// TakeOverShares is TakeOver for shares.
func TakeOverShares(ctx context.Context, cloud MarkedShares, from, to string) (taken []string, err error) {
	all, err := cloud.Tagged(ctx, "", map[string]string{ClusterMetadata: from})
	if err != nil {
		return nil, err
	}
	for _, one := range all {
		if err := cloud.Note(ctx, one.ID, map[string]string{ClusterMetadata: to}); fault.KindOf(err) == fault.NotFound {
			continue
		} else if err != nil {
			return taken, err
		}
		taken = append(taken, fmt.Sprintf("share %s (%s, %d GiB)", one.ID, one.Name, one.GiB))
	}
	return taken, nil
}
