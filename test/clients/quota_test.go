package clients

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestQuotasAreSetFromTheCommandLine drives `burano quota`, and meets the quotas with Burano's client and with Murano's API.
func TestQuotasAreSetFromTheCommandLine(t *testing.T) {
	s := startKeystone(t)
	s.build()
	s.serve(http.DefaultClient, "http", "--quota-environments", "1", "--quota-package-bytes", "10")
	demo, admin := s.as("demo", "demo"), s.as("admin", "admin")
	_, project := s.token("demo", "demo")
	burano := func(environment []string, args ...string) string {
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
	burano(demo, "environment", "create", "one")
	refused("Quota exceeded for environments: requested 1, but already used 1 of 1 in project "+project, demo, "environment", "create", "two")
	s.write(map[string]string{"app/manifest.yaml": manifest("org.test.App", ""), "app/Classes/C.yaml": class("org.test.App")})
	refused("Quota exceeded for package_bytes", demo, "package", "import", "app")
	require.Regexp(t, `environments +1 +1 +the server's settings\npackage_bytes +0 +10 +the server's settings\npackages +0 +500 `, burano(demo, "quota", "show"))

	refused("Access was denied", demo, "quota", "set", project, "environments=5")
	require.Regexp(t, `environments +1 +2 +an administrator\npackage_bytes +0 +unlimited +an administrator\n`,
		burano(admin, "quota", "set", project, "environments=2", "package_bytes=unlimited"))
	burano(demo, "environment", "create", "two")
	burano(demo, "package", "import", "app")
	require.Regexp(t, `environments +2 +1 +the server's settings\n`, burano(admin, "quota", "reset", project))
	require.Regexp(t, `packages +1 +500 `, burano(admin, "quota", "show", project))
}
