package native

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestAPodBecomesADeploymentAndServices(t *testing.T) {
	spec := podSpec{id: "p0d", name: "Web", labels: map[string]string{"tier": "front"}, replicas: 2}
	containers := []container{
		{application: "b", name: "Hello World", image: "registry.local/demo:1", env: map[string]string{"B": "2", "A": "1"},
			ports:   []port{{number: 8080, published: 80, protocol: "TCP", scope: "public"}, {number: 9090, published: 9090, protocol: "TCP", scope: "internal"}},
			volumes: map[string]volume{"/data": {}, "/host": {hostPath: "/srv"}}},
		{application: "a", name: "worker", image: "registry.local/worker:1", commands: []string{"--verbose"}, privileged: true,
			ports: []port{{number: 4194, published: 4194, protocol: "TCP", scope: "host"}}},
	}
	golden(t, "deployment.json", spec.objects(containers))
	require.Equal(t, "b", containers[0].application, "endpoints are noted by the order of the applications")
	spec.replicas = 0
	golden(t, "pod.json", spec.objects(containers))
}

func golden(t *testing.T, name string, value any) {
	t.Helper()
	got, err := json.MarshalIndent(value, "", "  ")
	require.NoError(t, err)
	path := "testdata/" + name
	if *update {
		require.NoError(t, os.WriteFile(path, append(got, '\n'), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got)+"\n")
}

func TestNamesOfServicesAreWhatKubernetesTakes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := serviceName(rapid.String().Draw(t, "pod"), rapid.String().Draw(t, "application"))
		require.Empty(t, validation.IsDNS1035Label(name), name)
		require.LessOrEqual(t, len(name), 63)
	})
	require.Equal(t, "web-hello-world", serviceName("Web", "Hello World"))
	require.Len(t, serviceName(strings.Repeat("a", 80), "b"), 63)
}
