package apps_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/scenario"
)

// container returns the result of an application's getContainer, called twice, and of showPassword if it exists.
func container(t *testing.T, class, properties string) (container map[string]any, password string) {
	t.Helper()
	results := called(t, class, "com.mirantis.docker.DockerContainerHost", properties, "getContainer", "getContainer", "showPassword")
	require.NotNil(t, results[0])
	require.Equal(t, results[0], results[1], "another one would have the pod made anew with each deployment")
	container, _ = results[0].(map[string]any)
	password, _ = results[2].(string)
	return container, password
}

// called returns the results of methods of an application on a host of a class. Properties of the host come after its class and a space.
func called(t *testing.T, class, host, properties string, methods ...string) (results []any) {
	t.Helper()
	name, more, _ := strings.Cut(host, " ")
	steps := fmt.Sprintf(`{"load": {"?": {"type": %q, "id": "one"}, "name": "one", %s "host": {"?": {"type": %q, "id": "host"}, %s "name": "host"}}}`, class, properties, name, more)
	for _, method := range methods {
		steps += fmt.Sprintf(`{"call": %q}`, method)
	}
	pods, err := catalog.ReadFolder(fstest.MapFS{
		"manifest.yaml": {Data: []byte("{Format: '1.4', Type: Library, FullName: test.Pods, Name: pods, Classes: {test.Pod: Pod.yaml}, Require: {com.mirantis.docker.Interfaces: }}")},
		"Classes/Pod.yaml": {Data: []byte(`
Namespaces: {=: test, docker: com.mirantis.docker}
Name: Pod
Extends: docker:DockerContainerHost
Properties:
  securityContext: {Contract: $, Default: null}
Methods:
  runsBootstraps: {Body: [{Return: true}]}
  getServiceName:
    Arguments: [{container: {Contract: $.string()}}]
    Body: [{Return: $.name + '-' + $container}]
`)},
	})
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, scenario.Run(t.Context(), catalog.Shelf(append(embedded(t), pods)), strings.NewReader(steps), &out))
	decoder := json.NewDecoder(&out)
	for i := range len(methods) + 1 {
		var line map[string]any
		require.NoError(t, decoder.Decode(&line))
		if i > 0 {
			results = append(results, line["result"])
		}
	}
	return results
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

func TestACacheIsNeverPublished(t *testing.T) {
	made, _ := container(t, "io.burano.Memcached", `"memory": 128, "port": 7000,`)
	require.Equal(t, map[string]any{"MEMORY": "128", "CONNECTIONS": "1024"}, made["env"])
	require.Equal(t, []any{map[string]any{"port": 11211.0, "publishedPort": 7000.0, "protocol": "TCP", "scope": "internal"}}, made["ports"])
	requireUnprivileged(t, made)
}

func TestAQueueHasAVolumeThatItsUserMayWrite(t *testing.T) {
	const withGroup = `test.Pod "securityContext": {"fsGroup": 64000},`
	results := called(t, "io.burano.RabbitMQ", withGroup, "", "getContainer", "getContainer", "getProblems")
	require.Equal(t, results[0], results[1], "another one would have the pod made anew with each deployment")
	made, _ := results[0].(map[string]any)
	require.Equal(t, map[string]any{"/var/lib/rabbitmq": map[string]any{"persistent": true, "size": "10Gi", "storageClass": nil}, "/tmp": map[string]any{}}, made["volumes"])
	require.Equal(t, []any{map[string]any{"port": 5672.0, "publishedPort": 5672.0, "protocol": "TCP", "scope": "internal"}}, made["ports"])
	requireUnprivileged(t, made)
	require.Empty(t, results[2])

	results = called(t, "io.burano.RabbitMQ", withGroup, `"size": "", "port": 7000, "publish": true,`, "getContainer", "getProblems")
	made, _ = results[0].(map[string]any)
	require.Equal(t, map[string]any{"/var/lib/rabbitmq": map[string]any{}, "/tmp": map[string]any{}}, made["volumes"])
	require.Equal(t, []any{map[string]any{"port": 5672.0, "publishedPort": 7000.0, "protocol": "TCP", "scope": "public"}}, made["ports"])
	require.Empty(t, results[1])

	const want = "one is not root, so its pod host needs a group for the files of volumes in securityContext.fsGroup, such as 64000"
	require.Equal(t, []any{want}, called(t, "io.burano.RabbitMQ", "test.Pod", "", "getProblems")[0])
	require.Empty(t, called(t, "io.burano.RabbitMQ", "test.Pod", `"size": "",`, "getProblems")[0], "any user may write in a temporary folder")
	require.Equal(t, []any{"it needs a pod of a cluster as its host"}, called(t, "io.burano.RabbitMQ", "com.mirantis.docker.DockerContainerHost", "", "getProblems")[0])
}

