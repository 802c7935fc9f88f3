package nodes

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/burano/burano/nodes/kube"
)

func TestTheRegistrysPasswordsAreDrawnOnceAndNotedBeforeAnybodyKnowsThem(t *testing.T) {
	vault := newVault()
	choose := func(wanted *kube.Registry) registrySteps {
		t.Helper()
		c, err := NewCluster(Config{Name: "demo", Nodes: nodesOf(1, 1, 0), Vault: vault, Registry: wanted})
		require.NoError(t, err)
		d := registrySteps{&deployment{cluster: c, design: design{cluster: c.config}}}
		require.NoError(t, d.chooseRegistry(t.Context()))
		return d
	}
	require.Nil(t, choose(nil).registry)
	require.Empty(t, vault.Values(), "a cluster that wants none is as it was")

	wanted := &kube.Registry{StorageClass: "burano-local", Size: resource.MustParse("1Gi")}
	first := choose(wanted).registry
	require.NotEqual(t, first.Push, first.Pull)
	users := map[string]string{}
	for line := range strings.Lines(string(first.Users)) {
		user, hash, _ := strings.Cut(strings.TrimSpace(line), ":")
		users[user] = hash
	}
	require.Len(t, users, 2)
	require.NoError(t, bcrypt.CompareHashAndPassword([]byte(users[kube.RegistryPusher]), []byte(first.Push)))
	require.NoError(t, bcrypt.CompareHashAndPassword([]byte(users[kube.RegistryPuller]), []byte(first.Pull)))
	require.Equal(t, 1, vault.Stores())
	again := choose(wanted)
	require.Equal(t, first, again.registry)
	require.Equal(t, 1, vault.Stores())

	ending := choose(nil)
	require.False(t, ending.registry.Ended, "there is one to end")
	require.NoError(t, ending.saveRegistry(t.Context(), true))
	require.True(t, choose(nil).registry.Ended)
	back := choose(wanted).registry
	require.False(t, back.Ended)
	require.Equal(t, first.Push, back.Push, "who has a login keeps it")
}

func TestARegistryThatAFormerReleaseMadeMirrorsNothingUnlessThatIsSaid(t *testing.T) {
	upstream := func(record string, mirror *bool) string {
		t.Helper()
		vault := newVault()
		if record != "" {
			require.NoError(t, vault.Store(t.Context(), vaultRegistry, []byte(record)))
		}
		c, err := NewCluster(Config{Name: "demo", Nodes: nodesOf(1, 1, 0), Vault: vault, Registry: &kube.Registry{Size: resource.MustParse("1Gi"), Mirror: mirror}})
		require.NoError(t, err)
		d := registrySteps{&deployment{cluster: c, design: design{cluster: c.config}}}
		require.NoError(t, d.chooseRegistry(t.Context()))
		of, _ := d.registryUpstream()
		return of
	}
	const former = `{"push": "a", "pull": "b", "users": "YQ=="}`
	yes, no := true, false
	require.NotEmpty(t, upstream("", nil))
	require.Empty(t, upstream("", &no))
	require.Empty(t, upstream(former, nil))
	require.NotEmpty(t, upstream(former, &yes))
}
