package cloud

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/fault"
	driver "github.com/burano/burano/orchestrator/openstack"
)

func whatACallerMayChooseFromIsListed(t *testing.T, c *cloud) {
	service := c.service(t)
	demo := c.as(t, "demo").caller(t, service)
	ask := func(kind string) any {
		list, err := service.Choices(t.Context(), demo, kind, "")
		require.NoError(t, err, kind)
		require.NotEmpty(t, list, kind)
		return list
	}
	for _, flavor := range ask("flavors").([]driver.FlavorChoice) {
		require.NotEmpty(t, flavor.ID)
		require.NotEmpty(t, flavor.Name)
		require.Positive(t, flavor.RAM)
	}
	for _, image := range ask("images").([]driver.ImageChoice) {
		require.NotEmpty(t, image.ID)
		require.Positive(t, image.Size)
	}
	outside := false
	for _, network := range ask("networks").([]driver.NetworkChoice) {
		outside = outside || network.External
	}
	require.True(t, outside, "there is an external network")
	for _, zone := range ask("availability-zones").([]driver.ZoneChoice) {
		require.NotEmpty(t, zone.Name)
	}
	for _, quota := range ask("quota").([]driver.QuotaChoice) {
		require.GreaterOrEqual(t, quota.Limit, -1, quota.Resource)
	}
	_, err := service.Choices(t.Context(), demo, "keypairs", "")
	require.NoError(t, err)
	_, err = service.Choices(t.Context(), demo, "volcanoes", "")
	require.Equal(t, fault.NotFound, fault.KindOf(err))
}
