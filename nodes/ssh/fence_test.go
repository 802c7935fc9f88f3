package ssh_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	xssh "golang.org/x/crypto/ssh"

	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/ssh/sshtest"
)

// worker connects to the server as the worker with this number.
func worker(t *testing.T, server *sshtest.Server, folder string, number uint64) *ssh.Client {
	client, err := ssh.Dial(t.Context(), ssh.Config{Address: server.Address, Signer: server.Signer, HostKeys: []xssh.PublicKey{server.HostKey},
		Fence: number, FenceFolder: folder})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

func TestAServerRefusesAFormerWorker(t *testing.T) {
	server, folder := sshtest.New(t), filepath.Join(t.TempDir(), "it's a folder")
	first, second := worker(t, server, folder, 7), worker(t, server, folder, 12)
	out, err := first.Run(t.Context(), ssh.Script{Name: "greet", Body: "cat; echo $A", Env: map[string]string{"A": "hello"}})
	require.NoError(t, err)
	require.Equal(t, "hello\n", out)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, first.Upload(t.Context(), []ssh.File{{Path: file, Content: []byte("first")}}))
	_, err = second.Run(t.Context(), ssh.Script{Name: "greet", Body: "true"})
	require.NoError(t, err)

	_, err = first.Run(t.Context(), ssh.Script{Name: "greet", Body: "touch " + file + ".ran"})
	require.ErrorIs(t, err, ssh.ErrFenced)
	require.NoFileExists(t, file+".ran")
	require.ErrorIs(t, first.Upload(t.Context(), []ssh.File{{Path: file, Content: []byte("again")}}), ssh.ErrFenced)
	require.ErrorIs(t, first.Copy(t.Context(), "fence_test.go", file), ssh.ErrFenced)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "first", string(text))
	require.NoError(t, second.Copy(t.Context(), "fence_test.go", file))
}

// A file that a server had half written when it lost its power is no reason to refuse a worker.
func TestAServerThatLostItsPowerTakesTheNextWorker(t *testing.T) {
	server, folder := sshtest.New(t), t.TempDir()
	_, err := worker(t, server, folder, 1).Run(t.Context(), ssh.Script{Name: "greet", Body: "true"})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "running", "4194303"), nil, 0o600))
	_, err = worker(t, server, folder, 2).Run(t.Context(), ssh.Script{Name: "greet", Body: "true"})
	require.NoError(t, err)
	require.NoFileExists(t, filepath.Join(folder, "running", "4194303"))
}

func TestWhatAFormerWorkerStillRunsIsEnded(t *testing.T) {
	server, folder := sshtest.New(t), t.TempDir()
	first, second := worker(t, server, folder, 1), worker(t, server, folder, 2)
	begun, after := filepath.Join(t.TempDir(), "begun"), filepath.Join(t.TempDir(), "after")
	ended := make(chan error, 1)
	go func() {
		_, err := first.Run(context.WithoutCancel(t.Context()), ssh.Script{Name: "long", Body: "touch " + begun + "; sleep 600; touch " + after})
		ended <- err
	}()
	require.Eventually(t, func() bool { _, err := os.Stat(begun); return err == nil }, 20*time.Second, 5*time.Millisecond)
	// A script of the same worker does not disturb it.
	_, err := first.Run(t.Context(), ssh.Script{Name: "short", Body: "true"})
	require.NoError(t, err)
	require.Empty(t, ended)
	_, err = second.Run(t.Context(), ssh.Script{Name: "short", Body: "true"})
	require.NoError(t, err)
	select {
	case err := <-ended:
		require.Error(t, err)
	case <-time.After(20 * time.Second):
		require.Fail(t, "the script of the former worker goes on")
	}
	require.NoFileExists(t, after)
}

func TestAScriptThatFailsWithTheSameCodeIsNotTakenForARefusal(t *testing.T) {
	client := worker(t, sshtest.New(t), t.TempDir(), 1)
	_, err := client.Run(t.Context(), ssh.Script{Name: "fail", Body: "exit 75"})
	var exit *ssh.ExitError
	require.ErrorAs(t, err, &exit)
	require.NotErrorIs(t, err, ssh.ErrFenced)
}

func TestAProcessThatMayNoLongerActSendsNothing(t *testing.T) {
	server := sshtest.New(t)
	var lost atomic.Bool
	gone := errors.New("the lease is lost")
	client, err := ssh.Dial(t.Context(), ssh.Config{Address: server.Address, Signer: server.Signer, HostKeys: []xssh.PublicKey{server.HostKey},
		Alive: func() error {
			if lost.Load() {
				return gone
			}
			return nil
		}})
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	through, err := client.DialContext(t.Context(), "tcp", server.Address)
	require.NoError(t, err)
	defer through.Close()
	_, err = client.Run(t.Context(), ssh.Script{Name: "greet", Body: "true"})
	require.NoError(t, err)
	lost.Store(true)
	_, err = client.Run(t.Context(), ssh.Script{Name: "greet", Body: "true"})
	require.ErrorIs(t, err, gone)
	_, err = through.Write([]byte("x"))
	require.ErrorIs(t, err, gone)
}
