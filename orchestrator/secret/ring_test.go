package secret_test

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/orchestrator/secret"
)

// ofVersionOne seals as Burano did when a key file had one key.
func ofVersionOne(t *testing.T, path, owner, value string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	key, err := base64.StdEncoding.DecodeString(string(text))
	require.NoError(t, err)
	block, err := aes.NewCipher(key)
	require.NoError(t, err)
	aead, err := cipher.NewGCM(block)
	require.NoError(t, err)
	nonce := make([]byte, aead.NonceSize())
	return "v1:" + base64.StdEncoding.EncodeToString(aead.Seal(nonce, nonce, []byte(value), []byte(owner)))
}

func TestAKeyIsReplacedWhileServersRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	server, err := secret.Open(path)
	require.NoError(t, err)
	old := server.Keys()[0]
	first := ofVersionOne(t, path, "a", "of the first form")
	second := server.Seal("a", []byte("of the first key"))
	opens := func(sealer *secret.Sealer, sealed, want string) {
		t.Helper()
		value, err := sealer.Open("a", sealed)
		require.NoError(t, err)
		require.Equal(t, want, string(value))
	}
	opens(server, first, "of the first form")
	id, ok := secret.KeyOf(first)
	require.True(t, ok)
	require.Empty(t, id, "which key it was is not said")

	added, err := secret.AddKey(path, true)
	require.NoError(t, err)
	require.NotEqual(t, old, added)
	third := server.Seal("a", []byte("of the new key"))
	id, ok = secret.KeyOf(third)
	require.True(t, ok)
	require.Equal(t, added, id, "the new key seals at once")
	require.Equal(t, []string{added, old}, server.Keys())
	for sealed, want := range map[string]string{first: "of the first form", second: "of the first key", third: "of the new key"} {
		opens(server, sealed, want)
	}

	require.ErrorContains(t, secret.RemoveKey(path, added), "it is the active key")
	require.ErrorIs(t, secret.RemoveKey(path, "0123456789abcdef"), secret.ErrNoKey)
	require.NoError(t, secret.RemoveKey(path, old))
	opens(server, third, "of the new key")
	server, err = secret.Open(path)
	require.NoError(t, err)
	_, err = server.Open("a", second)
	require.ErrorContains(t, err, old)
	_, err = server.Open("a", first)
	require.ErrorContains(t, err, "another key")
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing else is left in the folder")
}

func TestAKeyThatAnotherServerSealsWithIsLookedForInTheFile(t *testing.T) {
	one, two := filepath.Join(t.TempDir(), "key"), filepath.Join(t.TempDir(), "key")
	copied := func() {
		text, err := os.ReadFile(one)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(two, text, 0o600))
	}
	first, err := secret.Open(one)
	require.NoError(t, err)
	copied()
	second, err := secret.Open(two)
	require.NoError(t, err)

	added, err := secret.AddKey(one, false)
	require.NoError(t, err)
	require.NotEqual(t, added, first.Keys()[0], "it only opens until it is activated")
	copied()
	require.NoError(t, secret.ActivateKey(one, added))
	value, err := second.Open("a", first.Seal("a", []byte("value")))
	require.NoError(t, err)
	require.Equal(t, "value", string(value))
}

func TestAnotherRingInThePlaceOfTheKeyFileIsNotTaken(t *testing.T) {
	path, other := filepath.Join(t.TempDir(), "key"), filepath.Join(t.TempDir(), "key")
	sealer, err := secret.Open(path)
	require.NoError(t, err)
	sealed := sealer.Seal("a", []byte("value"))
	_, err = secret.Open(other)
	require.NoError(t, err)
	require.NoError(t, os.Rename(other, path))
	id, _ := secret.KeyOf(sealer.Seal("a", nil))
	before, _ := secret.KeyOf(sealed)
	require.Equal(t, before, id)
	require.NoError(t, os.Remove(path))
	_, err = sealer.Open("a", sealed)
	require.NoError(t, err, "nor does a file that is gone end a server that runs")
}

func TestKeysAreAddedAndRemovedAtTheSameTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	sealer, err := secret.Open(path)
	require.NoError(t, err)
	var mutex sync.Mutex
	var sealed []string
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			id, err := secret.AddKey(path, true)
			if err != nil {
				t.Error(err)
			}
			value := sealer.Seal("a", []byte(id))
			mutex.Lock()
			defer mutex.Unlock()
			sealed = append(sealed, value)
		})
	}
	all.Wait()
	require.Len(t, sealer.Keys(), 9, "no key was lost")
	for _, value := range sealed {
		_, err := sealer.Open("a", value)
		require.NoError(t, err)
	}
	keys := sealer.Keys()
	for _, id := range keys[1:] {
		all.Go(func() {
			if err := secret.RemoveKey(path, id); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.True(t, slices.Equal(keys[:1], sealer.Keys()))
}
