package openstack

import (
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/fault"
)

// serviceIn is a service with public endpoints in regions.
func serviceIn(kind string, regions ...string) tokens.CatalogEntry {
	entry := tokens.CatalogEntry{Type: kind}
	for _, region := range regions {
		entry.Endpoints = append(entry.Endpoints, tokens.Endpoint{Interface: "public", Region: region, RegionID: region},
			tokens.Endpoint{Interface: "admin", Region: "admins", RegionID: "admins"})
	}
	return entry
}

func TestEnvironmentsStandInRegionsThatHaveAllServices(t *testing.T) {
	catalog := &tokens.ServiceCatalog{Entries: []tokens.CatalogEntry{serviceIn("identity", "north", "south", "west"), serviceIn("orchestration", "south", "north"),
		serviceIn("compute", "north", "south", "west"), serviceIn("network", "north", "south", "west", "")}}
	require.Equal(t, []string{"north", "south"}, regionsOf(catalog, "", false))
	require.Equal(t, []string{"admins"}, regionsOf(catalog, gophercloud.AvailabilityAdmin, false))

	require.Equal(t, []string{"north", "south", "west"}, regionsOf(catalog, "", true), "Burano makes stacks itself")

	here := home{"north", gophercloud.EndpointOpts{Region: "north"}}
	for wanted, found := range map[string]string{"": "north", "north": "north", "south": "south"} {
		endpoint, err := here.in(catalog, wanted, false)
		require.NoError(t, err)
		require.Equal(t, found, endpoint.Region)
	}
	_, err := here.in(catalog, "west", false)
	require.ErrorContains(t, err, `the cloud has no region "west" with Heat, Nova and Neutron that the project may use: there are north, south`)
	require.Equal(t, fault.Invalid, fault.KindOf(err))
}

func TestWhatIsNotedOfAChangeSaysTheRegion(t *testing.T) {
	for region, noted := range map[string]string{"north": "burano-1", "south": "burano-1@south"} {
		project := &Project{home: home{name: "north"}, region: region}
		require.Equal(t, noted, project.noted("burano-1"))
		stack, in := ofNoted(noted)
		require.Equal(t, "burano-1", stack)
		require.Equal(t, region != "north", in == "south")
	}
}
