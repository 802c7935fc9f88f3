package volumes

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/openstack"
)

// marked are volumes and snapshots, by their ids, with their marks; one with the id gone is deleted before it is marked.
type marked struct {
	volumes   map[string]map[string]string
	snapshots map[string]map[string]string
}

func (m marked) Tagged(_ context.Context, _ string, tag map[string]string) (list []openstack.Volume, err error) {
	for id, metadata := range m.volumes {
		if metadata[ClusterMetadata] == tag[ClusterMetadata] {
			list = append(list, openstack.Volume{ID: id, Metadata: metadata})
		}
	}
	return list, nil
}

func (m marked) TaggedSnapshots(_ context.Context, _ string, tag map[string]string) (list []openstack.Snapshot, err error) {
	for id, metadata := range m.snapshots {
		if metadata[ClusterMetadata] == tag[ClusterMetadata] {
			list = append(list, openstack.Snapshot{ID: id, Metadata: metadata})
		}
	}
	return list, nil
}

func (m marked) Note(_ context.Context, id string, metadata map[string]string) error {
	if id == "gone" {
		return fault.New(fault.NotFound, "there is no volume %s", id)
	}
	m.volumes[id][ClusterMetadata] = metadata[ClusterMetadata]
	return nil
}

func (m marked) NoteSnapshot(_ context.Context, id string, metadata map[string]string) error {
	m.snapshots[id][ClusterMetadata] = metadata[ClusterMetadata]
	return nil
}

func TestVolumesOfAClusterThatIsGoneAreTakenOver(t *testing.T) {
	of := func(cluster string, more ...string) map[string]string {
		metadata := map[string]string{ClusterMetadata: cluster}
		for _, key := range more {
			metadata[key] = "true"
		}
		return metadata
	}
	cloud := marked{volumes: map[string]map[string]string{"mine": of("e/c"), "kept": of("e/c", RetainMetadata), "gone": of("e/c"), "other": of("f/c")},
		snapshots: map[string]map[string]string{"before": of("e/c"), "backup": of("e/c", backupMetadata), "other": of("f/c")}}
	taken, err := TakeOver(t.Context(), cloud, "e/c", "n/c")
	require.NoError(t, err)
	require.Len(t, taken, 3)
	require.Equal(t, map[string]map[string]string{"mine": of("n/c"), "kept": of("n/c", RetainMetadata), "gone": of("e/c"), "other": of("f/c")}, cloud.volumes)
	require.Equal(t, map[string]map[string]string{"before": of("n/c"), "backup": of("e/c", backupMetadata), "other": of("f/c")}, cloud.snapshots)
	delete(cloud.volumes, "gone")
	taken, err = TakeOver(t.Context(), cloud, "e/c", "n/c")
	require.NoError(t, err)
	require.Empty(t, taken, "what was interrupted goes on, and what is done is not done again")
}
