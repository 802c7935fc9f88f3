package clients

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/test/localcloud/glance"
	"github.com/burano/burano/test/localcloud/keystone"
)

// withGlance puts the local cloud's Glance beside its Keystone. It keeps images without data.
func withGlance(t *testing.T, identity *keystone.Service, endpoint string) http.Handler {
	service, err := glance.New(glance.Config{StateDir: t.TempDir(), Endpoint: endpoint})
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/identity/", http.StripPrefix("/identity", identity.Handler()))
	mux.Handle("/image/", http.StripPrefix("/image", identity.Require(service.Handler())))
	return mux
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)

// image makes an image of demo's project; info is its property for forms.
func (s *server) image(name, info string) {
	s.t.Helper()
	provider, err := openstack.AuthenticatedClient(s.t.Context(), gophercloud.AuthOptions{IdentityEndpoint: s.keystone + "/identity/v3",
		Username: "demo", Password: "demo", TenantName: "demo", DomainName: "Default"})
	require.NoError(s.t, err)
	client, err := openstack.NewImageV2(provider, gophercloud.EndpointOpts{Region: keystone.Region})
	require.NoError(s.t, err)
	options := images.CreateOpts{Name: name, DiskFormat: "raw", ContainerFormat: "bare"}
	if info != "" {
		options.Properties = map[string]string{"murano_image_info": info}
	}
	require.NoError(s.t, images.Create(s.t.Context(), client, options).Err)
}
