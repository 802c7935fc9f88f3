package ssh_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	xssh "golang.org/x/crypto/ssh"
	"pgregory.net/rapid"

	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/ssh/sshtest"
)

func dial(t *testing.T, server *sshtest.Server) *ssh.Client {
	t.Helper()
	client, err := ssh.Dial(t.Context(), ssh.Config{Address: server.Address, Signer: server.Signer, HostKeys: []xssh.PublicKey{server.HostKey}, Patience: 10 * time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

func TestDialWaitsUntilSSHDAnswers(t *testing.T) {
	server := sshtest.Prepare(t)
	timer := time.AfterFunc(300*time.Millisecond, server.Start)
	defer timer.Stop()
	client := dial(t, server)
	require.Equal(t, server.HostKey.Marshal(), client.HostKey().Marshal())
}

func TestDialGivesUpAfterItsPatienceAndSaysWhere(t *testing.T) {
	server := sshtest.Prepare(t)
	_, err := ssh.Dial(t.Context(), ssh.Config{Address: server.Address, Signer: server.Signer, Patience: time.Second})
	require.ErrorContains(t, err, "no sshd answered within 1s; tried "+server.Address)
	require.ErrorContains(t, err, "connection refused")
}

func TestAnUnknownHostKeyIsRefusedAtOnce(t *testing.T) {
	server := sshtest.New(t)
	other, _ := sshtest.NewKey(t)
	_, err := ssh.Dial(t.Context(), ssh.Config{Address: server.Address, Signer: server.Signer, HostKeys: []xssh.PublicKey{other.PublicKey()}, Patience: time.Minute})
	require.ErrorContains(t, err, "unknown host key")
}

func TestAKeyThatTheServerDoesNotKnowIsRefusedAtOnce(t *testing.T) {
	server := sshtest.New(t)
	other, _ := sshtest.NewKey(t)
	_, err := ssh.Dial(t.Context(), ssh.Config{Address: server.Address, Signer: other, HostKeys: []xssh.PublicKey{server.HostKey}, Patience: time.Minute})
	require.ErrorContains(t, err, "user-data")
}

func TestRunReturnsTheOutputAndKeepsVariables(t *testing.T) {
	client := dial(t, sshtest.New(t))
	out, err := client.Run(t.Context(), ssh.Script{Name: "greet", Body: "#!/bin/bash\nset -euo pipefail\ncat\nprintf '%s|' \"$A\" \"$B\"\necho noise >&2\n", Env: map[string]string{"A": "it's $HOME `x`\nline", "B": ""}})
	require.NoError(t, err)
	require.Equal(t, "it's $HOME `x`\nline||", out)
}

func TestAFailedScriptGivesItsCodeAndItsLastLines(t *testing.T) {
	client := dial(t, sshtest.New(t))
	_, err := client.Run(t.Context(), ssh.Script{Name: "fail", Body: "for i in $(seq 1 100); do echo line $i; done; echo why >&2; exit 7"})
	var exit *ssh.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 7, exit.Code)
	require.Equal(t, "fail", exit.Script)
	require.True(t, strings.HasSuffix(exit.Tail, "why"))
	require.NotContains(t, exit.Tail, "line 50\n")
}

func TestOutputHasALimit(t *testing.T) {
	client := dial(t, sshtest.New(t))
	out, err := client.Run(t.Context(), ssh.Script{Name: "flood", Body: "head -c 3000000 /dev/zero | tr '\\0' x"})
	require.NoError(t, err)
	require.Len(t, out, 1<<20)
}

func TestACancelledScriptIsKilledWithWhatItStarted(t *testing.T) {
	client := dial(t, sshtest.New(t))
	pidFile := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("the user pressed stop")
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(pidFile); err == nil {
				cancel(reason)
			}
		}
	}()
	_, err := client.Run(ctx, ssh.Script{Name: "sleep", Body: "sleep 600 & echo $! > $F.new; mv $F.new $F; wait", Env: map[string]string{"F": pidFile}})
	require.ErrorIs(t, err, reason)
	text, err := os.ReadFile(pidFile)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z ") || syscall.Kill(pid, 0) != nil
	}, 5*time.Second, 10*time.Millisecond)
}

