package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPlansApplyManifestsOfPuppet has plans of type Puppet set a page up on a server of Debian 13 with Debian's Puppet. They use a
// module of the package, one that the server downloads, and values of the plan.
func TestPlansApplyManifestsOfPuppet(t *testing.T) {
	folder := os.Getenv("BURANO_DISTRIBUTIONS")
	if folder == "" {
		t.Skip("`make test-distributions` runs this: it makes the image first")
	}
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	l.deleteIfFailed(t, "puppet")
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.test.Puppet")
	l.run(t, l.as("burano-admin"), "burano", "image", "upload", "--name", "puppet", "--public", filepath.Join(folder, "puppet", "trixie.tar"))
	model := filepath.Join(t.TempDir(), "puppet.yaml")
	require.NoError(t, os.WriteFile(model, []byte(`name: puppet
applications:
  - "?": {type: io.burano.test.Puppet}
    name: page
    greeting: "It's morning"
    module: `+stampModule(t)+`
    instance: {"?": {type: io.murano.resources.ConfLangInstance}, name: puppet-page, flavor: m1.small, image: puppet, assignFloatingIp: true}
`), 0o600))
	log := l.run(t, l.as("burano-demo"), "burano", "deploy", model, "--follow")
	require.Contains(t, log, "Applied catalog in", "what Puppet says is in the log")
	environment := environmentNamed(t, demo, "puppet")
	page := environment["services"].([]any)[0].(map[string]any)
	require.Regexp(t, `^stamped by Puppet 8\.`, page["stamp"])
	address := "http://" + net.JoinHostPort(page["instance"].(map[string]any)["floatingIpAddress"].(string), "8080") + "/"
	text, err := get(address)
	require.NoError(t, err)
	require.Equal(t, "It's morning from puppet-page\n", text)

	s := &scaling{lab: l, user: demo, environment: environment["id"].(string)}
	s.call(t, "page", "greet", map[string]any{"text": "It is evening"})
	text, err = get(address)
	require.NoError(t, err)
	require.Equal(t, "It is evening from puppet-page\n", text)

	result, _ := s.call(t, "page", "fail", map[string]any{})
	details := result["result"].(map[string]any)["details"].(map[string]any)
	require.EqualValues(t, 1, details["exitCode"])
	require.Contains(t, details["stderr"], "greeting::nothing")
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "puppet")
	asBefore(t, demo, found)
}

// stampModule serves an archive with a module of Puppet, as Puppet's authors publish them: in one folder with the version.
func stampModule(t *testing.T) (address string) {
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	w := tar.NewWriter(zipped)
	const manifest = `class stamp (String $folder) {
  file { "${folder}/stamp":
    content => "stamped by Puppet ${facts['puppetversion']}\n",
  }
}
`
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "author-stamp-1.0.0/manifests/init.pp", Mode: 0o644, Size: int64(len(manifest))}))
	_, err := w.Write([]byte(manifest))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, zipped.Close())
	listener, err := net.Listen("tcp", outside("1")+":0")
	require.NoError(t, err)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive.Bytes()) })}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return "http://" + listener.Addr().String() + "/author-stamp-1.0.0.tar.gz"
}
