package api

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/web/policy"
)

func TestThePolicyFileDecides(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(path, []byte("context_is_admin: project_id:"+goldenOther+
		"\ncreate_environment: is_admin:True\nshow_environment: \"not 'ffffffffffffffffffffffffffffffff':%(environment_id)s\"\n"), 0o600))
	loaded, _, err := policy.Load(path)
	require.NoError(t, err)
	s := newServer(t, func(config *Config) { config.Policy = loaded })
	refused := s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 403)
	require.Nil(t, refused, "Murano's answer is text where nothing is asked for")
	s.call("admin", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 403)
	s.call("other", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200)
	s.call("demo", "", "GET", "/v1/environments?all_tenants=true", nil, 403)
	s.call("other", "", "GET", "/v1/environments?all_tenants=true", nil, 200)
	s.call("demo", "", "GET", "/v1/environments/eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee", nil, 404)
	s.call("demo", "", "GET", "/v1/environments/ffffffffffffffffffffffffffffffff", nil, 403)
}

func TestNoRouteGoesWithoutARule(t *testing.T) {
	e := echo.New()
	e.GET("/v1/forgotten", func(echo.Context) error { return nil })
	require.PanicsWithValue(t, "the route GET /v1/forgotten needs a rule of the policy: name one in web/api/rules.go",
		func() { checkRules(e.Routes(), policy.New()) })
	registered := map[string]bool{}
	for _, route := range newServer(t).echo.Routes() {
		registered[route.Method+" "+route.Path] = true
	}
	for name := range rules {
		require.True(t, registered[name], "the rule of %s is for a route that there is not", name)
	}
}
