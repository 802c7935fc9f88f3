package secret_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/orchestrator/secret"
)

func TestAKeyOfItsOwnOpensWhatItSealedForTheSameOwner(t *testing.T) {
	text := secret.NewKey()
	own, err := secret.Under(text)
	require.NoError(t, err)
	again, err := secret.Under(text)
	require.NoError(t, err)
	other, err := secret.Under(secret.NewKey())
	require.NoError(t, err)

	sealed := own.Seal("snapshot/a/0", []byte("what Kubernetes knows"))
	require.NotContains(t, string(sealed), "Kubernetes")
	opened, err := again.Open("snapshot/a/0", sealed)
	require.NoError(t, err)
	require.Equal(t, "what Kubernetes knows", string(opened))
	for _, wrong := range []struct {
		own    secret.Own
		owner  string
		sealed []byte
	}{{own, "snapshot/a/1", sealed}, {other, "snapshot/a/0", sealed}, {own, "snapshot/a/0", sealed[:20]}, {own, "snapshot/a/0", sealed[:3]}} {
		_, err := wrong.own.Open(wrong.owner, wrong.sealed)
		require.ErrorContains(t, err, wrong.owner)
	}
	_, err = secret.Under("no key")
	require.Error(t, err)
}
