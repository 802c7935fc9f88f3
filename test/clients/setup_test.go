package clients

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/test/localcloud/keystone"
)

// TestSetupRegistersBuranoAndIsDoneWhenRunAgain begins with a Keystone that knows nothing of this Burano, and ends with a server that clients find
// by the catalog.
func TestSetupRegistersBuranoAndIsDoneWhenRunAgain(t *testing.T) {
	s := startKeystone(t)
	s.build()
	const url = "http://burano.example.org:8082"
	entry := filepath.Join(s.home, ".config", "openstack", "clouds.yaml")
	require.NoError(t, os.MkdirAll(filepath.Dir(entry), 0o700))
	setup := func(more ...string) []string {
		return append([]string{"setup", "--url", url, "--user", "catalog", "--project", "platform", "--write", entry}, more...)
	}
	admin := s.as("admin", "admin")
	do := func(environment []string, args ...string) string {
		t.Helper()
		out, ok := s.run(environment, s.program, args...)
		require.True(t, ok, "%v: %s", args, out)
		return out
	}
	refused := func(says string, environment []string, args ...string) {
		t.Helper()
		out, ok := s.run(environment, s.program, args...)
		require.False(t, ok, "%v: %s", args, out)
		require.Contains(t, out, says)
	}

	refused("must be an administrator's", s.as("demo", "demo"), setup("--dry-run")...)
	look := do(admin, setup("--dry-run")...)
	require.Contains(t, look, "would be made  project platform")
	require.NoFileExists(t, entry)
	require.Equal(t, look, do(admin, setup("--dry-run")...), "the first has made nothing")

	made := do(admin, setup()...)
	for _, line := range []string{"made      project platform", "made      user catalog", "is there  role admin\n", "made      role admin of catalog in project platform", "made      role service of catalog in project platform",
		"made      service application-catalog", "made      public endpoint " + url + " in region " + keystone.Region, "made      admin endpoint "} {
		require.Contains(t, made, line)
	}
	info, err := os.Stat(entry)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	again := do(admin, setup()...)
	require.Contains(t, again, "nothing to do")
	require.NotContains(t, again, "made")
	var steps []struct{ What, Done string }
	require.NoError(t, json.Unmarshal([]byte(do(admin, setup("--output", "json")...)), &steps))
	require.Len(t, steps, 10)
	for _, step := range steps {
		require.Equal(t, "is there", step.Done, step.What)
	}

	s.write(map[string]string{"other": "another password\n"})
	byPassword := func(more ...string) []string {
		return append([]string{"setup", "--user", "catalog", "--project", "platform", "--password-file", "other"}, more...)
	}
	refused("has another password than the one that was given", admin, byPassword()...)
	refused("leads to "+url+": --replace has it lead to http://elsewhere", admin, "setup", "--user", "catalog", "--project", "platform", "--url", "http://elsewhere")
	require.Contains(t, do(admin, "setup", "--user", "catalog", "--project", "platform", "--url", url), "nothing to do")

	s.serve(http.DefaultClient, "http", "--os-cloud", "burano-service")
	require.Contains(t, do(admin, "setup", "--user", "catalog", "--project", "platform", "--url", s.url, "--replace"), "in region "+keystone.Region+", before "+url)
	told := s.url
	s.url = "" // the clients get no address
	demo := s.as("demo", "demo")
	do(demo, "environment", "create", "found")
	require.Contains(t, do(s.as("demo", "demo", "BURANO_URL="+told), "environment", "list"), "found")

	require.Contains(t, do(admin, byPassword("--reset-password")...), "changed   password of user catalog")
	require.Contains(t, do(admin, byPassword()...), "nothing to do")
}
