package nodes

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// helmScript runs the script with a program in the place of the image's.
func helmScript(t *testing.T, program, input string) (string, error) {
	t.Helper()
	return helmScriptLocking(t, program, input, "shop.pages")
}

func helmScriptLocking(t *testing.T, program, input, lock string) (string, error) {
	t.Helper()
	command := exec.Command("bash", "-c", helmReleaseScript, "helm", lock, "5")
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HELM_RELEASE=" + program, "HELM_LOCKS=" + t.TempDir()}
	command.Stdin = strings.NewReader(input)
	output, err := command.Output()
	return string(output), err
}

func TestTheProgramForHelmReleasesGetsTheRequest(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/bash\ncat\n"), 0o755))
	output, err := helmScript(t, program, `{"action":"status"}`)
	require.NoError(t, err)
	require.Equal(t, `{"action":"status"}`, output)
	output, err = helmScriptLocking(t, program, `{"action":"diff"}`, "")
	require.NoError(t, err)
	require.Equal(t, `{"action":"diff"}`, output)
}

func TestAnImageWithoutTheProgramForHelmReleasesIsToldFromOneThatFails(t *testing.T) {
	_, err := helmScript(t, "/none", "")
	var exit *exec.ExitError
	require.True(t, errors.As(err, &exit))
	require.Equal(t, helmMissing, exit.ExitCode())
}
