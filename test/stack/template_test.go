package stack

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/nodes/access"
)

var update = flag.Bool("update", false, "write the golden templates anew")

// environments are files with their requests to Heat: testdata has the template for a new stack, testdata/first the template of the first
// landed version.
var environments = map[string]string{"the cluster of the demonstration": "../environments/demo.yaml", "a cluster beside servers": "testdata/mixed.yaml"}

// TestTheTemplatesOfEnvironmentsStay compares the request to Heat for a new stack with the former one. A deliberate difference must not
// make Heat replace or rebuild any existing resource: write the reason here, and try it on a real Heat.
//
// Servers of clusters have scheduler hints since they are in server groups. Heat would replace a server for them, so existing servers get
// none: the test below checks that.
//
// User data is left out: it has new keys for each cluster and environment, and existing servers keep theirs
// (docs/architecture.md).
func TestTheTemplatesOfEnvironmentsStay(t *testing.T) {
	for name, file := range environments {
		t.Run(name, func(t *testing.T) {
			template := newWorld(t).push(t, environment(t, file))
			resources, _ := template["resources"].(map[string]any)
			for _, one := range resources {
				properties, _ := one.(map[string]any)["properties"].(map[string]any)
				if data, ok := properties["user_data"].(string); ok && data != "" {
					properties["user_data"] = "(what makes it a node)"
					if access.Marked(data) {
						properties["user_data"] = "(what lets Burano log in)"
					}
				}
			}
			var made bytes.Buffer
			encoder := json.NewEncoder(&made)
			encoder.SetIndent("", "  ")
			encoder.SetEscapeHTML(false)
			require.NoError(t, encoder.Encode(template))
			path := filepath.Join("testdata", strings.TrimSuffix(filepath.Base(file), ".yaml")+".json")
			if *update {
				require.NoError(t, os.WriteFile(path, made.Bytes(), 0o600))
			}
			golden, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(golden), made.String())
		})
	}
}

func TestAStackThatTheFirstVersionMadeStaysAsItIs(t *testing.T) {
	for name, file := range environments {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			first, err := os.ReadFile(filepath.Join("testdata/first", strings.TrimSuffix(filepath.Base(file), ".yaml")+".json"))
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(first, &w.there))
			if err := w.deploy(t, environment(t, file)); err != nil {
				require.ErrorContains(t, err, "tells no address", "this Heat tells nothing of servers")
			}
			require.Empty(t, w.asked)
		})
	}
}
