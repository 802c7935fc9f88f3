package nodes

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestANodeThatDoesNotReachTheOthersIsCutOff(t *testing.T) {
	further := []netip.Prefix{netip.MustParsePrefix("10.9.0.0/24")}
	down := false
	var steps []string
	c, joining, _ := connected(t, Config{Further: further,
		Server: func(context.Context, string) ServerState { return ServerState{Down: down} },
		Step: func(ctx context.Context, node, name string, run func(context.Context) error) error {
			steps = append(steps, node+": "+name)
			return run(ctx)
		}})
	other := &c.config.Nodes[1]
	other.Address = netip.MustParseAddr("127.0.0.254") // nothing listens there at port 22
	c.config.Patience = time.Second

	err := c.Reach(t.Context(), joining.Name)
	require.Len(t, CutOffs(err), 1)
	require.Equal(t, joining.Name, CutOffs(err)[0].Node)
	require.ErrorContains(t, err, "SSH is not reached of "+other.Name+" (127.0.0.254, port 22)")
	require.Equal(t, []string{joining.Name + ": reach"}, steps)

	down = true
	require.NoError(t, c.Reach(t.Context(), joining.Name), "a server that does not run is reached by nobody")
	down, other.Leaving = false, true
	require.NoError(t, c.Reach(t.Context(), joining.Name), "nor need one be that leaves")
	other.Leaving, c.config.Further = false, nil
	require.NoError(t, c.Reach(t.Context(), joining.Name), "all nodes stand in one network")
}

func TestAGatewayIsOpenedForANetworkOnce(t *testing.T) {
	nft := `if [ "$1" = list ]; then echo "chain input {"; [ -z "$HAS" ] || echo 'ip saddr 10.9.0.0/24 accept comment "from 10.9.0.0/24"'; exit 0; fi; echo "$@"`
	programs := map[string]string{"nft": nft}
	require.Equal(t, "insert rule inet burano-gateway input ip saddr 10.9.0.0/24 accept comment \"from 10.9.0.0/24\"\n", bash(t, admitScript, programs, "NETWORKS=10.9.0.0/24", "HAS="))
	require.Empty(t, bash(t, admitScript, programs, "NETWORKS=10.9.0.0/24", "HAS=yes"))
	require.Empty(t, bash(t, admitScript, map[string]string{"nft": "exit 1"}, "NETWORKS=10.9.0.0/24"), "a gateway that has no table yet is open")
}
