package openstack

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheDocumentsShowTheTableOfEffects(t *testing.T) {
	var table strings.Builder
	table.WriteString("| type | effect | properties |\n|---|---|---|\n")
	for _, kind := range slices.Sorted(maps.Keys(effects)) {
		for _, effect := range []Effect{InPlace, Replugged, Readdressed, Resized, Rebuilt, Replaced} {
			if properties := effects[kind][effect]; len(properties) > 0 {
				fmt.Fprintf(&table, "| `%s` | %s | %s |\n", kind, effect, strings.Join(properties, ", "))
			}
		}
	}
	document, err := os.ReadFile("../../docs/openstack-test.md")
	require.NoError(t, err)
	require.Contains(t, string(document), table.String(), "write this into docs/openstack-test.md:\n%s", table.String())
}

func TestAPropertyHasOneEffect(t *testing.T) {
	for kind, byEffect := range effects {
		seen := map[string]bool{}
		for _, properties := range byEffect {
			require.True(t, slices.IsSorted(properties), "%s %v", kind, properties)
			for _, property := range properties {
				require.False(t, seen[property], "%s %s", kind, property)
				seen[property] = true
			}
		}
	}
	require.Equal(t, Replaced, EffectOf("OS::Nova::Server", "a property of a later version"))
	require.Equal(t, Replaced, EffectOf("OS::Another::Type", "name"))
}
