package e2e

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// wrongUse tries mistakes of users. None of them may reach the cloud: found is the project's content before.
func wrongUse(t *testing.T, l *lab, found map[string][]string) {
	demo := l.user(t, "burano-demo")

	t.Run("a package that is no package is refused with a reason", func(t *testing.T) {
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		part, err := form.CreateFormFile("file", "broken.zip")
		require.NoError(t, err)
		_, err = part.Write([]byte("this is no zip"))
		require.NoError(t, err)
		require.NoError(t, form.Close())
		got := demo.call(t, http.MethodPost, "/v1/catalog/packages", body.Bytes(), "Content-Type", form.FormDataContentType())
		require.Equal(t, http.StatusBadRequest, got.Status)
		require.Contains(t, string(got.Body), "zip")

		path := filepath.Join(t.TempDir(), "broken.zip")
		require.NoError(t, os.WriteFile(path, []byte("this is no zip"), 0o600))
		output, err := l.try(l.as("burano-demo"), "burano", "package", "import", path)
		require.Error(t, err)
		require.Contains(t, output, path)
	})

	t.Run("without a token, and with one that Keystone does not know, nothing is answered", func(t *testing.T) {
		for _, token := range []string{"", "nonsense"} {
			got := demo.call(t, http.MethodGet, "/v1/environments", nil, "X-Auth-Token", token)
			require.Equal(t, http.StatusUnauthorized, got.Status)
		}
	})

	t.Run("unknown ids are not found, and the answer repeats them", func(t *testing.T) {
		unknown := strings.Repeat("f", 32)
		for _, path := range []string{"/v1/environments/" + unknown, "/v1/catalog/packages/" + unknown} {
			got := demo.call(t, http.MethodGet, path, nil)
			require.Equal(t, http.StatusNotFound, got.Status)
			require.Contains(t, string(got.Body), unknown)
		}
		output, err := l.try(l.as("burano-demo"), "burano", "environment", "show", "nowhere")
		require.Error(t, err)
		require.Contains(t, output, "nowhere")
	})

	t.Run("a model that cannot be deployed ends before any call of the cloud, with one report per mistake", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "wrong.yaml")
		require.NoError(t, os.WriteFile(file, []byte(`
name: wrong
applications:
  - "?": {type: org.example.Nowhere, id: a}
    name: a
  - "?": {type: com.mirantis.docker.kubernetes.KubernetesPod, id: pod}
    name: pod
    kubernetesCluster: null
    replicas: -1
`), 0o600))
		output, err := l.try(l.as("burano-demo"), "burano", "deploy", file, "--follow")
		require.Error(t, err, output)
		for _, part := range []string{"services[0]: there is no class org.example.Nowhere", "services[1].kubernetesCluster", "services[1].replicas", "3 things are wrong with it"} {
			require.Contains(t, output, part, "our own client has the draft checked before")
		}
		require.NotContains(t, l.run(t, l.as("burano-demo"), "burano", "environment", "list"), "wrong")

		id := demo.must(t, http.MethodPost, "/v1/environments", map[string]any{"name": "wrong"})["id"].(string)
		session := demo.must(t, http.MethodPost, "/v1/environments/"+id+"/configure", nil)["id"].(string)
		got := demo.call(t, http.MethodPut, "/v1/environments/"+id+"/services", []any{
			map[string]any{"?": map[string]any{"type": "org.example.Nowhere", "id": "a"}, "name": "a"},
			map[string]any{"?": map[string]any{"type": "com.mirantis.docker.kubernetes.KubernetesPod", "id": "pod"}, "name": "pod",
				"kubernetesCluster": nil, "replicas": -1},
		}, "X-Configuration-Session", session)
		require.Equal(t, http.StatusOK, got.Status, string(got.Body))
		got = demo.call(t, http.MethodPost, "/v1/environments/"+id+"/sessions/"+session+"/deploy", nil)
		require.Equal(t, http.StatusOK, got.Status, string(got.Body))
		l.eventually(t, 20*time.Second, "the deployment ends", func() error {
			if status := environmentNamed(t, demo, "wrong")["status"]; status != "deploy failure" {
				return fmt.Errorf("the environment is in status %v", status)
			}
			return nil
		})
		deployment := demo.must(t, http.MethodGet, "/v1/environments/"+id+"/deployments", nil)["deployments"].([]any)[0].(map[string]any)
		require.Equal(t, "completed_w_errors", deployment["state"])
		reports := demo.must(t, http.MethodGet, "/v1/environments/"+id+"/deployments/"+deployment["id"].(string), nil)["reports"].([]any)
		var errors []string
		for _, one := range reports {
			if report := one.(map[string]any); report["level"] == "error" {
				errors = append(errors, report["text"].(string))
			}
		}
		text := strings.Join(errors, "\n")
		require.Len(t, errors, 3, text)
		require.Contains(t, text, "org.example.Nowhere")
		require.Contains(t, text, "kubernetesCluster")
		require.Contains(t, text, "replicas")
		asBefore(t, demo, found) // nothing was made, and the trust has ended with the deployment
		l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "wrong")
		asBefore(t, demo, found)
	})
}
