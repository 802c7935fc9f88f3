package api

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/blackbox"
	"github.com/burano/burano/internal/identity"
)

func TestTheNextStartWouldKnowWhichRequestsRun(t *testing.T) {
	folder := t.TempDir()
	box, _, _, err := blackbox.Open(filepath.Join(folder, "running"))
	require.NoError(t, err)
	var ran []blackbox.Work
	s := newServer(t, func(config *Config) {
		config.Running = box
		config.Choices = func(context.Context, identity.Caller, string, string) (any, error) {
			// As it is when the server is killed here.
			now, err := os.ReadFile(filepath.Join(folder, "running"))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(folder, "copy"), now, 0o600))
			_, ran, _, err = blackbox.Open(filepath.Join(folder, "copy"))
			require.NoError(t, err)
			return []any{}, nil
		}
	})
	s.call("demo", "", "GET", "/burano/v1/cloud/flavors", nil, 200)
	require.Len(t, ran, 1)
	require.NotEmpty(t, ran[0].Key)
	ran[0].Key = ""
	require.Equal(t, []blackbox.Work{{Kind: blackbox.Request, Project: callers["{token:demo}"].ProjectID, What: "GET /burano/v1/cloud/flavors"}}, ran)
}

func TestAPackageThatEndedServersIsRefused(t *testing.T) {
	box, _, _, err := blackbox.Open(filepath.Join(t.TempDir(), "running"))
	require.NoError(t, err)
	s := newServer(t, func(config *Config) { config.Running = box })
	archive := zipArchive(t, zipEntry{name: "manifest.yaml", content: goodManifest}, zipEntry{name: "Classes/Bad.yaml", content: "Name: org.Bad\n"})
	key := func(token string) string {
		return blackbox.Key([]byte(callers["{token:"+token+"}"].ProjectID), []byte("POST"), []byte("/v1/catalog/packages"), archive)
	}
	box.Suspect(map[string]bool{key("demo"): true, key("other"): false})
	upload := func(token string) (int, string) {
		body, contentType := uploadForm(t, archive) // with another boundary each time
		answer := s.send("POST", "/v1/catalog/packages", map[string]string{"X-Auth-Token": "{token:" + token + "}", "Content-Type": contentType}, body)
		return answer.Code, answer.Body.String()
	}
	status, text := upload("demo")
	require.Equal(t, 403, status)
	require.Contains(t, text, "This package ended the server twice while the server did nothing else, or four times: it is refused for a day")
	require.Empty(t, box.Survived())
	status, text = upload("other")
	require.Equal(t, 200, status, text)
	require.Equal(t, key("other"), <-box.Survived(), "it ended no server this time")
}