func TestUploadPutsFilesModesAndLinksInPlace(t *testing.T) {
	// The server is this machine: its folder for incoming files goes again, unless somebody else uses it.
	t.Cleanup(func() { _ = os.Remove("/var/lib/burano") })
	client := dial(t, sshtest.New(t))
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "old"), []byte("old"), 0o600))
	files := []ssh.File{
		{Path: dir + "/old", Content: []byte("new"), Mode: 0o755},
		{Path: dir + "/deep/er/secret", Content: []byte("s"), Mode: 0o600},
		{Path: dir + "/deep/empty"},
		{Path: dir + "/deep/link", Link: "er/secret"},
	}
	for range 2 {
		require.NoError(t, client.Upload(t.Context(), files))
		for path, want := range map[string]string{"old": "new", "deep/er/secret": "s", "deep/empty": "", "deep/link": "s"} {
			got, err := os.ReadFile(filepath.Join(dir, path))
			require.NoError(t, err)
			require.Equal(t, want, string(got))
		}
	}
	info, err := os.Stat(filepath.Join(dir, "deep/er/secret"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	info, err = os.Stat(filepath.Join(dir, "old"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o755), info.Mode().Perm())
	left, _ := filepath.Glob("/var/lib/burano/incoming.*")
	require.Empty(t, left)
	require.Error(t, client.Upload(t.Context(), []ssh.File{{Path: "../x"}}))
}

func TestCopyStreamsAFile(t *testing.T) {
	client := dial(t, sshtest.New(t))
	dir := t.TempDir()
	content := strings.Repeat("0123456789abcdef", 1<<16)
	require.NoError(t, os.WriteFile(dir+"/from", []byte(content), 0o600))
	require.NoError(t, client.Copy(t.Context(), dir+"/from", dir+"/a b/to"))
	got, err := os.ReadFile(dir + "/a b/to")
	require.NoError(t, err)
	require.Equal(t, content, string(got))
}

func TestDialContextReachesWhatTheServerReaches(t *testing.T) {
	client := dial(t, sshtest.New(t))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			_, _ = io.WriteString(conn, "hello")
			conn.Close()
		}
	}()
	conn, err := client.DialContext(t.Context(), "tcp", listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	got, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, "hello", string(got))
}

func TestALostConnectionIsMadeAgain(t *testing.T) {
	server := sshtest.New(t)
	client := dial(t, server)
	server.Stop()
	server.Start()
	require.Eventually(t, func() bool {
		out, err := client.Run(t.Context(), ssh.Script{Name: "again", Body: "echo again"})
		return err == nil && out == "again\n"
	}, 10*time.Second, 10*time.Millisecond)
}

func TestManyScriptsShareOneConnection(t *testing.T) {
	client := dial(t, sshtest.New(t))
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			out, err := client.Run(t.Context(), ssh.Script{Name: "n", Body: "echo $N; echo $PPID", Env: map[string]string{"N": strconv.Itoa(i)}})
			if err != nil || !strings.HasPrefix(out, strconv.Itoa(i)+"\n") {
				t.Errorf("script %d: %q, %v", i, out, err)
			}
		})
	}
	group.Wait()
}

func TestAnyTextPassesThroughTheEnvironment(t *testing.T) {
	client := dial(t, sshtest.New(t))
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringMatching(`[ -~\n\täß€]{0,40}`).Draw(rt, "text")
		out, err := client.Run(t.Context(), ssh.Script{Name: "echo", Body: `printf '%s' "$T"`, Env: map[string]string{"T": text}})
		require.NoError(rt, err)
		require.Equal(rt, text, out)
	})
}

func TestConnectionsAreToldOfWhenTheyBeginAndEnd(t *testing.T) {
	server := sshtest.Prepare(t)
	server.Start()
	var open atomic.Int64
	client, err := ssh.Dial(t.Context(), ssh.Config{Address: server.Address, Signer: server.Signer, HostKeys: []xssh.PublicKey{server.HostKey},
		Connected: func(change int) { open.Add(int64(change)) }})
	require.NoError(t, err)
	require.EqualValues(t, 1, open.Load())
	require.NoError(t, client.Close())
	require.Eventually(t, func() bool { return open.Load() == 0 }, 10*time.Second, time.Millisecond)
}

func TestACommandEndsThoughItsInputDoesNot(t *testing.T) {
	client := dial(t, sshtest.New(t))
	input, tell := io.Pipe()
	defer tell.Close()
	defer input.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var said strings.Builder
	go func() { _, _ = io.WriteString(tell, "go on\n") }()
	err := client.Stream(ctx, ssh.Job{Name: "early", Script: `read -r word; echo "$word"; exit 3`, Input: input, Stdout: &said})
	var exit *ssh.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 3, exit.Code)
	require.Equal(t, "go on\n", said.String())
}

func TestAnInputThatFailsFailsTheCommand(t *testing.T) {
	client := dial(t, sshtest.New(t))
	input, tell := io.Pipe()
	go func() {
		_, _ = io.WriteString(tell, "half of it")
		tell.CloseWithError(errors.New("the rest is lost"))
	}()
	require.ErrorContains(t, client.Stream(t.Context(), ssh.Job{Name: "take", Script: "cat >/dev/null", Input: input}), "the rest is lost")
}
