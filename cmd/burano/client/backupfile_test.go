package client

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/envelope"
)

func TestAFileOfABackupIsCheckedBeforeItIsSent(t *testing.T) {
	folder := t.TempDir()
	keys := map[string]envelope.Key{}
	for _, name := range []string{"own", "other"} {
		key, err := envelope.NewKey()
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(key.String()), 0o600))
		keys[name] = key
	}
	recipient, err := envelope.ParseRecipient(keys["own"].Recipient())
	require.NoError(t, err)
	write := func(name, head string) string {
		path := filepath.Join(folder, name)
		require.NoError(t, writeWhole(path, func(to io.Writer) error {
			sealed, err := recipient.Writer(to)
			require.NoError(t, err)
			archive := tar.NewWriter(sealed)
			for _, entry := range [][2]string{{"backup.json", head}, {"end.json", `{"parts":0}`}} {
				require.NoError(t, archive.WriteHeader(&tar.Header{Name: entry[0], Size: int64(len(entry[1]))}))
				_, err := io.WriteString(archive, entry[1])
				require.NoError(t, err)
			}
			return errors.Join(archive.Close(), sealed.Close())
		}))
		return path
	}
	path := write("good", `{"format":"burano-backup","version":1,"burano":"1.0.0","environmentName":"shop","created":"2026-11-27T12:00:00Z","objects":{}}`)
	described, err := checkBackupFile(path, filepath.Join(folder, "own"))
	require.NoError(t, err)
	require.Equal(t, "shop", described.EnvironmentName)
	var output strings.Builder
	command := backupCheckCommand()
	command.SetOut(&output)
	command.SetArgs([]string{path, "--key", filepath.Join(folder, "own")})
	require.NoError(t, command.Execute())
	require.Contains(t, output.String(), "environment shop at ")

	refuses := func(path, key, words string) {
		t.Helper()
		_, err := checkBackupFile(path, filepath.Join(folder, key))
		require.ErrorContains(t, err, path+": ")
		require.ErrorContains(t, err, words)
	}
	refuses(path, "other", "it was sealed for another key")
	refuses(write("newer", `{"format":"burano-backup","version":9,"burano":"3.1.0"}`), "own", "is of a newer Burano (3.1.0)")
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	cut := filepath.Join(folder, "cut")
	require.NoError(t, os.WriteFile(cut, content[:len(content)-1], 0o600))
	refuses(cut, "own", "its end is missing")
	content[len(content)-1] ^= 1
	require.NoError(t, os.WriteFile(cut, content, 0o600))
	refuses(cut, "own", "a byte of it was changed")
	require.NoError(t, os.WriteFile(cut, []byte("any text"), 0o600))
	refuses(cut, "own", "it is no file that was sealed for a key")
}

func TestAFileIsWrittenWholeOrNotAtAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.backup")
	broke := errors.New("the answer broke off")
	require.ErrorIs(t, writeWhole(path, func(to io.Writer) error {
		_, err := io.WriteString(to, "half")
		return errors.Join(err, broke)
	}), broke)
	left, err := filepath.Glob(path + "*")
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoError(t, writeWhole(path, func(to io.Writer) error { _, err := io.WriteString(to, "whole"); return err }))
	require.ErrorContains(t, writeWhole(path, func(io.Writer) error { return nil }), "is there already: choose another name")
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "whole", string(content))
}