// requireUnprivileged demands the level "restricted" of Pod Security, and a root file system that cannot be written.
func requireUnprivileged(t *testing.T, container map[string]any) {
	t.Helper()
	require.Equal(t, map[string]any{"runAsUser": 64000.0, "runAsGroup": 64000.0, "runAsNonRoot": true, "readOnlyRootFilesystem": true, "allowPrivilegeEscalation": false,
		"capabilities": map[string]any{"drop": []any{"ALL"}}, "seccompProfile": map[string]any{"type": "RuntimeDefault"}}, container["securityContext"])
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

func TestContainersOfWebServersHaveDirectivesAsAFileThatIsCheckedFirst(t *testing.T) {
	for class, is := range map[string]struct{ path, image, directive, program string }{
		"io.burano.Nginx": {"/etc/nginx/nginx.conf", "nginx", "location /api/ { proxy_pass http://api:8080; }", "nginx"},
		"io.burano.HTTPd": {"/etc/apache2/httpd.conf", "httpd", "TraceEnable off", "apache2"},
	} {
		former, err := os.ReadFile(filepath.Join("..", "..", "images", "applications", is.image, "files", is.path))
		require.NoError(t, err)
		configured := fmt.Sprintf(`"configuration": %q,`, is.directive)
		inCluster, _ := called(t, class, "test.Pod", configured, "getContainer")[0].(map[string]any)
		text, _ := inCluster["files"].(map[string]any)[is.path].(string)
		require.Equal(t, strings.Fields(string(former)), strings.Fields(strings.Replace(text, is.directive, "", 1)), "%s: the image's own file, and the directive", class)
		require.Equal(t, is.program, inCluster["bootstrap"].(map[string]any)["entryPoint"].([]any)[0])

		alone, _ := container(t, class, configured)
		require.Equal(t, inCluster["files"], alone["files"])
		require.Nil(t, alone["bootstrap"], "this host runs none")
		for _, none := range []string{"", `"configuration": "",`} {
			plain, _ := called(t, class, "test.Pod", none, "getContainer")[0].(map[string]any)
			require.Empty(t, plain["files"], "pods of a year ago have none")
			require.Nil(t, plain["bootstrap"])
		}
	}
}

func TestContainersOfDatabasesHaveASchemaThatRunsAfterThem(t *testing.T) {
	for class, password := range map[string]string{"io.burano.PostgreSQL": "POSTGRES_PASSWORD", "io.burano.MariaDB": "MARIADB_ROOT_PASSWORD"} {
		schema := `"database": "shop", "schema": "CREATE TABLE IF NOT EXISTS goods (id int)",`
		results := called(t, class, "test.Pod", schema, "getContainer", "getProblems")
		require.Empty(t, results[1])
		made, _ := results[0].(map[string]any)
		run := made["bootstrapAfter"].(map[string]any)
		require.Equal(t, map[string]any{"SERVER": "host-one", "PORT": map[string]string{"io.burano.PostgreSQL": "5432", "io.burano.MariaDB": "3306"}[class], "DATABASE": "shop",
			"SCHEMA": "CREATE TABLE IF NOT EXISTS goods (id int)"}, run["env"])
		require.Equal(t, []any{"sh", "-c"}, run["entryPoint"].([]any)[:2])
		require.Contains(t, run["entryPoint"].([]any)[2], "$"+password)
		plain, _ := called(t, class, "test.Pod", `"database": "shop",`, "getContainer")[0].(map[string]any)
		require.Nil(t, plain["bootstrapAfter"])
		delete(made, "bootstrapAfter")
		delete(plain, "bootstrapAfter")
		delete(made, "secretEnv")
		delete(plain, "secretEnv")
		require.Equal(t, plain, made, "the pod is the same with a schema as without")

		results = called(t, class, "com.mirantis.docker.DockerContainerHost", schema+`"size": "",`, "getContainer", "getProblems")
		require.Contains(t, results[1], "schema needs a pod of a cluster as the host")
		require.Contains(t, fmt.Sprint(results[1]), "schema needs a size")
		require.Nil(t, results[0].(map[string]any)["bootstrapAfter"])
	}
	require.Contains(t, called(t, "io.burano.MariaDB", "test.Pod", `"schema": "SELECT 1",`, "getProblems")[0], "schema needs a database that its statements are for")
}

func TestContainersOfSitesFetchTheirFilesFirst(t *testing.T) {
	for class, image := range map[string]string{"io.burano.NginxSite": "glance.local/nginx:1.22", "io.burano.HTTPdSite": "glance.local/httpd:2.4"} {
		made, _ := container(t, class, `"siteRepo": "https://git.example.org/pages.git",`)
		require.Equal(t, image, made["image"])
		require.Equal(t, map[string]any{"/srv/www": map[string]any{}}, made["volumes"], class)
		require.Equal(t, []any{map[string]any{"port": 80.0, "publishedPort": 80.0, "protocol": "TCP", "scope": "public"}}, made["ports"], class)
		require.Equal(t, []any{map[string]any{"name": "one-files", "image": "glance.local/git:2.39", "hardening": made["hardening"], "env": map[string]any{"SITE_REPO": "https://git.example.org/pages.git"}}}, made["initContainers"])

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
