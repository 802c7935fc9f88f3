package apps_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
)

var update = flag.Bool("update", false, "write the table of changes anew")

// changing are the classes whose properties all declare the effect of a change.
var changing = []string{
	"com.mirantis.docker.kubernetes.KubernetesCluster", "com.mirantis.docker.kubernetes.KubernetesMinionGroup", "com.mirantis.docker.kubernetes.KubernetesMasterNode",
	"com.mirantis.docker.kubernetes.KubernetesMinionNode", "com.mirantis.docker.kubernetes.KubernetesGatewayNode", "com.mirantis.docker.kubernetes.KubernetesExternalNode",
	"com.mirantis.docker.kubernetes.KubernetesPod", "com.example.docker.DockerApp", "com.mirantis.docker.DockerPersistentVolume", "com.mirantis.docker.DockerStandaloneHost", "io.murano.resources.LinuxMuranoInstance",
}

// words are the effects in the document.
var words = map[string]string{"inPlace": "in place", "rollsPods": "rolls pods", "nodeByNode": "node by node", "newOnly": "new ones only", "refused": "refused", "loses": "loses", "none": "no effect"}

const tableOfChanges = "../../docs/changes.md"

// TestTheTableOfChangesIsThatOfTheClasses holds the document against the declarations, and the declarations against the properties.
func TestTheTableOfChangesIsThatOfTheClasses(t *testing.T) {
	classes := demoClasses(t)
	var tables strings.Builder
	for _, name := range changing {
		class, err := classes.Class(t.Context(), name, "")
		require.NoError(t, err)
		fmt.Fprintf(&tables, "\n## %s\n\n| property | effect | |\n|---|---|---|\n", name[strings.LastIndex(name, ".")+1:])
		for _, property := range class.PropertyNames() {
			if usage := class.Property(property)[0].Usage; usage != muranopl.In && usage != muranopl.InOut {
				continue
			}
			effect, parts := muranopl.OnChanges(t.Context(), class, property)
			if assert.Contains(t, words, effect.Effect, "%s.%s declares no effect of a change", name, property) {
				fmt.Fprintf(&tables, "| `%s` | %s | %s |\n", property, words[effect.Effect], effect.Text)
			}
			for _, part := range partNames(t, classes, parts) {
				fmt.Fprintf(&tables, "| `%s.%s` | %s | %s |\n", property, part, words[parts[part].Effect], parts[part].Text)
			}
		}
	}
	text, err := os.ReadFile(tableOfChanges)
	require.NoError(t, err)
	head, _, found := strings.Cut(string(text), "\n## ")
	require.True(t, found)
	wanted := head + tables.String()
	if *update {
		require.NoError(t, os.WriteFile(tableOfChanges, []byte(wanted), 0o644))
		return
	}
	require.Equal(t, wanted, string(text), "write it with go test ./catalog/apps -run TheTableOfChanges -update")
}

// partNames are the names of parts in the order of the properties of servers; each is one of these.
func partNames(t *testing.T, classes *muranopl.Classes, parts map[string]muranopl.OnChange) (names []string) {
	server, err := classes.Class(t.Context(), "io.murano.resources.LinuxMuranoInstance", "")
	require.NoError(t, err)
	for _, property := range server.PropertyNames() {
		if _, is := parts[property]; is {
			names = append(names, property)
		}
	}
	require.Len(t, names, len(parts), "parts are properties of servers")
	return names
}
