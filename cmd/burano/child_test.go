package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/cmd/burano/process"
	"github.com/burano/burano/internal/door"
)

// TestTheProgramIsItsOwnChild has this program, which is Burano for a child, read a chart within the limits that a server gives.
func TestTheProgramIsItsOwnChild(t *testing.T) {
	read := func(template string) (string, error) {
		var archive bytes.Buffer
		compressed := gzip.NewWriter(&archive)
		files := tar.NewWriter(compressed)
		for name, content := range map[string]string{"Chart.yaml": "apiVersion: v2\nname: pages\nversion: 1.2.3\n", "templates/a.yaml": template} {
			require.NoError(t, files.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "chart/" + name, Size: int64(len(content)), Mode: 0o644}))
			_, err := files.Write([]byte(content))
			require.NoError(t, err)
		}
		require.NoError(t, files.Close())
		require.NoError(t, compressed.Close())
		input, err := json.Marshal(map[string][]byte{"Manifest": []byte("Format: Helm/1.0\nFullName: org.Pages\n"), "Archive": archive.Bytes()})
		require.NoError(t, err)
		result, err := door.NewChildren(process.OwnProgram, process.ChildPlaces, door.Limits{}).Run(t.Context(), door.Job{Kind: "read-chart", Doing: "reading the chart", Input: input})
		return string(result), err
	}
	result, err := read("a: {{ .Values.a }}")
	require.NoError(t, err)
	require.Contains(t, result, `"Version":"1.2.3"`)
	_, err = read("{{ if }}")
	require.EqualError(t, err, "templates/a.yaml:1: missing value for if")
}
