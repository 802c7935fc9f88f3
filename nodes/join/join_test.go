package join

import (
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/nodes/ssh/sshtest"
)

const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIF6pgIu+9jZ0AKompohXce0W/j4+9SqZo1wVbewDB2Z3 burano"

func TestAKeyIsLetInOnceAndOthersStay(t *testing.T) {
	own, err := user.Current()
	require.NoError(t, err)
	own.HomeDir = t.TempDir()
	login := Login{User: own, File: filepath.Join(own.HomeDir, ".ssh", "authorized_keys")}
	added, err := login.Authorize(key, "burano: logs in to node lab-1\nssh-rsa AAAA")
	require.NoError(t, err)
	require.True(t, added)
	text, err := os.ReadFile(login.File)
	require.NoError(t, err)
	require.Equal(t, strings.TrimSuffix(key, "burano")+"burano: logs in to node lab-1 ssh-rsa AAAA\n", string(text))
	info, err := os.Stat(login.File)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	folder, err := os.Stat(filepath.Dir(login.File))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), folder.Mode().Perm())

	for _, before := range []string{string(text), "# keys\nfrom=\"192.0.2.1\" " + key + "\n"} {
		require.NoError(t, os.WriteFile(login.File, []byte(before), 0o600))
		added, err = login.Authorize(key, "again")
		require.NoError(t, err)
		require.False(t, added)
		text, err = os.ReadFile(login.File)
		require.NoError(t, err)
		require.Equal(t, before, string(text))
	}
	require.NoError(t, os.WriteFile(login.File, []byte("ssh-rsa none of ours"), 0o600))
	added, err = login.Authorize(key, "burano")
	require.NoError(t, err)
	require.True(t, added)
	text, err = os.ReadFile(login.File)
	require.NoError(t, err)
	require.Equal(t, "ssh-rsa none of ours\n"+key+"\n", string(text))
	_, err = login.Authorize("command=\"rm -rf /\" nonsense", "")
	require.Error(t, err)
}

func TestWhatOthersMayWriteIsNotBelieved(t *testing.T) {
	own, err := user.Current()
	require.NoError(t, err)
	own.HomeDir = t.TempDir()
	login := Login{User: own, File: filepath.Join(own.HomeDir, ".ssh", "authorized_keys")}
	require.Empty(t, login.open())
	require.NoError(t, os.Mkdir(filepath.Dir(login.File), 0o700))
	require.NoError(t, os.Chmod(filepath.Dir(login.File), 0o777))
	require.Contains(t, strings.Join(login.open(), ""), "chmod go-w "+filepath.Dir(login.File))
}

func TestTheHostKeyIsTheOneThatSshdShows(t *testing.T) {
	server := sshtest.New(t)
	at, err := netip.ParseAddrPort(server.Address)
	require.NoError(t, err)
	shown, err := HostKey(t.Context(), at)
	require.NoError(t, err)
	require.Equal(t, line(server.HostKey), shown)
	_, err = HostKey(t.Context(), netip.MustParseAddrPort("127.0.0.1:1"))
	require.ErrorContains(t, err, "no sshd answers at 127.0.0.1:1: install one and start it")
}

func TestAMachineDoesNotJoinByAnAddressOfItsOwnOnly(t *testing.T) {
	_, err := OwnAddress(t.Context(), "127.0.0.1:8082")
	require.ErrorContains(t, err, "give its own address by --address")
}
