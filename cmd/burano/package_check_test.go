package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPackagesAreCheckedOnTheCommandLine(t *testing.T) {
	out, err := called(t, "", "package", "check", "../../test/packages/io.burano.demo.Hello")
	require.NoError(t, err)
	require.Equal(t, "../../test/packages/io.burano.demo.Hello: io.burano.demo.Hello 1.0.0 is in order\n", out)

	out, err = called(t, "", "package", "check", "../../catalog/apps/com.mirantis.docker.kubernetes.KubernetesCluster")
	require.EqualError(t, err, "1 errors in what was checked")
	require.Contains(t, out, "The package com.mirantis.docker.kubernetes.KubernetesCluster comes with Burano")

	folder := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write("manifest.yaml", "Format: '9'\n")
	out, err = called(t, "", "package", "check", folder)
	require.EqualError(t, err, "1 errors in what was checked")
	require.Contains(t, out, folder+"/manifest.yaml:1:9: manifest: ")

	write("manifest.yaml", "Format: '1.4'\nType: Library\nFullName: a.B\nClasses: {a.B: B.yaml}\n")
	write("Classes/B.yaml", "Name: a.B\nMethods:\n  m:\n    Body:\n    - Return: 1\n    - Return: 2\n")
	out, err = called(t, "", "package", "check", folder, "--packages", "../../test/packages")
	require.NoError(t, err) // a warning only
	require.Equal(t, folder+"/Classes/B.yaml:6:7: unreachable: nothing comes here: what stands before it leaves the block (warning)\n", out)

	_, err = called(t, "", "package", "check", filepath.Join(folder, "nothing"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
