package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/sensitive"
)

// exportingServer answers an export, and knows no class.
func exportingServer(t *testing.T, export string) *Client {
	return following(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.URL.Path == "/burano/v1/environments/e1/export" {
			fmt.Fprint(w, export)
			return
		}
		http.NotFound(w, r)
	})
}

const twoObjects = `{"name": "one", "description": "the first", "region": "", "metadata": {"org.test": {"tier": 1}}, "defaultNetworks": {"environment": {"?": {"id": "0123456789abcdef0123456789abcdef", "type": "io.murano.resources.NeutronNetwork"}}},
	"packages": [{"name": "org.test", "version": "1.0.0", "id": "p"}],
	"applications": [{"?": {"id": "a1", "type": "org.test.A"}, "name": "a1", "size": 9007199254740993, "ratio": 0.5, "password": "` + sensitive.Mark + `"},
		{"?": {"id": "a2", "type": "org.test.B"}, "on": "a1", "list": ["a1", "b"], "network": "0123456789abcdef0123456789abcdef"}]}`

func TestAnExportIsAFileThatIsReadAgain(t *testing.T) {
	c := exportingServer(t, twoObjects)
	file, err := c.Files().Export(t.Context(), "e1", 0, "")
	require.NoError(t, err)
	leftOut, sealed := file.Unread()
	require.Equal(t, []string{"applications[0].password"}, leftOut)
	require.Empty(t, sealed)
	text, err := file.YAML("Environment one\n  and more")
	require.NoError(t, err)
	require.Contains(t, string(text), "# Environment one\n#   and more\nname: one\ndescription: the first\nmetadata:\n  org.test:\n    tier: 1\n")
	require.Contains(t, string(text), "size: 9007199254740993\n", "no digit is lost")
	path := filepath.Join(t.TempDir(), "one.yaml")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	read, err := ReadEnvironmentFile(path)
	require.NoError(t, err)
	require.Equal(t, "one.yaml", read.source.name)
	require.Len(t, read.source.digest, 64)
	require.Equal(t, []FilePackage{{"org.test", "1.0.0"}}, read.Packages)
	require.Equal(t, "the first", read.Description)
	require.Equal(t, map[string]any{"org.test": map[string]any{"tier": 1}}, read.Metadata)
	was, err := json.Marshal(file.Applications)
	require.NoError(t, err)
	is, err := json.Marshal(read.Applications)
	require.NoError(t, err)
	require.JSONEq(t, string(was), string(is))
}

func TestARenewedFileHasNewIDsAndTheSameReferences(t *testing.T) {
	c := exportingServer(t, twoObjects)
	file, err := c.Files().Export(t.Context(), "e1", 0, "")
	require.NoError(t, err)
	renewed, err := c.Files().Renewed(t.Context(), file)
	require.NoError(t, err)
	header := func(value any) string { return value.(map[string]any)["?"].(map[string]any)["id"].(string) }
	first, network := header(renewed.Applications[0]), header(renewed.DefaultNetworks["environment"])
	require.Regexp(t, "^[0-9a-f]{32}$", first)
	require.NotEqual(t, "0123456789abcdef0123456789abcdef", network)
	require.Equal(t, "a1", renewed.Applications[0]["name"], "a name is not a reference")
	require.Equal(t, []any{first, []any{first, "b"}, network}, []any{renewed.Applications[1]["on"], renewed.Applications[1]["list"], renewed.Applications[1]["network"]})
	require.Equal(t, "a1", header(file.Applications[0]), "the export stays as it is")
}

func TestSealedSecretsAreRefusedWhereNothingOpensThem(t *testing.T) {
	c := exportingServer(t, twoObjects)
	applications := []map[string]any{{"?": map[string]any{"id": "a1", "type": "org.test.A"}, "text": "password: " + sensitive.SealedPrefix + "AAAA"}}
	_, err := c.Files().TemplateIDs(t.Context(), "one", applications)
	require.ErrorContains(t, err, "applications[0].text is sealed")
	require.ErrorContains(t, err, "burano environment import")
}
