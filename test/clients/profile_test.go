package clients

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnAdministratorSeesWhatAServerDoes reads a profile of a running server with Go's own tool.
func TestAnAdministratorSeesWhatAServerDoes(t *testing.T) {
	s := startKeystone(t)
	s.build()
	s.serve(http.DefaultClient, "http", "--profiles")
	file := filepath.Join(t.TempDir(), "of-the-server.pprof")
	out, ok := s.run(s.as("demo", "demo"), s.program, "debug", "profile", "cpu", "--seconds", "1", "--output", file)
	require.False(t, ok, out)
	require.Contains(t, out, "Access was denied")
	require.NoFileExists(t, file)
	for _, one := range []struct{ kind, has string }{{"cpu", "cpu/nanoseconds"}, {"heap", "inuse_space"}, {"goroutine", "cmd/burano"}} {
		out, ok = s.run(s.as("admin", "admin"), s.program, "debug", "profile", one.kind, "--seconds", "1", "--output", file)
		require.True(t, ok, out)
		read, err := exec.Command("go", "tool", "pprof", "-raw", file).CombinedOutput()
		require.NoError(t, err, "%s", read)
		require.Contains(t, string(read), one.has)
	}
	out, ok = s.run(s.as("admin", "admin"), s.program, "debug", "profile", "secrets")
	require.False(t, ok, out)
	require.Contains(t, out, "invalid argument")
}
