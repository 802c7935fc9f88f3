package seal_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/seal"
)

func TestOnlyTheKeyThatABoxIsForOpensIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "key")
	key, err := seal.Load(path)
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	box, err := seal.Close(key.Public(), []byte("swordfish"))
	require.NoError(t, err)
	require.NotContains(t, string(box), "swordfish")

	again, err := seal.Load(path)
	require.NoError(t, err)
	content, err := again.Open(box)
	require.NoError(t, err)
	require.Equal(t, "swordfish", string(content))

	require.NoError(t, os.WriteFile(path, []byte("spoilt"), 0o600))
	other, err := seal.Load(path)
	require.NoError(t, err)
	require.NotEqual(t, key.Public(), other.Public())
	_, err = other.Open(box)
	require.ErrorContains(t, err, "another key")
	box[len(box)-1] ^= 1
	_, err = key.Open(box)
	require.Error(t, err)
}
