package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestServersOfPlainDebian has plans set up servers of images that have nothing of ours, with the cloud-init and the sshd of their
// distribution. BURANO_DISTRIBUTIONS is a folder with them, as `make test-distributions` makes it: NAME.tar.
func TestServersOfPlainDebian(t *testing.T) {
	folder := os.Getenv("BURANO_DISTRIBUTIONS")
	if folder == "" {
		t.Skip("`make test-distributions` runs this: it makes the images first")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.tar"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.test.Web")
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".tar")
		t.Run(name, func(t *testing.T) {
			l.run(t, l.as("burano-admin"), "burano", "image", "upload", "--name", name, "--public", file)
			model := filepath.Join(t.TempDir(), "web.yaml")
			require.NoError(t, os.WriteFile(model, []byte(`name: `+name+`
applications:
  - "?": {type: io.burano.test.Web}
    name: web
    greeting: Good evening
    repository: `+repository(t)+`
    instances:
      - {"?": {type: io.murano.resources.LinuxMuranoInstance}, name: `+name+`-web, flavor: m1.small, image: `+name+`, assignFloatingIp: true}
`), 0o600))
			log := l.run(t, l.as("burano-demo"), "burano", "deploy", model, "--follow")
			require.Contains(t, log, "Setting up burano-test-web (1.0)")
			web := environmentNamed(t, demo, name)["services"].([]any)[0].(map[string]any)
			require.Equal(t, []any{"<p>Good evening from " + name + "-web</p>"}, web["answers"])
			s := &scaling{lab: l, user: demo, environment: environmentNamed(t, demo, name)["id"].(string)}
			result, _ := s.call(t, "web", "commands", map[string]any{})
			require.Equal(t, map[string]any{"exitCode": 3.0, "stdout": "it's\n$a text", "stderr": "said"}, result["result"])

			s.call(t, "web", "forbid", map[string]any{})
			out, err := l.try(l.as("burano-demo"), "burano", "action", "call", name, "web", "commands", "--follow")
			require.Error(t, err, out)
			require.Regexp(t, `cannot become root on \S+ without a password \(sudo: `, out)
			l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", name)
		})
	}
	asBefore(t, demo, found)
}
