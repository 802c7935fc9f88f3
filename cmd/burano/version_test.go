package main

import (
	"bytes"
	"encoding/json"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/version"
)

func TestTheVersionNamesCommitAndGo(t *testing.T) {
	run := func(arguments ...string) string {
		var out bytes.Buffer
		root := command()
		root.SetArgs(arguments)
		root.SetOut(&out)
		require.NoError(t, root.Execute())
		return out.String()
	}
	require.Equal(t, "burano "+version.Version+" (commit "+version.Commit()+", "+runtime.Version()+", "+runtime.GOOS+"/"+runtime.GOARCH+")\n", run("version"))
	var answer map[string]string
	require.NoError(t, json.Unmarshal([]byte(run("version", "-o", "json")), &answer))
	require.NotEmpty(t, answer["commit"])
	require.Contains(t, run("--version"), answer["commit"])
}
