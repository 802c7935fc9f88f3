package clients

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// openstackClient is Debian's program, as murano is.
const openstackClient = "/usr/bin/openstack"

// TestOpenStacksClientManagesTheLocalCloud goes through testdata/openstack.txt: a line "$ user@project command" is a command, and the lines
// after it are the client's output, ids, times and secrets apart. Without @ the project is called as the user. The client takes seconds to
// start: it is given all commands of a user that follow one another at once.
func TestOpenStacksClientManagesTheLocalCloud(t *testing.T) {
	output, err := exec.Command(filepath.Join("..", "setup", "packages.sh"), "python3-openstackclient").CombinedOutput()
	require.NoErrorf(t, err, "%s", output)
	s := startKeystone(t)
	const script = "testdata/openstack.txt"
	transcript, err := os.ReadFile(script)
	require.NoError(t, err)

	var printed strings.Builder
	var user string
	var commands []string
	total := 0
	run := func() {
		if len(commands) > 0 {
			printed.WriteString(masked(strings.ReplaceAll(s.converse(user, commands), s.keystone, "<cloud>")))
		}
		total += len(commands)
		commands = nil
	}
	for line := range strings.Lines(string(transcript)) {
		text, asks := strings.CutPrefix(strings.TrimSpace(line), "$ ")
		if !asks {
			continue
		}
		who, command, _ := strings.Cut(text, " ")
		if who != user {
			run()
			user = who
		}
		commands = append(commands, command)
	}
	run()
	if *update {
		require.NoError(t, os.WriteFile(script, []byte(printed.String()), 0o600))
	}
	require.Greater(t, total, 50)
	require.Equal(t, string(transcript), printed.String())
}

// converse gives one openstack program commands to read, has it repeat each one before its answer, and returns its output with a "$
// who " before the commands.
func (s *server) converse(who string, commands []string) string {
	s.t.Helper()
	user, project, other := strings.Cut(who, "@")
	if !other {
		project = user
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), 3*time.Minute)
	defer cancel()
	program := exec.CommandContext(ctx, openstackClient)
	program.Dir = s.home
	program.Env = s.as(user, project, "OS_IDENTITY_API_VERSION=3", "PYTHONUNBUFFERED=1")
	program.Stdin = strings.NewReader("set echo true\n" + strings.Join(commands, "\n") + "\n")
	output, _ := program.CombinedOutput() // its end is that of the last command
	require.NoError(s.t, ctx.Err(), "openstack as %s", who)
	var answers strings.Builder
	next := 0
	for line := range strings.Lines(strings.TrimSuffix(string(output), "\n")) { // it prints one more at the end of its input
		if next < len(commands) && strings.TrimSpace(line) == commands[next] {
			line = "$ " + who + " " + line
			next++
		}
		if next > 0 {
			answers.WriteString(line)
		}
	}
	require.Equal(s.t, len(commands), next, "openstack as %s did not repeat all commands:\n%s", who, output)
	return answers.String()
}
