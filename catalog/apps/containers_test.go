package apps_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/scenario"
)

// container is what getContainer of an application returns twice, and what showPassword does, where it is there.
func container(t *testing.T, class, properties string) (container map[string]any, password string) {
	t.Helper()
	steps := fmt.Sprintf(`{"load": {"?": {"type": %q, "id": "one"}, "name": "one", %s
		"host": {"?": {"type": "com.mirantis.docker.DockerContainerHost", "id": "host"}, "name": "host"}}}
		{"call": "getContainer"} {"call": "getContainer"} {"call": "showPassword"}`, class, properties)
	var out bytes.Buffer
	require.NoError(t, scenario.Run(t.Context(), catalog.Shelf(embedded(t)), strings.NewReader(steps), &out))
	decoder := json.NewDecoder(&out)
	var results []any
	for range 4 {
		var line map[string]any
		require.NoError(t, decoder.Decode(&line))
		results = append(results, line["result"])
	}
	require.NotNil(t, results[1], out.String())
	require.Equal(t, results[1], results[2], "another one would have the pod made anew with each deployment")
	container, _ = results[1].(map[string]any)
	password, _ = results[3].(string)
	return container, password
}

func TestContainersOfDatabasesHaveAPasswordAndAVolume(t *testing.T) {
	for class, c := range map[string]struct {
		secret, database, path string
		port                   float64
	}{
		"io.burano.PostgreSQL": {"POSTGRES_PASSWORD", "POSTGRES_DB", "/var/lib/postgresql/data", 5432},
		"io.burano.MariaDB":    {"MARIADB_ROOT_PASSWORD", "MARIADB_DATABASE", "/var/lib/mysql", 3306},
		"io.burano.Redis":      {"REDIS_PASSWORD", "", "/var/lib/redis", 6379},
	} {
		made, password := container(t, class, "")
		require.Regexp(t, "^[a-z0-9]{30}$", password, class)
		require.Equal(t, map[string]any{c.secret: password}, made["secretEnv"], class)
		require.Equal(t, map[string]any{c.path: map[string]any{"persistent": true, "size": "10Gi", "storageClass": nil}}, made["volumes"], class)
		require.Equal(t, []any{map[string]any{"port": c.port, "publishedPort": c.port, "protocol": "TCP", "scope": "internal"}}, made["ports"], class)
		for _, probe := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
			require.NotNil(t, made[probe], "%s %s", class, probe)
		}
		_, other := container(t, class, "")
		require.NotEqual(t, password, other, "%s: each has its own", class)

		more := `"password": "of mine", "size": "", "storageClass": "", "port": 7000, "publish": true,`
		if c.database != "" {
			more += `"database": "shop",`
		}
		made, password = container(t, class, more)
		require.Equal(t, "of mine", password, class)
		require.Equal(t, map[string]any{c.secret: "of mine"}, made["secretEnv"], class)
		require.Equal(t, map[string]any{c.path: map[string]any{}}, made["volumes"], "%s: an empty size is a folder that goes with the pod", class)
		require.Equal(t, []any{map[string]any{"port": c.port, "publishedPort": 7000.0, "protocol": "TCP", "scope": "public"}}, made["ports"], class)
		if c.database != "" {
			require.Equal(t, map[string]any{c.database: "shop"}, made["env"], class)
		}
	}
}

func TestContainersOfWebServersServeAPageOrAVolume(t *testing.T) {
	for _, class := range []string{"io.burano.Nginx", "io.burano.HTTPd"} {
		made, _ := container(t, class, "")
		require.Empty(t, made["env"], class)
		require.Empty(t, made["volumes"], class)
		require.Equal(t, []any{map[string]any{"port": 80.0, "publishedPort": 80.0, "protocol": "TCP", "scope": "public"}}, made["ports"], class)
		made, _ = container(t, class, `"page": "<h1>Here", "volume": {"?": {"type": "com.mirantis.docker.DockerHostVolume", "id": "files"}, "path": "/srv/files"},`)
		require.Equal(t, map[string]any{"PAGE": "<h1>Here"}, made["env"], class)
		require.Contains(t, made["volumes"], "/srv/www", class)
	}
}
