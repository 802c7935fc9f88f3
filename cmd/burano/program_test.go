package main

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/door"
)

// asProgram is the variable that makes the test's binary Burano itself, so that a test can kill it.
const asProgram = "BURANO_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" || door.IsChild(os.Args[1:]) {
		main()
		return
	}
	os.Exit(m.Run())
}

// program is a run of Burano in a process of its own.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), self, args...)
	command.Env = append(os.Environ(), asProgram+"=1")
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return command
}

// run runs Burano to its end and returns its output.
func run(t *testing.T, args ...string) string {
	t.Helper()
	output, err := program(t, args...).CombinedOutput()
	require.NoError(t, err, string(output))
	return string(output)
}

// killAfter runs Burano and kills it as soon as it has written a line with the text.
func killAfter(t *testing.T, text string, args ...string) {
	t.Helper()
	command := program(t, args...)
	output, err := command.StdoutPipe()
	require.NoError(t, err)
	var complaints strings.Builder
	command.Stderr = &complaints
	require.NoError(t, command.Start())
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if strings.Contains(lines.Text(), text) {
			require.NoError(t, command.Process.Kill())
			_ = command.Wait()
			return
		}
	}
	t.Fatalf("burano %s ended before it wrote %q: %v %s", strings.Join(args, " "), text, command.Wait(), complaints.String())
}
