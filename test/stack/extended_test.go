package stack

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A class of an own package that extends an embedded one works as in Murano: the bodies in Go take its objects for clusters and nodes.
func TestOwnClassesThatExtendEmbeddedOnesMakeTheSameServers(t *testing.T) {
	embedded := newWorld(t).push(t, environment(t, demo))
	w := newWorld(t)
	own := environment(t, demo)
	cluster := clusterOf(own)
	cluster["?"].(map[string]any)["type"] = "io.burano.test.OwnCluster"
	for _, node := range cluster["minionNodes"].([]any) {
		node.(map[string]any)["?"].(map[string]any)["type"] = "io.burano.test.OwnMinion"
	}
	made := w.push(t, own)
	require.Equal(t, namesOf(embedded), namesOf(made))
	for name, resource := range embedded["resources"].(map[string]any) {
		if resource.(map[string]any)["type"] == "OS::Neutron::SecurityGroup" {
			require.Equal(t, resource, made["resources"].(map[string]any)[name], name)
		}
	}
	cluster["nodeCount"] = 9
	require.ErrorContains(t, w.fail(t, own), "nodeCount is 9", "mistakes of its properties are found, too")
}

// namesOf are the names of a template's resources with their types.
func namesOf(template map[string]any) map[string]any {
	types := map[string]any{}
	for name, resource := range template["resources"].(map[string]any) {
		types[name] = resource.(map[string]any)["type"]
	}
	return types
}
