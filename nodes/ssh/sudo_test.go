package ssh_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	xssh "golang.org/x/crypto/ssh"

	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/ssh/sshtest"
)

// bySudo connects as a user who becomes root by the program sudo that has this text.
func bySudo(t *testing.T, sudo, folder string) *ssh.Client {
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "sudo"), []byte(sudo), 0o755))
	server := sshtest.Prepare(t)
	server.Path = bin + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	server.Start()
	client, err := ssh.Dial(t.Context(), ssh.Config{Address: server.Address, Signer: server.Signer, HostKeys: []xssh.PublicKey{server.HostKey},
		Sudo: true, Fence: 3, FenceFolder: folder})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

// passing records its call, and runs its command in a process of its own, as sudo does.
const passing = `#!/bin/bash
echo "$*" >>"$(dirname "$0")/asked"
[[ $1 == -n && $2 == -- ]] || exit 9
shift 2
"$@"
`

func TestScriptsAndFilesGoThroughSudo(t *testing.T) {
	client := bySudo(t, passing, t.TempDir())
	out, err := client.Run(t.Context(), ssh.Script{Name: "greet", Body: "echo hello; exit 0"})
	require.NoError(t, err)
	require.Equal(t, "hello\n", out)
	file := filepath.Join(t.TempDir(), "it's a file")
	require.NoError(t, client.Upload(t.Context(), []ssh.File{{Path: file, Content: []byte("text")}}))
	var sent bytes.Buffer
	require.NoError(t, client.Receive(t.Context(), file, &sent, 1<<20))
	require.Equal(t, "text", sent.String())
}

func TestAScriptThatIsStoppedEndsBehindSudoToo(t *testing.T) {
	client := bySudo(t, passing, t.TempDir())
	begun, after := filepath.Join(t.TempDir(), "begun"), filepath.Join(t.TempDir(), "after")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := client.Run(ctx, ssh.Script{Name: "long", Body: "(echo $BASHPID > " + begun + ".new; mv " + begun + ".new " + begun + "; sleep 600; touch " + after + ")"})
		ended <- err
	}()
	var pid []byte
	require.Eventually(t, func() (found bool) { pid, _ = os.ReadFile(begun); return len(pid) > 0 }, 20*time.Second, 5*time.Millisecond)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.Eventually(t, func() bool {
		_, err := os.Stat("/proc/" + strings.TrimSpace(string(pid)) + "/cmdline")
		return os.IsNotExist(err)
	}, 20*time.Second, 5*time.Millisecond, "what the script started still runs")
}

func TestASudoThatRefusesIsSaidAsWhatItIs(t *testing.T) {
	client := bySudo(t, "#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n", t.TempDir())
	_, err := client.Run(t.Context(), ssh.Script{Name: "greet", Body: "true"})
	var refused *ssh.SudoError
	require.ErrorAs(t, err, &refused)
	require.ErrorContains(t, err, "a password is required")
	require.ErrorContains(t, err, "NOPASSWD")
}

func TestOutputOfAJobComesAsItIsWritten(t *testing.T) {
	server := sshtest.New(t)
	client := worker(t, server, t.TempDir(), 1)
	reader, writer := newPipe(t)
	file := filepath.Join(t.TempDir(), "go on")
	ended := make(chan error, 1)
	var problems bytes.Buffer
	go func() {
		ended <- client.Stream(t.Context(), ssh.Job{Name: "slow", Script: `echo "$1"; cat; until [[ -e $2 ]]; do sleep 0.01; done; echo bad >&2; exit 3`,
			Args: []string{"it's first", file}, Input: strings.NewReader("second\n"), Stdout: writer, Stderr: &problems})
	}()
	require.Equal(t, "it's first\nsecond\n", read(t, reader, len("it's first\nsecond\n")))
	require.Empty(t, ended)
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	var exit *ssh.ExitError
	require.ErrorAs(t, <-ended, &exit)
	require.Equal(t, 3, exit.Code)
	require.Equal(t, "bad\n", problems.String())
}

func newPipe(t *testing.T) (reader, writer *os.File) {
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { reader.Close(); writer.Close() })
	return reader, writer
}

func read(t *testing.T, reader *os.File, n int) string {
	require.NoError(t, reader.SetReadDeadline(time.Now().Add(20*time.Second)))
	text := make([]byte, n)
	for at := 0; at < n; {
		got, err := reader.Read(text[at:])
		require.NoError(t, err)
		at += got
	}
	return string(text)
}
