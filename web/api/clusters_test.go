package api

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAClusterIsDescribedToThoseWhoMaySeeIt(t *testing.T) {
	s := newServer(t)
	mine := s.populate("demo", "demos")
	path := "/burano/v1/environments/" + mine["environment"] + "/clusters/"
	require.Equal(t, mine["environment"]+"/"+mine["cluster"], field(s.call("demo", "", "GET", path+mine["cluster"], nil, 200), "name"))
	s.call("demo", "", "GET", path+"nothing", nil, 404)
	s.call("other", "", "GET", path+mine["cluster"], nil, 403)
}

func TestTheTrafficOfAClustersGatewaysIsShownToThoseWhoMaySeeIt(t *testing.T) {
	s := newServer(t)
	mine := s.populate("demo", "demos")
	path := "/burano/v1/environments/" + mine["environment"] + "/clusters/"
	gateway := field(s.call("demo", "", "GET", path+mine["cluster"]+"/traffic", nil, 200), "gateways", 0)
	require.Equal(t, mine["environment"]+"/"+mine["cluster"], field(gateway, "name"))
	require.EqualValues(t, 7, field(gateway, "listeners", 0, "connections_per_second"))
	require.Equal(t, "up", field(gateway, "listeners", 0, "backends", 0, "state"))
	s.call("demo", "", "GET", path+"nothing/traffic", nil, 404)
	s.call("other", "", "GET", path+mine["cluster"]+"/traffic", nil, 403)
}
