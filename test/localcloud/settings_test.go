package localcloud

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSettingsAreRaisedAndPutBack(t *testing.T) {
	noted, file := filepath.Join(t.TempDir(), "noted"), filepath.Join(t.TempDir(), "max_user_instances")
	write := func(value string) { require.NoError(t, os.WriteFile(file, []byte(value), 0o600)) }
	now := func() string {
		value, err := readSetting(file)
		require.NoError(t, err)
		return value
	}
	wanted := []setting{{Path: file, Minimum: 1024}}

	write("128\n")
	require.NoError(t, raiseSettings(noted, "one-", wanted))
	require.Equal(t, "1024", now())
	require.NoError(t, raiseSettings(noted, "one-", wanted), "a second start")
	require.NoError(t, restoreSettings(noted, "one-"))
	require.Equal(t, "128", now())
	require.NoFileExists(t, noted)

	write("4096\n")
	require.NoError(t, raiseSettings(noted, "one-", wanted))
	require.NoError(t, restoreSettings(noted, "one-"))
	require.Equal(t, "4096", now(), "what is enough stays")

	write("128\n")
	require.NoError(t, raiseSettings(noted, "one-", wanted))
	write("2048\n")
	require.NoError(t, restoreSettings(noted, "one-"))
	require.Equal(t, "2048", now(), "what somebody else has changed since stays")

	write("128\n")
	require.NoError(t, raiseSettings(noted, "one-", wanted))
	write("256\n") // the machine was started again, with another value of its own
	require.NoError(t, raiseSettings(noted, "one-", wanted))
	require.NoError(t, restoreSettings(noted, "one-"))
	require.Equal(t, "256", now())

	write("128\n")
	require.NoError(t, raiseSettings(noted, "one-", wanted))
	require.NoError(t, raiseSettings(noted, "two-", wanted))
	require.NoError(t, restoreSettings(noted, "one-"))
	require.Equal(t, "1024", now(), "another cloud needs it")
	require.NoError(t, restoreSettings(noted, "two-"))
	require.Equal(t, "128", now())
}
