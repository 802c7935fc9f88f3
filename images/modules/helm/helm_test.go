package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == helmName {
		main()
	}
	os.Exit(m.Run())
}

func TestTheProgramIsHelmByItsName(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	link := filepath.Join(t.TempDir(), helmName)
	require.NoError(t, os.Symlink(program, link))
	home := "HOME=" + t.TempDir()
	command := exec.Command(link, "version", "--template", "{{.Version}}")
	command.Env = []string{home}
	output, err := command.CombinedOutput()
	require.NoError(t, err, string(output))
	require.Regexp(t, "^v4", string(output))
	command = exec.Command(link, "list")
	command.Env = []string{home, "KUBECONFIG=/nowhere"}
	output, err = command.CombinedOutput()
	require.Error(t, err, string(output))
	require.Equal(t, 1, command.ProcessState.ExitCode())
}
