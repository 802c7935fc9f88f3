package nodes

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/nodes/kube"
)

func storing(t *testing.T, vault Vault, classes ...kube.StorageClass) (*deployment, error) {
	t.Helper()
	c, err := NewCluster(Config{Name: "c", Nodes: nodesOf(1, 1, 1), Vault: vault, StorageClasses: classes})
	require.NoError(t, err)
	return c.newDeployment(context.Background())
}

func TestABackEndIsServedUntilItIsKnownToHaveNoVolumes(t *testing.T) {
	vault := newVault()
	d, err := storing(t, vault)
	require.NoError(t, err)
	require.Empty(t, d.design.storage)
	_, noted, err := vault.Load(t.Context(), vaultStorage)
	require.NoError(t, err)
	require.False(t, noted, "clusters without classes have nothing new")

	d, err = storing(t, vault, kube.StorageClass{Name: "a", Backend: kube.Local, Reclaim: "Delete"})
	require.NoError(t, err)
	require.Equal(t, []kube.Storage{kube.Local}, d.design.storage)
	require.False(t, storageSteps{d}.optional(kube.StorageUnit))
	d, err = storing(t, vault)
	require.NoError(t, err)
	require.Equal(t, []kube.Storage{kube.Local}, d.design.storage, "the class is gone, and there may be volumes")
	require.True(t, storageSteps{d}.optional(kube.StorageUnit))

	require.NoError(t, d.cluster.saveStorage(t.Context(), storageRecord{}))
	d, err = storing(t, vault)
	require.NoError(t, err)
	require.Empty(t, d.design.storage)
}

func TestVolumesThatWouldBeLostAreNamedByTheirNodes(t *testing.T) {
	lost := &VolumesLost{[]kube.Volume{{Name: "pvc-1", Claim: "default/a", Node: "n1"}, {Name: "pvc-2", Node: "n1"}, {Name: "pvc-3", Claim: "other/b", Node: "n2"}}}
	require.ErrorContains(t, lost, "would go: n1: default/a, volume pvc-2; n2: other/b. Nothing was changed.")
	require.ErrorContains(t, lost, "loseVolumes")
}

// Clusters that never had local volumes are not asked for them: that the API does not answer keeps no node from being removed.
func TestOnlyClustersWithLocalVolumesAreAskedForThem(t *testing.T) {
	c, err := NewCluster(Config{Name: "c", Nodes: nodesOf(1, 2, 1), Vault: newVault(), Server: func(_ context.Context, name string) ServerState { return ServerState{Gone: name == "murano-kube-2"} }})
	require.NoError(t, err)
	require.NoError(t, c.keepVolumes(t.Context(), []string{"murano-kube-1", "murano-kube-2"}))
	require.NoError(t, c.saveStorage(t.Context(), storageRecord{Backends: []kube.Storage{kube.Local}}))
	require.NoError(t, c.keepVolumes(t.Context(), []string{"murano-gateway-1", "murano-kube-2", "nobody"}), "they have none that could be lost")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, c.keepVolumes(ctx, []string{"murano-kube-1"}), "a node is not removed where it cannot be found out")
}

func TestWhatTheControllersSayIsReadAndNotAByteMore(t *testing.T) {
	for _, one := range []struct{ say, rest, wrong string }{
		{"burano-storage 1 serve\nPRI * HTTP/2.0", "PRI * HTTP/2.0", ""},
		{"burano-storage 1 held\n", "", errHeld.Error()},
		{"burano-storage 2 serve\n", "", "which this version of Burano does not understand"},
		{"a line that has no end and goes on and on", "", "which this version of Burano does not understand"},
		{"burano", "", "it sends nothing"},
	} {
		ours, theirs := net.Pipe()
		go func() {
			_, _ = theirs.Write([]byte(one.say))
			_ = theirs.Close()
		}()
		err := greeted(ours, lineServes, lineHeld)
		if one.wrong != "" {
			require.ErrorContains(t, err, one.wrong)
			continue
		}
		require.NoError(t, err)
		rest := make([]byte, len(one.rest))
		_, err = ours.Read(rest)
		require.NoError(t, err)
		require.Equal(t, one.rest, string(rest))
	}
}
