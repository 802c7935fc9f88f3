package apps_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/catalog/store"
	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/identity"
)

// demoClasses are the classes of a project that uploaded the demonstration package and one with servers.
func demoClasses(t *testing.T) *muranopl.Classes {
	t.Helper()
	db, err := database.Open(filepath.Join(t.TempDir(), "catalog.db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = database.Close(db) })
	packages, err := store.New(t.Context(), db)
	require.NoError(t, err)
	service, err := catalog.New(packages, embedded(t))
	require.NoError(t, err)
	for _, name := range []string{"io.burano.demo.Hello", "io.burano.test.Servers"} {
		var archive bytes.Buffer
		require.NoError(t, catalog.WriteZip(&archive, os.DirFS(filepath.Join("..", "..", "test", "packages", name))))
		_, err = service.Upload(t.Context(), identity.Caller{ProjectID: "demo"}, catalog.Metadata{}, archive.Bytes())
		require.NoError(t, err)
	}
	return muranopl.NewClasses(service.Source("demo"))
}

func TestEveryClassIsRead(t *testing.T) {
	classes := demoClasses(t)
	for _, p := range withDemo(t) {
		for _, name := range p.ClassNames() {
			class, err := classes.Class(t.Context(), name, "")
			require.NoError(t, err, name)
			require.Equal(t, name, class.Name)
			if name != "io.murano.Object" {
				require.True(t, class.Is("io.murano.Object"), name)
			}
		}
	}
	hello, err := classes.Class(t.Context(), "io.burano.demo.Hello", "")
	require.NoError(t, err)
	require.True(t, hello.Is("com.mirantis.docker.DockerApplication"))
}

// model gives every object of the environment an id, as the command line does, and returns it as the root of a model.
func model(t *testing.T, name string, applications []any) map[string]any {
	t.Helper()
	return map[string]any{
		"?":    map[string]any{"id": "environment", "type": "io.murano.Environment", "metadata": map[string]any{}},
		"name": name, "applications": applications,
		"defaultNetworks": map[string]any{
			"environment": map[string]any{"?": map[string]any{"id": "network", "type": "io.murano.resources.NeutronNetwork"}, "name": name + "-network"},
			"flat":        nil,
		},
	}
}

func TestTheDemonstrationEnvironmentLoadsWithItsDefaults(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "test", "environments", "demo.yaml"))
	require.NoError(t, err)
	var environment map[string]any
	require.NoError(t, yaml.Unmarshal(text, &environment))
	// Models come as JSON.
	encoded, err := json.Marshal(model(t, "demo", environment["applications"].([]any)))
	require.NoError(t, err)
	var root map[string]any
	require.NoError(t, json.Unmarshal(encoded, &root))

	loaded, problems := muranopl.Load(t.Context(), demoClasses(t), root)
	require.Empty(t, problems)
	saved, err := json.Marshal(muranopl.Save(loaded))
	require.NoError(t, err)
	var got struct {
		Applications []map[string]any `json:"applications"`
	}
	require.NoError(t, json.Unmarshal(saved, &got))
	require.Len(t, got.Applications, 3)
	cluster, pod, hello := got.Applications[0], got.Applications[1], got.Applications[2]
	require.Equal(t, "0.0.0.0/0", cluster["publicCidr"])
	require.Len(t, cluster["minionNodes"], 2)
	require.Equal(t, "cluster", pod["kubernetesCluster"])
	require.Equal(t, "pod", hello["host"])
	require.Equal(t, "registry.local/demo:1", hello["image"])
	require.Equal(t, "80:8080", hello["ports"])
	require.Equal(t, true, hello["publish"])
	instance := cluster["masterNode"].(map[string]any)["instance"].(map[string]any)
	require.Equal(t, "nova", instance["availabilityZone"])
	require.Equal(t, map[string]any{"useEnvironmentNetwork": true, "useFlatNetwork": false, "customNetworks": []any{}, "primaryNetwork": nil},
		instance["networks"])
}

func TestWhatViolatesAContractIsNamed(t *testing.T) {
	hello := map[string]any{"?": map[string]any{"id": "h", "type": "io.burano.demo.Hello"}, "ports": "http", "env": "1=2", "host": nil}
	_, problems := muranopl.Load(t.Context(), demoClasses(t), model(t, "e", []any{hello}))
	var paths []string
	for _, problem := range problems {
		paths = append(paths, problem.Path)
	}
	require.ElementsMatch(t, []string{"applications[0].ports", "applications[0].env", "applications[0].host"}, paths, "%v", problems)
}

// TestRecordedModelsLoad takes models as clients sent them to Murano and as Murano wrote them back after a deployment.
func TestRecordedModelsLoad(t *testing.T) {
	file, err := os.Open(filepath.Join("..", "..", "test", "golden", "murano-api.jsonl"))
	require.NoError(t, err)
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 4<<20)
	models := map[string]map[string]any{}
	for lines.Scan() {
		var line struct {
			Name         string          `json:"name"`
			RequestBody  json.RawMessage `json:"request_body"`
			ResponseBody json.RawMessage `json:"response_body"`
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
		var object map[string]any
		switch line.Name {
		case "vm-services-post":
			require.NoError(t, json.Unmarshal(line.RequestBody, &object))
			models[line.Name] = model(t, "vm", []any{object})
		case "env-model-root", "vm-model":
			require.NoError(t, json.Unmarshal(line.ResponseBody, &object))
			if services, ok := object["services"]; ok {
				object["applications"] = services
				delete(object, "services")
			}
			models[line.Name] = object
		}
	}
	require.NoError(t, lines.Err())
	require.Len(t, models, 3)
	for name, recorded := range models {
		// The recording's own application holds a server; one of ours does so, too.
		applications, _ := recorded["applications"].([]any)
		for i, application := range applications {
			applications[i] = map[string]any{
				"?":       map[string]any{"id": "farm", "type": "io.burano.test.Farm"},
				"servers": []any{application.(map[string]any)["instance"]},
			}
		}
		_, problems := muranopl.Load(t.Context(), demoClasses(t), recorded)
		require.Empty(t, problems, name)
	}
}

func TestEveryDefaultCanBeEvaluated(t *testing.T) {
	classes := demoClasses(t)
	for _, p := range withDemo(t) {
		for _, name := range p.ClassNames() {
			// A property without a default may be missing; a default that cannot be evaluated is reported.
			_, problems := muranopl.Load(t.Context(), classes, map[string]any{"?": map[string]any{"id": "x", "type": name}})
			for _, problem := range problems {
				require.NotContains(t, problem.Error(), "default", name)
			}
		}
	}
}
