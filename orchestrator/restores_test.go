package orchestrator

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnEnvironmentThatIsMadeOfABackupChoosesItsNetworkAnew(t *testing.T) {
	object := func(class, id string, properties map[string]any) map[string]any {
		properties["?"] = map[string]any{"type": class, "id": id, "_actions": map[string]any{}}
		return properties
	}
	objects := map[string]any{
		"defaultNetworks": map[string]any{"environment": "net"},
		"services": []any{
			object("io.murano.resources.LinuxMuranoInstance/0.0.0@io.murano", "server", map[string]any{"name": "one", "openstackId": "gone", "networks": []any{
				object("io.murano.resources.NeutronNetwork/0.0.0@io.murano", "net", map[string]any{"name": "shop-network", "subnetCidr": "10.20.0.0/24", "externalRouterId": "r"}),
				object("io.murano.resources.NeutronNetwork/0.0.0@io.murano", "other", map[string]any{"name": "of the user", "subnetCidr": "10.9.0.0/24"})}})}}
	ownNetwork(objects, "shop", "shop-again")
	withoutComputed(objects, map[string][]string{"server": {"openstackId"}})
	header := func(class, id string) map[string]any { return map[string]any{"type": class, "id": id} }
	require.Equal(t, map[string]any{
		"defaultNetworks": map[string]any{"environment": "net"},
		"services": []any{map[string]any{"?": header("io.murano.resources.LinuxMuranoInstance/0.0.0@io.murano", "server"), "name": "one", "networks": []any{
			map[string]any{"?": header("io.murano.resources.NeutronNetwork/0.0.0@io.murano", "net"), "name": "shop-again-network"},
			map[string]any{"?": header("io.murano.resources.NeutronNetwork/0.0.0@io.murano", "other"), "name": "of the user", "subnetCidr": "10.9.0.0/24"}}}}}, objects)
}
