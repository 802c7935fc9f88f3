package stack

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/native"
)

func TestPackagesLookAtTheNetworksOfTheProject(t *testing.T) {
	w := newWorld(t)
	interpreter := muranopl.NewInterpreter(muranopl.NewClasses(source(t)), native.Methods(w, w.config))
	explorer, err := interpreter.New(t.Context(), "io.murano.system.NetworkExplorer", nil, nil)
	require.NoError(t, err)
	ask := func(method string) any {
		value, err := interpreter.Invoke(t.Context(), explorer, method, nil)
		require.NoError(t, err)
		return value
	}
	require.Equal(t, []any{map[string]any{"alias": "router"}, map[string]any{"alias": "security-group"}}, ask("listNeutronExtensions"))
	require.Equal(t, []any{map[string]any{"id": "p", "device_owner": "network:dhcp"}}, ask("listPorts"))
	require.Equal(t, []any{map[string]any{"id": "outside", "name": "public"}}, ask("listNetworks"))
	require.Empty(t, ask("listSubnetworks"))
	for network, want := range map[string]any{"outside": "outside", "inside": nil} {
		leads, err := interpreter.Invoke(t.Context(), explorer, "getExternalNetworkIdForNetwork", map[string]any{"networkId": network})
		require.NoError(t, err)
		require.Equal(t, want, leads)
	}

	_, err = interpreter.Invoke(t.Context(), explorer, "getDefaultRouter", nil)
	require.ErrorContains(t, err, "the project has no router that leads to an external network")
	const idle, leading = `{"id": "idle", "name": "a"}`, `{"id": "leading", "name": "b", "external_gateway_info": {"network_id": "outside"}}`
	w.routers = idle + "," + leading
	require.Equal(t, "leading", ask("getDefaultRouter"))
	w.routers += `,{"id": "default", "name": "murano-default-router", "external_gateway_info": {"network_id": "outside"}}`
	require.Equal(t, "default", ask("getDefaultRouter"))
	w.routers = leading + `,{"id": "default", "name": "murano-default-router"}`
	_, err = interpreter.Invoke(t.Context(), explorer, "getDefaultRouter", nil)
	require.ErrorContains(t, err, "router murano-default-router leads to no external network: give it a gateway")
}
