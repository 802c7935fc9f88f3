package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPlansSetServersUp deploys an application that is written like Murano's. Execution plans set its servers up, over SSH, with apt and with
// scripts and files of the package; one of the servers boots from a volume. Then plans run in actions, and through the death of the server.
func TestPlansSetServersUp(t *testing.T) {
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	s := &scaling{lab: l, user: demo}
	l.deleteIfFailed(t, "planned")
	looked, _ := l.try(l.as("burano-service"), "burano", "doctor", "--state", l.state, "--as", "burano-demo", "--boot", "burano-node")
	require.Regexp(t, `ok +a server +made in \S+, and logged in to at 10\.`, looked)
	asBefore(t, demo, found)
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.test.Web")
	model := filepath.Join(t.TempDir(), "web.yaml")
	instance := `{"?": {type: io.murano.resources.LinuxMuranoInstance}, name: web-%d, flavor: m1.small, image: burano-node, assignFloatingIp: %t}`
	var instances []string
	for n := range 3 {
		instances = append(instances, fmt.Sprintf(instance, n+1, n == 0))
	}
	instances[2] = strings.Replace(instances[2], "image: burano-node", `blockDevices: [{bootIndex: 0, volume:
        {"?": {type: io.murano.resources.CinderVolume}, name: root, size: 6, sourceImage: burano-node}}]`, 1)
	require.NoError(t, os.WriteFile(model, []byte(`name: planned
applications:
  - "?": {type: io.burano.test.Web}
    name: web
    greeting: Good morning
    repository: `+repository(t)+`
    instances: [`+strings.Join(instances, ", ")+"]\n"), 0o600))

	began := time.Now()
	log := l.run(t, l.as("burano-demo"), "burano", "deploy", model, "--follow")
	t.Logf("three servers were set up in %.1f s", time.Since(began).Seconds())
	require.Contains(t, log, "web-1, install: Setting up burano-test-web (1.0)")
	require.Contains(t, log, "web-2: reached through web-1")
	environment := environmentNamed(t, demo, "planned")
	s.environment = environment["id"].(string)
	web := environment["services"].([]any)[0].(map[string]any)
	require.Equal(t, []any{"<p>Good morning from web-1</p>", "<p>Good morning from web-2</p>", "<p>Good morning from web-3</p>"}, web["answers"])
	floating := web["instances"].([]any)[0].(map[string]any)["floatingIpAddress"].(string)
	require.Len(t, inventory(t, demo)["volumes"], len(found["volumes"])+1)
	page, err := get("http://" + net.JoinHostPort(floating, "8080") + "/")
	require.NoError(t, err)
	require.Equal(t, "<p>Good morning from web-1</p>\n", page)

	result, _ := s.call(t, "web", "fail", map[string]any{})
	require.Equal(t, map[string]any{"exitCode": 5.0, "stdout": "said before", "stderr": "it is broken"}, result["result"].(map[string]any)["details"])
	result, _ = s.call(t, "web", "commands", map[string]any{})
	require.Equal(t, map[string]any{"exitCode": 3.0, "stdout": "it's\n$a text", "stderr": "said"}, result["result"])

	s.oncePast(t, "begun\n1", func() {
		require.NoError(t, l.server.Process.Kill())
		_ = l.server.Wait()
	})
	s.oncePast(t, "begun\n2", func() { l.stop(t) })

	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "planned")
	asBefore(t, demo, found)
}

// oncePast ends the server while a script of an action runs, and starts it again: the script must run exactly once.
func (s *scaling) oncePast(t *testing.T, want string, end func()) {
	t.Helper()
	l, result := s.lab, map[string]any{}
	task := s.begin(t, "web", "once", map[string]any{})
	l.eventually(t, time.Minute, "the script runs", func() error {
		if !strings.Contains(s.reported(t, task), "begun") {
			return fmt.Errorf("nothing of it is in the log")
		}
		return nil
	})
	end()
	l.launch(t)
	l.healthy(t)
	l.eventually(t, 2*time.Minute, "the action ends", func() error {
		if result = s.user.must(t, http.MethodGet, "/v1/environments/"+s.environment+"/actions/"+task, nil); len(result) == 0 {
			return fmt.Errorf("it runs")
		}
		return nil
	})
	require.Equal(t, want, result["result"])
}

// reported is the log of a deployment or action.
func (s *scaling) reported(t *testing.T, task string) string {
	t.Helper()
	var lines []string
	for _, one := range s.user.must(t, http.MethodGet, "/v1/environments/"+s.environment+"/deployments/"+task, nil)["reports"].([]any) {
		lines = append(lines, one.(map[string]any)["text"].(string))
	}
	return strings.Join(lines, "\n")
}

// repository serves a package for apt, with the program burano-test-web, where servers of the local cloud reach it.
func repository(t *testing.T) string {
	folder, files := t.TempDir(), t.TempDir()
	require.NoError(t, os.Chmod(files, 0o755))
	write := func(path, text string, mode os.FileMode) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
	}
	control := "Package: burano-test-web\nVersion: 1.0\nArchitecture: all\nMaintainer: Burano <nobody@example.org>\nDescription: a web server for a test\n"
	write(filepath.Join(files, "DEBIAN", "control"), control, 0o644)
	write(filepath.Join(files, "usr", "bin", "burano-test-web"), "#!/bin/sh\nexec socat TCP-LISTEN:$1,fork,reuseaddr EXEC:/srv/web/answer.sh\n", 0o755)
	deb := filepath.Join(folder, "web.deb")
	out, err := exec.Command("dpkg-deb", "--root-owner-group", "--build", files, deb).CombinedOutput()
	require.NoError(t, err, string(out))
	content, err := os.ReadFile(deb)
	require.NoError(t, err)
	sum := sha256.Sum256(content)
	write(filepath.Join(folder, "Packages"), fmt.Sprintf("%sFilename: ./web.deb\nSize: %d\nSHA256: %s\n", control, len(content), hex.EncodeToString(sum[:])), 0o644)
	listener, err := net.Listen("tcp", outside("1")+":0")
	require.NoError(t, err)
	server := &http.Server{Handler: http.FileServer(http.Dir(folder)), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return "http://" + listener.Addr().String()
}
