package access

import (
	"context"
	"encoding/pem"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	buranossh "github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/ssh/sshtest"
)

// machine is a server that somebody has set up, which lets its owner's key in and no other.
func machine(t *testing.T) (*sshtest.Server, Server) {
	t.Helper()
	daemon := sshtest.New(t)
	address := netip.MustParseAddrPort(daemon.Address)
	return daemon, Server{Key: "lab-1", Name: "lab-1", ID: daemon.Address, Addresses: []netip.Addr{address.Addr()}, Machine: &Machine{User: "root", Port: address.Port()}}
}

func line(key ssh.PublicKey) string { return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) }

func TestAMachineThatDoesNotLetBuranoInIsToldItsKey(t *testing.T) {
	vault := &Memory{}
	_, server := machine(t)
	connections := New(Config{Vault: vault, Patience: 10 * time.Second})
	defer connections.Close()
	public, err := connections.Public(t.Context())
	require.NoError(t, err)
	_, err = connections.Connect(t.Context(), server)
	var login *buranossh.LoginError
	require.ErrorAs(t, err, &login)
	require.ErrorContains(t, err, "~root/.ssh/authorized_keys there, and do the same again: "+public)
}

func TestTheHostKeyOfAMachineIsTrustedOnceAndKept(t *testing.T) {
	vault := &Memory{}
	daemon, server := machine(t)
	require.NoError(t, vault.Store(t.Context(), vaultOwnKey, daemon.Key))
	var said []string
	config := Config{Vault: vault, Patience: 10 * time.Second, Report: func(_ context.Context, _ Server, text string) { said = append(said, text) }}
	connect := func() error {
		t.Helper()
		connections := New(config)
		defer connections.Close()
		_, err := connections.Connect(t.Context(), server)
		return err
	}
	require.NoError(t, connect())
	require.Len(t, said, 1)
	require.Contains(t, said[0], ssh.FingerprintSHA256(daemon.HostKey))
	require.Equal(t, line(daemon.HostKey), hostKeyIn(t, vault, "lab-1").Public)
	require.NoError(t, connect())
	require.Len(t, said, 1, "it is said once")

	daemon.Stop()
	other := daemon.SetHostKey()
	daemon.Start()
	err := connect()
	var wrong *buranossh.HostKeyError
	require.ErrorAs(t, err, &wrong)
	require.ErrorContains(t, err, "Give its new host key")
	server.Machine.HostKey = "192.0.2.7 " + line(other) // as ssh-keyscan prints it
	require.NoError(t, connect())
	server.Machine.HostKey = ""
	require.Error(t, connect(), "what was trusted first stays")
	server.ID = "elsewhere"
	require.NoError(t, connect(), "at another address is another machine")
}

func TestAMachineIsLoggedInToWithTheKeyThatWasGivenForIt(t *testing.T) {
	vault := &Memory{}
	daemon, server := machine(t)
	connections := New(Config{Vault: vault, Patience: 10 * time.Second})
	defer connections.Close()
	for text, says := range map[string]string{"nonsense": "it is no private key", string(locked(t)): "protected by a passphrase"} {
		_, err := connections.GiveKey(t.Context(), "lab-1", []byte(text))
		var unreadable *UnreadableKey
		require.ErrorAs(t, err, &unreadable)
		require.ErrorContains(t, err, says)
	}
	public, err := connections.GiveKey(t.Context(), "lab-1", daemon.Key)
	require.NoError(t, err)
	require.Equal(t, line(daemon.Signer.PublicKey()), public)
	_, err = connections.Connect(t.Context(), server)
	require.NoError(t, err)

	again := New(Config{Vault: vault, Patience: 10 * time.Second})
	defer again.Close()
	_, err = again.GiveKey(t.Context(), "lab-1", nil)
	require.NoError(t, err)
	_, err = again.Connect(t.Context(), server)
	require.ErrorContains(t, err, "authorized_keys", "Burano's own key is not let in")
}

// locked is a private key under a passphrase.
func locked(t *testing.T) []byte {
	t.Helper()
	_, plain := sshtest.NewKey(t)
	key, err := ssh.ParseRawPrivateKey(plain)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte("swordfish"))
	require.NoError(t, err)
	return pem.EncodeToMemory(block)
}

func TestHostKeysAreReadAsToolsPrintThem(t *testing.T) {
	signer, _ := sshtest.NewKey(t)
	for _, text := range []string{line(signer.PublicKey()), line(signer.PublicKey()) + " root@lab\n", "[192.0.2.7]:2222 " + line(signer.PublicKey())} {
		key, err := ParseHostKey(text)
		require.NoError(t, err, text)
		require.Equal(t, signer.PublicKey().Marshal(), key.Marshal())
	}
	for _, text := range []string{"", "ssh-ed25519", "SHA256:abc", os.DevNull, line(signer.PublicKey()) + strings.Repeat(" comment", 1<<20)} {
		_, err := ParseHostKey(text)
		require.Error(t, err, text)
		require.Less(t, len(err.Error()), 8<<10)
	}
}
