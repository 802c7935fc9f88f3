package secret_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/burano/burano/orchestrator/secret"
)

func TestTheKeyFileIsMadeOnceAndOnlyItsOwnerMayReadIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	first, err := secret.Open(path)
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing else is left in the folder")

	sealed := first.Seal("a", []byte("value"))
	second, err := secret.Open(path)
	require.NoError(t, err)
	value, err := second.Open("a", sealed)
	require.NoError(t, err)
	require.Equal(t, "value", string(value))

	require.NoError(t, os.Chmod(path, 0o640))
	_, err = secret.Open(path)
	require.ErrorContains(t, err, "chmod 600")

	require.NoError(t, os.WriteFile(path, []byte("short"), 0o600))
	require.NoError(t, os.Chmod(path, 0o600))
	_, err = secret.Open(path)
	require.ErrorContains(t, err, "does not hold a key")
}

func TestASealedValueOpensForItsOwnerOnly(t *testing.T) {
	sealer, err := secret.Open(filepath.Join(t.TempDir(), "key"))
	require.NoError(t, err)
	other, err := secret.Open(filepath.Join(t.TempDir(), "key"))
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		owner := rapid.String().Draw(t, "owner")
		another := rapid.String().Filter(func(s string) bool { return s != owner }).Draw(t, "another")
		value := rapid.SliceOf(rapid.Byte()).Draw(t, "value")
		sealed := sealer.Seal(owner, value)

		opened, err := sealer.Open(owner, sealed)
		require.NoError(t, err)
		require.Equal(t, len(value), len(opened))
		require.ElementsMatch(t, value, opened)
		_, err = sealer.Open(another, sealed)
		require.ErrorContains(t, err, "for something else")
		_, err = other.Open(owner, sealed)
		require.ErrorContains(t, err, "another key")
	})
	for _, damaged := range []string{"", "v1:", "v1:?", "v2:AAAA", "v1:AAAA"} {
		_, err := sealer.Open("a", damaged)
		require.Error(t, err)
	}
}
