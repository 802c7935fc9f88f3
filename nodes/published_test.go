package nodes

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/haproxytest"
	"github.com/burano/burano/gateway/route"
)

func TestGatewaysAloneRefuseWhatAnotherRouteHas(t *testing.T) {
	chain, key := haproxytest.Certificate(t, "www.example.org", 0)
	other, _ := haproxytest.Certificate(t, "www.example.org", 0)
	weak, weakKey := haproxytest.Certificate(t, "www.example.org", 1024)
	has := publications{
		"a": {Name: "port", Port: 9090},
		"b": {Name: "web", Port: 8080},
		"c": {Name: "host", Host: "www.example.org", Path: "/", TLS: OpensTLS, Chain: chain, Key: key},
		"d": {Name: "passed", Host: "tls.example.org", TLS: PassTLS},
	}
	for name, one := range map[string]struct {
		wanted Publication
		why    string
	}{
		"another port":                          {Publication{Name: "new", Port: 9095}, ""},
		"its own port again":                    {Publication{Name: "port", Port: 9090}, ""},
		"another path of a host":                {Publication{Name: "new", Host: "www.example.org", Path: "/shop"}, ""},
		"a host by HTTP that is passed by TLS":  {Publication{Name: "new", Host: "tls.example.org", Path: "/"}, ""},
		"the port of another":                   {Publication{Name: "new", Port: 8080}, "port 8080 of the gateways belongs to the route web"},
		"the port that hosts share":             {Publication{Name: "new", Port: 443}, "port 443 of the gateways belongs to the route"},
		"a port of the node":                    {Publication{Name: "new", Port: 2379}, "reserved for etcd clients"},
		"the name of another":                   {Publication{Name: "web", Port: 9095}, "another name"},
		"the path of another":                   {Publication{Name: "new", Host: "www.example.org"}, "www.example.org belongs to the route host"},
		"a host that is opened, to be passed":   {Publication{Name: "new", Host: "www.example.org", TLS: PassTLS}, "are opened for one"},
		"a host that is passed already":         {Publication{Name: "new", Host: "tls.example.org", TLS: PassTLS}, "belongs to the route passed"},
		"another certificate of a host":         {Publication{Name: "new", Host: "www.example.org", Path: "/x", TLS: OpensTLS, Chain: other, Key: key}, "are no certificate and its key"},
		"a certificate with a key that is weak": {Publication{Name: "new", Host: "weak.example.org", TLS: OpensTLS, Chain: weak, Key: weakKey}, "needs 2048"},
		"neither a port nor a host":             {Publication{Name: "new"}, "a port or a host"},
	} {
		err := has.admits("a", one.wanted)
		if one.why == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, one.why, name)
		}
	}
}

func TestWhatGatewaysAloneServeIsWrittenAsAPublisherDoes(t *testing.T) {
	backends := []route.Backend{{Address: "10.0.0.9", Port: 8090, Ready: true}}
	all := publications{
		"a": {Name: "port", Port: 9090, Backends: backends},
		"b": {Name: "host", Host: "www.example.org", Path: "/shop", TLS: OpensTLS, Chain: []byte("x"), Backends: backends},
		"c": {Name: "passed", Host: "tls.example.org", TLS: PassTLS, Backends: backends},
		"d": {Name: "simple", Host: "*.example.net", Backends: backends},
	}
	require.Len(t, all.tcp(), 1)
	require.NoError(t, all.tcp()[0].Validate())
	values, err := all.http()
	require.NoError(t, err)
	var parts []route.Part
	for key, value := range values {
		part, err := route.DecodePart(key, []byte(value))
		require.NoError(t, err)
		parts = append(parts, part)
	}
	h := route.Assemble(parts)
	slices.SortFunc(h.Listeners, func(x, y route.Listener) int { return int(x.Port) - int(y.Port) })
	require.Len(t, h.Listeners, 2)
	require.Equal(t, []bool{false, false, true, true}, []bool{h.Listeners[0].TLS, h.Listeners[0].Passes, h.Listeners[1].TLS, h.Listeners[1].Passes})
	require.Len(t, h.Sites, 3)
	require.Len(t, h.Pools, 3)
	all["e"] = Publication{Name: "bad", Host: "www.example.org\n", Backends: backends}
	_, err = all.http()
	require.ErrorContains(t, err, "is not a host name")
}

func TestAClusterOfGatewaysAloneNeedsNoMaster(t *testing.T) {
	list := nodesOf(0, 0, 2)
	config := Config{Name: "doors", Nodes: list, Vault: newVault(), Binary: "/bin/true"}
	cluster, err := NewCluster(config)
	require.NoError(t, err)
	made, err := cluster.designAlone(context.Background())
	require.NoError(t, err)
	made.binary = "digest"
	pairs, err := made.pairs(context.Background(), cluster, list[0])
	require.NoError(t, err)
	l, err := made.layout(list[0], pairs, 1450)
	require.NoError(t, err)
	var units []string
	for name, unit := range l.units {
		units = append(units, name)
		if name == "etcd-forwarder" {
			require.NotContains(t, strings.Join(unit.Command, " "), list[1].Address.String(), "it asks nobody's store but its own")
		}
	}
	require.ElementsMatch(t, []string{"etcd", "etcd-forwarder", "haproxy", "burano-gateway"}, units)
	config.Nodes = append(nodesOf(0, 1, 0), list...)
	_, err = NewCluster(config)
	require.Error(t, err, "with a minion it is a cluster without a master")
	_, err = NewCluster(Config{Name: "doors", Vault: newVault()})
	require.Error(t, err)
}
