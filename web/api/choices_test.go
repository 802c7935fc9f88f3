package api

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatACallerMayChooseFromIsAskedForThem(t *testing.T) {
	s := newServer(t)
	require.Equal(t, []any{"availability-zones of " + goldenDemo}, field(s.call("demo", "", "GET", "/burano/v1/cloud/availability-zones", nil, 200), "availability_zones"))
	require.Equal(t, []any{"flavorsRegionTwo of " + goldenDemo}, field(s.call("demo", "", "GET", "/burano/v1/cloud/flavors?region=RegionTwo", nil, 200), "flavors"))
	without := newServer(t, func(c *Config) { c.Choices = nil })
	without.call("demo", "", "GET", "/burano/v1/cloud/flavors", nil, 404)
}
