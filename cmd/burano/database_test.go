package main

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPrintConfigIsACommand(t *testing.T) {
	var output bytes.Buffer
	root := command()
	root.SetOut(&output)
	root.SetErr(io.Discard)
	root.SetArgs([]string{"serve", "--print-config", "--listen", "0.0.0.0:1"})
	require.NoError(t, root.ExecuteContext(t.Context()))
	require.Contains(t, output.String(), "listen: 0.0.0.0:1  # --listen\n")
}

func TestTheDatabaseIsMigratedAndItsVersionShown(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	run := func(args ...string) (string, error) {
		var output bytes.Buffer
		root := command()
		root.SetOut(&output)
		root.SetErr(io.Discard)
		root.SetArgs(append([]string{"db", "--state", state}, args...))
		err := root.ExecuteContext(t.Context())
		return output.String(), err
	}
	_, err := run("version")
	require.ErrorContains(t, err, "there is no database yet")
	require.NoFileExists(t, filepath.Join(state, "burano.db"), "looking makes nothing")
	migrated, err := run("migrate")
	require.NoError(t, err)
	require.Regexp(t, `(?m)^catalog +([1-9]\d*) +([1-9]\d*)$`, migrated)
	require.Regexp(t, `(?m)^orchestrator +([1-9]\d*) +([1-9]\d*)$`, migrated)
	shown, err := run("version")
	require.NoError(t, err)
	require.Equal(t, migrated, shown)
	for line := range strings.Lines(shown) {
		if fields := strings.Fields(line); fields[0] != "TABLES" {
			require.Equal(t, fields[2], fields[1], line)
		}
	}
}
