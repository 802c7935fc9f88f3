package stack

import (
	"testing"

	"github.com/stretchr/testify/require"

	localkeystone "github.com/burano/burano/test/localcloud/keystone"
)

func TestARegionThatTheCloudDoesNotHaveIsSaidBeforeAnythingIsAskedFor(t *testing.T) {
	application := func(region string) map[string]any {
		server := map[string]any{"?": map[string]any{"type": "io.murano.resources.LinuxInstance", "id": "server"}, "name": "server", "flavor": "m1.small", "image": "debian"}
		if region != "" {
			server["regionName"] = region
		}
		return map[string]any{"?": map[string]any{"type": "io.burano.test.Farm", "id": "farm"}, "servers": []any{server}}
	}
	model := func(region, own string) map[string]any {
		made := environment(t, demo)
		made["applications"] = []any{application(region)}
		if own != "" {
			made["region"] = own
		}
		return made
	}
	w := newWorld(t)
	deploy := func(model map[string]any) error {
		w.asked = nil
		interpreter, root := w.load(t, model)
		_, err := interpreter.Invoke(t.Context(), root, "deploy", nil)
		return err
	}
	const unknown = `the cloud has no region "nowhere" with Heat, Nova and Neutron that the project may use: there are local`
	require.ErrorContains(t, deploy(model("nowhere", "")), "io.murano.resources.LinuxInstance (server): "+unknown)
	require.Empty(t, w.asked)
	require.ErrorContains(t, w.fail(t, model("nowhere", "")), unknown, "an application's own action says so, too")
	require.ErrorContains(t, deploy(model(localkeystone.Region, "")), errRecorded)
	require.Equal(t, "burano-environment", w.asked[0]["stack_name"], "the environment's own region may be named")

	require.ErrorContains(t, deploy(model("", "elsewhere")), "the environment stands in region local and cannot move to elsewhere")
	require.Empty(t, w.asked)
	// A former version recorded no region.
	delete(w.attributes, "environment  region")
	require.ErrorContains(t, deploy(model("", "elsewhere")), "the environment stands in region local and cannot move to elsewhere")

	clustered := environment(t, demo)
	for _, one := range clustered["applications"].([]any) {
		if one := one.(map[string]any); one["masterNode"] != nil {
			one["masterNode"].(map[string]any)["instance"].(map[string]any)["regionName"] = "far"
		}
	}
	require.ErrorContains(t, deploy(clustered), "all nodes of a cluster stand in the environment's region, which is local")
	require.Empty(t, w.asked)
}
