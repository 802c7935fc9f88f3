package stack

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A cluster whose model has no property of a registry has one from the beginning or not at all.
func TestANewClusterHasARegistryWhereItsVolumesFollowPodsAndOneThatIsThereStaysAsItIs(t *testing.T) {
	class := func(backend string, standard bool) map[string]any {
		return map[string]any{"name": "burano-" + backend, "backend": backend, "default": standard}
	}
	// A cluster with a registry fails for the registry's missing size. The others fail for their volumes at most, which no image
	// here has.
	has := func(facts string, fields map[string]any, image string) bool {
		t.Helper()
		w := newWorld(t)
		w.imageSays = `, "burano_kubernetes": "v1.36.3"` + image
		if facts != "" {
			w.secrets["cluster/cluster/facts"] = []byte(facts)
		}
		fields["registrySize"] = "none"
		err := w.deploy(t, withMasters(t, fields))
		require.Error(t, err)
		if !strings.Contains(err.Error(), errRecorded) {
			require.ErrorContains(t, err, "does not say that it can serve volumes")
		}
		return strings.Contains(err.Error(), `registrySize is "none", which is no size of a volume`)
	}
	const registry = `, "burano_registry": "v3.1.2"`
	cinder, local := []any{class("cinder", true)}, []any{class("local", true)}
	for name, one := range map[string]struct {
		facts  string
		fields map[string]any
		image  string
		has    bool
	}{
		"new, with volumes of Cinder":         {"", map[string]any{"storageClasses": cinder}, registry, true},
		"new, and it wants none":              {"", map[string]any{"storageClasses": cinder, "enableRegistry": false}, registry, false},
		"new, of an older image":              {"", map[string]any{"storageClasses": cinder}, "", false},
		"new, with directories of nodes":      {"", map[string]any{"storageClasses": local}, registry, false},
		"new, with directories, and wants it": {"", map[string]any{"storageClasses": local, "enableRegistry": true}, registry, true},
		"new, without a usual class":          {"", map[string]any{"storageClasses": []any{class("cinder", false)}}, registry, false},
		"new, without storage":                {"", map[string]any{}, registry, false},
		"there, of a former release":          {`{"name": "demo-cluster"}`, map[string]any{"storageClasses": cinder}, registry, false},
		"there, as a former release left it":  {`{"name": "demo-cluster"}`, map[string]any{"storageClasses": cinder, "enableRegistry": false}, registry, false},
		"there, with one":                     {`{"name": "demo-cluster", "registry": "registry.demo-cluster.internal"}`, map[string]any{"storageClasses": local}, registry, true},
	} {
		require.Equal(t, one.has, has(one.facts, one.fields, one.image), name)
	}
}

func TestARegistryThatCannotBeIsRefused(t *testing.T) {
	for says, fields := range map[string]map[string]any{
		`registryCollectAt is "at night", which is no time of the day`: {"registryCollectAt": "at night"},
		"registryMirror is true, and the registry, which is a pod":     {"registryMirror": true, "httpsProxy": "http://proxy.example.org:3128"},
		"or each dockerMirror has a path of its own":                   {"registryMirror": true, "dockerMirror": "https://mirror.example.org/docker"},
	} {
		w := newWorld(t)
		w.imageSays = `, "burano_storage": "v13.0.0", "burano_registry": "v3.1.2"`
		fields["enableRegistry"], fields["storageClasses"] = true, []any{map[string]any{"name": "burano-local", "backend": "local", "default": true}}
		require.ErrorContains(t, w.fail(t, withMasters(t, fields)), says)
	}
}
