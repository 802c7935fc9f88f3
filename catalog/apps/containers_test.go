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

// container returns the result of an application's getContainer, called twice, and of showPassword if it exists.
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
		"io.burano.Tomcat":     {"TOMCAT_PASSWORD", "", "/srv/webapps", 8080},
	} {
		made, password := container(t, class, `"publish": false,`)
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

func TestContainersOfSitesFetchTheirFilesFirst(t *testing.T) {
	for class, image := range map[string]string{"io.burano.NginxSite": "glance.local/nginx:1.22", "io.burano.HTTPdSite": "glance.local/httpd:2.4"} {
		made, _ := container(t, class, `"siteRepo": "https://git.example.org/pages.git",`)
		require.Equal(t, image, made["image"])
		require.Equal(t, map[string]any{"/srv/www": map[string]any{}}, made["volumes"], class)
		require.Equal(t, []any{map[string]any{"port": 80.0, "publishedPort": 80.0, "protocol": "TCP", "scope": "public"}}, made["ports"], class)
		require.Equal(t, []any{map[string]any{"name": "one-files", "image": "glance.local/git:2.39", "env": map[string]any{"SITE_REPO": "https://git.example.org/pages.git"}}}, made["initContainers"])

		made, _ = container(t, class, `"siteRepo": "git://git.example.org/pages", "branch": "stable", "folder": "public", "size": "50Mi", "port": 8000,`)
		require.Equal(t, map[string]any{"/srv/www": map[string]any{"size": "50Mi"}}, made["volumes"], class)
		require.Equal(t, map[string]any{"SITE_REPO": "git://git.example.org/pages", "SITE_BRANCH": "stable", "SITE_FOLDER": "public"}, made["initContainers"].([]any)[0].(map[string]any)["env"])
	}
}

func TestContainersOfPublicImagesDifferInWhatIsKnownOfThem(t *testing.T) {
	for kind, want := range map[string][]any{
		"CrateDB": {"crate:5.10", 4200.0, "/data", ""}, "Elasticsearch": {"elasticsearch:8.19.0", 9200.0, "/usr/share/elasticsearch/data", "ELASTIC_PASSWORD"},
		"GlassFish": {"ghcr.io/eclipse-ee4j/glassfish:7.1.0", 8080.0, "", ""},
		"Grafana":   {"grafana/grafana:12.0.0", 3000.0, "/var/lib/grafana", "GF_SECURITY_ADMIN_PASSWORD"}, "InfluxDB": {"influxdb:1.11", 8086.0, "/var/lib/influxdb", "INFLUXDB_ADMIN_PASSWORD"},
		"Jenkins": {"jenkins/jenkins:lts", 8080.0, "/var/jenkins_home", ""}, "MongoDB": {"mongo:7.0", 27017.0, "/data/db", "MONGO_INITDB_ROOT_PASSWORD"},
		"MySQL": {"mysql:8.4", 3306.0, "/var/lib/mysql", "MYSQL_ROOT_PASSWORD"}, "Orion": {"fiware/orion:latest", 1026.0, "", ""}, "WildFly": {"jboss/wildfly:latest", 8080.0, "", ""},
	} {
		made, password := container(t, "io.burano.PublicImage", fmt.Sprintf(`"kind": %q,`, kind))
		require.Equal(t, want[0], made["image"], kind)
		require.Equal(t, []any{map[string]any{"port": want[1], "publishedPort": want[1], "protocol": "TCP", "scope": "internal"}}, made["ports"], kind)
		volumes, secrets := map[string]any{}, map[string]any{}
		if want[2] != "" {
			volumes[want[2].(string)] = map[string]any{"persistent": true, "size": "10Gi", "storageClass": nil}
		}
		if want[3] != "" {
			secrets[want[3].(string)] = password
		}
		require.Equal(t, volumes, made["volumes"], kind)
		require.Equal(t, secrets, made["secretEnv"], kind)
	}
	made, _ := container(t, "io.burano.PublicImage", `"kind": "MongoDB", "image": "registry.example.org/mongo:6", "port": 1000, "publish": true, "env": {"MONGO_INITDB_ROOT_USERNAME": "me", "A": "b"},`)
	require.Equal(t, "registry.example.org/mongo:6", made["image"])
	require.Equal(t, map[string]any{"MONGO_INITDB_ROOT_USERNAME": "me", "A": "b"}, made["env"])
	require.Equal(t, []any{map[string]any{"port": 27017.0, "publishedPort": 1000.0, "protocol": "TCP", "scope": "public"}}, made["ports"])
}
