package kube

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/nodes/ssh"
)

func TestRegistriesOfNodes(t *testing.T) {
	parsed := func(s RegistrySettings) (files map[string]string, logins map[string]string) {
		t.Helper()
		r, err := ParseRegistries(s)
		require.NoError(t, err)
		folder, list := r.runtime()
		files = make(map[string]string)
		for _, file := range list {
			files[strings.TrimPrefix(file.Path, folder+"/")] = string(file.Content)
		}
		file, err := r.loginsFile()
		require.NoError(t, err)
		require.EqualValues(t, 0o600, file.Mode)
		var document struct {
			Auths map[string]struct{ Auth string }
		}
		require.NoError(t, json.Unmarshal(file.Content, &document))
		logins = make(map[string]string)
		for host, one := range document.Auths {
			plain, err := base64.StdEncoding.DecodeString(one.Auth)
			require.NoError(t, err)
			logins[host] = string(plain)
		}
		return files, logins
	}

	files, logins := parsed(RegistrySettings{})
	require.Empty(t, files)
	require.Empty(t, logins)
	require.NotContains(t, containerdConfig(t, RegistrySettings{}), "config_path", "containerd of a cluster without registries is as it was")

	files, logins = parsed(RegistrySettings{Registry: "registry.example.org:5000", User: "team", Password: "a:b c"})
	require.Equal(t, map[string]string{"registry.example.org:5000/hosts.toml": `
[host."https://registry.example.org:5000"]
  capabilities = ["pull", "resolve"]
  skip_verify = true

[host."http://registry.example.org:5000"]
  capabilities = ["pull", "resolve"]
`}, files)
	require.Equal(t, map[string]string{"registry.example.org:5000": "team:a:b c"}, logins)
	files, _ = parsed(RegistrySettings{Registry: "http://10.0.0.1:5000/"})
	require.Equal(t, "\n[host.\"http://10.0.0.1:5000\"]\n  capabilities = [\"pull\", \"resolve\"]\n", files["10.0.0.1:5000/hosts.toml"])
	files, logins = parsed(RegistrySettings{Registry: "https://registry.example.org", User: "a", Password: "b"})
	require.Empty(t, files, "its certificate is checked, as any registry's is")
	require.Equal(t, map[string]string{"registry.example.org": "a:b"}, logins)

	files, _ = parsed(RegistrySettings{Mirrors: "https://one.example.org, http://two.example.org:8080/v2/hub/"})
	require.Equal(t, map[string]string{"docker.io/hosts.toml": `server = "https://registry-1.docker.io"

[host."https://one.example.org"]
  capabilities = ["pull", "resolve"]

[host."http://two.example.org:8080/v2/hub"]
  capabilities = ["pull", "resolve"]
  override_path = true
`}, files)
	_, logins = parsed(RegistrySettings{GoogleKey: " {\n \"type\": \"service_account\"}\n"})
	require.Len(t, logins, 3)
	require.Equal(t, `_json_key:{"type":"service_account"}`, logins["*.pkg.dev"])

	one := containerdConfig(t, RegistrySettings{Registry: "a.example.org"})
	other := containerdConfig(t, RegistrySettings{Registry: "b.example.org"})
	require.Contains(t, one, `config_path = "/etc/containerd/registries/`)
	require.NotEqual(t, one, other, "nothing stays of the registry before")
}

func containerdConfig(t *testing.T, s RegistrySettings) string {
	t.Helper()
	r, err := ParseRegistries(s)
	require.NoError(t, err)
	files := Cluster{Registries: r}.Containerd().Files
	var config ssh.File
	for _, file := range files {
		if file.Path == "/etc/containerd/config.toml" {
			config = file
		}
	}
	return string(config.Content)
}

func TestRegistriesThatCannotBeUsedAreRefused(t *testing.T) {
	for _, one := range []struct {
		settings RegistrySettings
		says     string
	}{
		{RegistrySettings{Registry: "ftp://registry.example.org"}, "dockerRegistry is \"ftp://registry.example.org\""},
		{RegistrySettings{Registry: "registry.example.org/team"}, "give a host and its port"},
		{RegistrySettings{Registry: "https://user:pencil@registry.example.org"}, "dockerRegistry is \"https://…@registry.example.org\""},
		{RegistrySettings{Registry: "a\"]\n[host"}, "give a host and its port"},
		{RegistrySettings{Registry: "a.example.org", User: "me"}, "give both, or none"},
		{RegistrySettings{Password: "pencil"}, "which is empty: name it, or leave them out"},
		{RegistrySettings{Mirrors: "mirror.example.org"}, "dockerMirror has \"mirror.example.org\": give the URL"},
		{RegistrySettings{Mirrors: "https://one.example.org https://user:pencil@two.example.org"}, "\"https://…@two.example.org\""},
		{RegistrySettings{GoogleKey: "pencil"}, "gcloudKey is no JSON object"},
		{RegistrySettings{GoogleKey: `["pencil"]`}, "gcloudKey is no JSON object"},
	} {
		_, err := ParseRegistries(one.settings)
		require.ErrorContains(t, err, one.says)
		require.NotContains(t, err.Error(), "pencil")
	}
}
