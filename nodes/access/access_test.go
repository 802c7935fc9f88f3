package access

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	buranossh "github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/ssh/sshtest"
)

// hostKeyIn is what the vault knows of a server.
func hostKeyIn(t *testing.T, vault Vault, server string) (known hostKey) {
	t.Helper()
	text, found, err := vault.Load(t.Context(), vaultHost+server)
	require.NoError(t, err)
	if found {
		require.NoError(t, json.Unmarshal(text, &known))
	}
	return known
}

// booted is a server of the cloud that has applied its user data: a real sshd with the keys of the vault.
func booted(t *testing.T, vault *Memory, key string) (*sshtest.Server, Server, Config) {
	t.Helper()
	daemon := sshtest.Prepare(t)
	keys := Keys{vault: vault}
	require.NoError(t, vault.Store(t.Context(), vaultOwnKey, daemon.Key))
	_, private, err := keys.First(t.Context(), key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(daemon.KeyFile(), private, 0o600))
	daemon.Start()
	address, err := netip.ParseAddrPort(daemon.Address)
	require.NoError(t, err)
	server := Server{Key: key, Name: "web-1", ID: "4f1e", Launched: "2026-11-22T08:00:00Z", Addresses: []netip.Addr{address.Addr()}}
	return daemon, server, Config{Vault: vault, Patience: 20 * time.Second, Port: strconv.Itoa(int(address.Port())), KeyFile: daemon.KeyFile()}
}

func TestTheHostKeyOfTheFirstConnectionIsReplacedAndThenRefused(t *testing.T) {
	vault := &Memory{}
	daemon, server, config := booted(t, vault, "web")
	first := New(config)
	client, err := first.Connect(t.Context(), server)
	require.NoError(t, err)
	again, err := first.Connect(t.Context(), server)
	require.NoError(t, err)
	require.Same(t, client, again)
	require.NoError(t, first.Close())

	known := hostKeyIn(t, vault, "web")
	require.True(t, known.Confirmed)
	require.Equal(t, "4f1e", known.Server)
	firstKey, private, err := (&Keys{vault: vault}).First(t.Context(), "web")
	require.NoError(t, err)
	require.NotContains(t, known.Public, string(ssh.MarshalAuthorizedKey(firstKey.PublicKey())))

	// It presents its own from the next start on, which is the only one that is accepted.
	daemon.Stop()
	daemon.Start()
	second := New(config)
	client, err = second.Connect(t.Context(), server)
	require.NoError(t, err)
	require.Equal(t, known.Public, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(client.HostKey()))))
	require.NoError(t, second.Close())

	daemon.Stop()
	require.NoError(t, os.WriteFile(daemon.KeyFile(), private, 0o600))
	daemon.Start()
	third := New(config)
	_, err = third.Connect(t.Context(), server)
	var wrong *buranossh.HostKeyError
	require.ErrorAs(t, err, &wrong)

	// A server that was rebuilt begins with it again.
	server.Launched = "2026-11-22T09:00:00Z"
	_, err = third.Connect(t.Context(), server)
	require.NoError(t, err)
	require.NoError(t, third.Close())
}

func TestAServerWithoutFloatingAddressIsReachedDirectlyAndThroughThoseThatHaveOne(t *testing.T) {
	fixed := netip.MustParseAddr
	jump := func(name, address, access string) Server {
		made := Server{Key: name, Name: name, Addresses: []netip.Addr{fixed(address)}}
		if access != "" {
			made.Access = fixed(access)
		}
		return made
	}
	c := New(Config{Vault: &Memory{}, Through: func(Server) []Server {
		return []Server{jump("a", "10.0.0.2", ""), jump("b", "10.0.0.3", "192.0.2.3"), jump("c", "10.0.0.4", "10.0.0.4"), jump("d", "10.0.0.5", "192.0.2.5")}
	}})
	ways := func(server Server) (all []string) {
		for _, way := range c.ways(server) {
			all = append(all, way.Name+" "+way.Address+" "+way.After.String())
		}
		return all
	}
	inner := Server{Key: "e", Name: "e", Addresses: []netip.Addr{fixed("10.0.0.9"), fixed("10.1.0.9")}}
	require.Equal(t, []string{"directly 10.0.0.9:22 0s", "directly 10.1.0.9:22 0s", "through b 10.0.0.9:22 0s", "through b 10.1.0.9:22 0s",
		"through d 10.0.0.9:22 500ms", "through d 10.1.0.9:22 500ms"}, ways(inner))
	inner.Addresses = inner.Addresses[:1]
	inner.Access = fixed("192.0.2.9")
	require.Equal(t, []string{"through b 10.0.0.9:22 5s", "through d 10.0.0.9:22 5.5s"}, ways(inner), "a floating address comes first")
	inner.Access = fixed("10.0.0.9")
	require.Empty(t, ways(inner), "its address is where Burano connects")
	_, err := c.Connect(t.Context(), Server{Key: "f", Name: "f"})
	require.EqualError(t, err, "connect to f: its server has no address yet")
}

func TestAMachineThatAnswersWithAnotherKindOfHostKeyIsLeft(t *testing.T) {
	large := "ssh-rsa " + strings.Repeat("A", 512<<10)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	public, err := ssh.NewPublicKey(&rsaKey.PublicKey)
	require.NoError(t, err)
	for name, answer := range map[string]string{"a large one": large, "one of RSA": string(ssh.MarshalAuthorizedKey(public))} {
		t.Run(name, func(t *testing.T) {
			vault := &Memory{}
			said := filepath.Join(t.TempDir(), "answer")
			require.NoError(t, os.WriteFile(said, []byte("4711\n"+answer), 0o600))
			daemon, server, config := booted(t, vault, "web")
			daemon.Stop()
			daemon.Settings = "ForceCommand cat " + said
			daemon.Start()
			_, err := New(config).Connect(t.Context(), server)
			require.ErrorContains(t, err, "the server's answer with its host key")
			require.Less(t, len(err.Error()), 4<<10)
			require.Empty(t, hostKeyIn(t, vault, "web").Public)
		})
	}
}

// script runs the script of host keys here, with a program of the test in place of systemctl.
func script(t *testing.T, key, action string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "systemctl"), []byte("#!/bin/sh\n"), 0o755))
	command := exec.Command("bash", "-s")
	command.Stdin = strings.NewReader(hostKeyScript)
	command.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "KEY_FILE=" + key, "ACTION=" + action}
	out, err := command.Output()
	require.NoError(t, err)
	return string(out)
}

// Whatever the moment of an interruption, asking again gives the same key until it is presented.
func TestAHostKeyIsMadeOnceAndThenPresented(t *testing.T) {
	dir := t.TempDir()
	key := dir + "/host_key"
	require.NoError(t, os.WriteFile(key, []byte("first"), 0o600))
	run := func(action string) string { return script(t, key, action) }
	public := run("make")
	require.True(t, strings.HasPrefix(public, "ssh-ed25519 "))
	require.Equal(t, public, run("make"))
	content, err := os.ReadFile(key)
	require.NoError(t, err)
	require.Equal(t, "first", string(content), "the first key is presented until the other is known")
	run("present")
	content, err = os.ReadFile(key)
	require.NoError(t, err)
	require.Contains(t, string(content), "OPENSSH PRIVATE KEY")
	now, err := os.ReadFile(key + ".pub")
	require.NoError(t, err)
	require.Equal(t, public, string(now))
}
