package golden

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	clients "github.com/gophercloud/gophercloud/v2/openstack"
	identitytokens "github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stacks"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/test/localcloud/heat"
	localkeystone "github.com/burano/burano/test/localcloud/keystone"
)

// recordedRegion is the region of the recording's environments.
const recordedRegion = "RegionOne"

// cloud is the local cloud's Keystone and Heat, as far as they need no servers and networks. The recording's callers are all the local
// cloud's user demo there.
type cloud struct {
	*openstack.Service
	url string
}

func newCloud(t *testing.T) *cloud {
	listener := httptest.NewUnstartedServer(nil)
	c := &cloud{url: "http://" + listener.Listener.Addr().String()}
	users, err := localkeystone.New(localkeystone.Config{StateDir: t.TempDir(), Endpoint: c.url, Region: recordedRegion})
	require.NoError(t, err)
	stacks, err := heat.New(heat.Config{StateDir: t.TempDir(), Delegations: users})
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/identity/", http.StripPrefix("/identity", users.Handler()))
	mux.Handle("/orchestration/v1/", http.StripPrefix("/orchestration/v1", users.Require(stacks.Handler())))
	// Neutron and Nova answer only a client's first request.
	for path, version := range map[string]string{"GET /network/{$}": "v2.0", "GET /compute/{rest...}": "v2.1"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(w, `{"versions": [{"id": %q, "status": "CURRENT", "links": []}]}`, version)
		})
	}
	listener.Config.Handler = mux
	listener.Start()
	t.Cleanup(listener.Close)
	t.Cleanup(stacks.Close)
	options := c.as("burano")
	options.TenantName = "service"
	c.Service, err = openstack.NewService(t.Context(), options, gophercloud.EndpointOpts{Region: recordedRegion}, nil)
	require.NoError(t, err)
	return c
}

// as signs a user in, whose password and project have its name.
func (c *cloud) as(user string) gophercloud.AuthOptions {
	return gophercloud.AuthOptions{IdentityEndpoint: c.url + "/identity/v3", Username: user, Password: user, TenantName: user, DomainName: "Default"}
}

// CreateTrust makes a trust of demo's.
func (c *cloud) CreateTrust(ctx context.Context, _ identity.Caller, roles []string, expires time.Time) (string, []string, error) {
	provider, err := clients.AuthenticatedClient(ctx, c.as("demo"))
	if err != nil {
		return "", nil, err
	}
	result, _ := provider.GetAuthResult().(identitytokens.CreateResult)
	token, err := result.ExtractTokenID()
	if err != nil {
		return "", nil, err
	}
	caller, err := c.Validate(ctx, token)
	if err != nil {
		return "", nil, err
	}
	return c.Service.CreateTrust(ctx, caller, roles, expires)
}

// stackNames lists the existing stacks.
func (c *cloud) stackNames(t *testing.T) []string {
	provider, err := clients.AuthenticatedClient(t.Context(), c.as("demo"))
	require.NoError(t, err)
	client, err := clients.NewOrchestrationV1(provider, gophercloud.EndpointOpts{Region: recordedRegion})
	require.NoError(t, err)
	pages, err := stacks.List(client, stacks.ListOpts{}).AllPages(t.Context())
	require.NoError(t, err)
	list, err := stacks.ExtractStacks(pages)
	require.NoError(t, err)
	names := []string{}
	for _, one := range list {
		names = append(names, one.Name)
	}
	return names
}
