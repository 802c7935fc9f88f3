package openstack

import (
	"errors"
	"net/url"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/stretchr/testify/require"
)

func TestAServiceIsLookedUpOnceUnlessThatFails(t *testing.T) {
	asked, failure := 0, errors.New("Glance is away")
	provider := &gophercloud.ProviderClient{EndpointLocator: func(options gophercloud.EndpointOpts) (string, error) {
		asked++
		return "http://" + options.Region + ".test/" + options.Type + "/", failure
	}}
	known := &addresses{services: map[string]string{}}
	known.note(provider)
	image := gophercloud.EndpointOpts{Type: "image", Aliases: []string{"glance"}, Region: "one", Version: 2}
	_, err := provider.EndpointLocator(image)
	require.ErrorIs(t, err, failure)
	failure = nil
	for range 2 {
		address, err := provider.EndpointLocator(image)
		require.NoError(t, err)
		require.Equal(t, "http://one.test/image/", address)
	}
	require.Equal(t, 2, asked)
	image.Region = "two"
	address, err := provider.EndpointLocator(image)
	require.NoError(t, err)
	require.Equal(t, "http://two.test/image/", address)
	require.Equal(t, 3, asked)
	require.Equal(t, "image", known.of(&url.URL{Host: "two.test", Path: "/image/v2/images"}))
}
