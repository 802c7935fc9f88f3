package cloud

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/config"
	"github.com/stretchr/testify/require"

	driver "github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/test/localcloud/keystone"
)

// Many clouds have certificates of an authority of their own, which clouds.yaml names (cacert).
func TestTheServiceUserTrustsTheAuthorityThatItIsGiven(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	endpoint := "https://" + server.Listener.Addr().String()
	identity, err := keystone.New(keystone.Config{StateDir: t.TempDir(), Endpoint: endpoint})
	require.NoError(t, err)
	server.Config.Handler = http.StripPrefix("/identity", identity.Handler())
	server.StartTLS()
	t.Cleanup(server.Close)
	as := func(user, project string) gophercloud.AuthOptions {
		return gophercloud.AuthOptions{IdentityEndpoint: endpoint + "/identity/v3", Username: user, Password: user, DomainName: "Default",
			Scope: &gophercloud.AuthScope{ProjectName: project, DomainName: "Default"}}
	}
	where := gophercloud.EndpointOpts{Region: keystone.Region}

	_, err = driver.NewService(t.Context(), as("burano", "service"), where, nil)
	require.ErrorContains(t, err, "certificate signed by unknown authority")
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	trusted := &tls.Config{RootCAs: pool}
	service, err := driver.NewService(t.Context(), as("burano", "service"), where, trusted)
	require.NoError(t, err)
	demo, err := config.NewProviderClient(t.Context(), as("demo", "demo"), config.WithTLSConfig(trusted))
	require.NoError(t, err)
	caller, err := service.Validate(t.Context(), demo.Token())
	require.NoError(t, err)
	trust, _, err := service.CreateTrust(t.Context(), caller, caller.Roles, time.Time{})
	require.NoError(t, err)
	require.NoError(t, service.DeleteTrust(t.Context(), trust), "through the trust the authority is trusted too")
}
