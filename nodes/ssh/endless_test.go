package ssh_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/ssh/sshtest"
)

func TestAScriptThatWritesWithoutEndIsEnded(t *testing.T) {
	for name, body := range map[string]string{"standard output": "yes", "standard error": "yes >&2"} {
		t.Run(name, func(t *testing.T) {
			client := dial(t, sshtest.New(t))
			out, err := client.Run(t.Context(), ssh.Script{Name: "flood", Body: body})
			require.ErrorContains(t, err, "its output has more than 64 MiB")
			require.True(t, door.IsExceeded(err))
			require.LessOrEqual(t, len(out), 1<<20)
			out, err = client.Run(t.Context(), ssh.Script{Name: "next", Body: "echo works"})
			require.NoError(t, err, "the connection is of use for others")
			require.Equal(t, "works\n", out)
		})
	}
}

// A server need not run the commands that it gets.
func TestAServerThatAnswersEveryCommandWithoutEndIsLeft(t *testing.T) {
	server := sshtest.Prepare(t)
	server.Settings = "ForceCommand exec tr '\\0' x </dev/zero"
	server.Start()
	client := dial(t, server)
	_, err := client.Run(t.Context(), ssh.Script{Name: "look around", Body: "true"})
	require.ErrorContains(t, err, "the first line of its output has more than 1 KiB")
	content := &bytes.Buffer{}
	require.ErrorContains(t, client.Receive(t.Context(), "/etc/hostname", content, 1<<20), "the first line of its output has more than 1 KiB")
	require.Zero(t, content.Len())
}

func TestAFileThatIsTooLargeIsNotReceived(t *testing.T) {
	client := dial(t, sshtest.New(t))
	content := &bytes.Buffer{}
	require.ErrorContains(t, client.Receive(t.Context(), "/dev/zero", content, 1<<20), "the file /dev/zero has more than 1 MiB")
	require.Equal(t, 1<<20, content.Len())
}

func TestAWriterThatTakesNoMoreEndsTheCommand(t *testing.T) {
	client := dial(t, sshtest.New(t))
	kept := &door.Buffer{Limit: 1 << 10, What: "the answer of Helm"}
	for name, job := range map[string]ssh.Job{
		"standard output": {Name: "helm", Script: "yes", Stdout: kept},
		"standard error":  {Name: "helm", Script: "yes >&2", Stderr: kept},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorContains(t, client.Stream(t.Context(), job), "the answer of Helm has more than 1 KiB")
		})
	}
}
