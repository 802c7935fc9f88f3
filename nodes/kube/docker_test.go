package kube

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDockerIsToldWhatContainerdIs(t *testing.T) {
	told := func(host Host, s RegistrySettings) (config map[string]any) {
		t.Helper()
		registries, err := ParseRegistries(s)
		require.NoError(t, err)
		units, err := Cluster{Host: host, Runtime: Docker, Registries: registries}.RuntimeUnits()
		require.NoError(t, err)
		require.Equal(t, dockerUnit, units[1].Name)
		for _, file := range units[1].Files {
			if file.Path == dockerConfig {
				require.NoError(t, json.Unmarshal(file.Content, &config))
			}
		}
		return config
	}
	config := told(Host{Machine: true}, RegistrySettings{})
	require.NotContains(t, config, "insecure-registries")
	require.NotContains(t, config, "registry-mirrors")
	require.NotContains(t, config, "default-runtime", "root of a machine may lower the score")
	config = told(Host{}, RegistrySettings{Registry: "registry.example.org:5000", Mirrors: "https://a.example.org/, http://b.example.org:5000"})
	require.Equal(t, []any{"registry.example.org:5000"}, config["insecure-registries"])
	require.Equal(t, []any{"https://a.example.org", "http://b.example.org:5000"}, config["registry-mirrors"])
	require.Equal(t, "within", config["default-runtime"])
	require.NotContains(t, told(Host{}, RegistrySettings{Registry: "https://registry.example.org"}), "insecure-registries", "its certificate is checked")
}

func TestRuntimesThatAreNoneOrCannotDoWhatIsAskedAreRefused(t *testing.T) {
	for text, want := range map[string]Runtime{"": Containerd, "containerd": Containerd, "docker": Docker} {
		runtime, err := ParseRuntime(text)
		require.NoError(t, err)
		require.Equal(t, want, runtime)
	}
	_, err := ParseRuntime("podman")
	require.ErrorContains(t, err, "containerRuntime is containerd or docker")

	registries, err := ParseRegistries(RegistrySettings{Mirrors: "https://mirror.example.org, https://harbor.example.org/v2/hub"})
	require.NoError(t, err)
	require.NoError(t, Containerd.Check(registries))
	require.ErrorContains(t, Docker.Check(registries), "dockerMirror has https://harbor.example.org/v2/hub, and Docker takes no mirror with a path")
}

// The configuration of a container may have the same text elsewhere, as JSON in a string.
func TestScoresThatRootMayNotSetAreLeftOut(t *testing.T) {
	folder := t.TempDir()
	bundle := filepath.Join(folder, "config.json")
	require.NoError(t, os.WriteFile(bundle, []byte(`{"env":["A={\"oomScoreAdj\":-5}"],"oomScoreAdj":-998,"b":{"oomScoreAdj":1000}}`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "runc"), []byte("#!/bin/bash\necho \"$@\"\n"), 0o755))
	within := filepath.Join(folder, "within")
	require.NoError(t, os.WriteFile(within, withinScript, 0o755))
	command := exec.Command(within, "--root", "/run/x", "create", "--bundle", folder, "id")
	command.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"))
	output, err := command.CombinedOutput()
	require.NoError(t, err, string(output))
	require.Equal(t, "--root /run/x create --bundle "+folder+" id\n", string(output))
	content, err := os.ReadFile(bundle)
	require.NoError(t, err)
	require.Equal(t, `{"env":["A={\"oomScoreAdj\":-5}"],"oomScoreAdj":0,"b":{"oomScoreAdj":1000}}`, string(content))
}
