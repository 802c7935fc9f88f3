package client

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/config"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
)

// DefaultURL is where a server answers that was started without further settings.
const DefaultURL = "http://127.0.0.1:8082"

// Connect signs in to Keystone and finds the server. cloud is an entry of clouds.yaml; "" is the variables OS_*. Without a url the entry's
// application_catalog_endpoint_override counts, or the service catalog's entry for the type application-catalog.
func Connect(ctx context.Context, cloud, url string) (*Client, error) {
	credentials, err := ReadCredentials(cloud)
	if err != nil {
		return nil, err
	}
	provider, err := credentials.SignIn(ctx)
	if err != nil {
		return nil, err
	}
	return credentials.Of(provider, url)
}

// Of is the client of the signed-in user; url is as for Connect.
func (c Credentials) Of(provider *gophercloud.ProviderClient, url string) (*Client, error) {
	if url == "" {
		url = c.URL
	}
	if url == "" {
		var err error
		if url, err = c.find(provider); err != nil {
			return nil, err
		}
	}
	// The settings for certificates in clouds.yaml and the variables apply to all services of the cloud, and so to Burano.
	return New(url, provider, provider.HTTPClient.Transport), nil
}

// find looks for Burano in the service catalog. It gets the user's token, so it must not guess: only beside a Keystone on this machine a missing entry
// means a server here.
func (c Credentials) find(provider *gophercloud.ProviderClient) (string, error) {
	endpoint := c.Endpoint
	endpoint.ApplyDefaults("application-catalog")
	if address, err := provider.EndpointLocator(endpoint); err == nil && address != "" {
		return address, nil
	}
	const remedy = "name its address by --url, BURANO_URL or application_catalog_endpoint_override"
	var there []string
	if result, ok := provider.GetAuthResult().(tokens.CreateResult); ok {
		catalog, err := result.ExtractServiceCatalog()
		if err != nil {
			return "", fmt.Errorf("read the service catalog: %w", err)
		}
		for _, entry := range catalog.Entries {
			for _, one := range entry.Endpoints {
				if slices.Contains(endpoint.Types(), entry.Type) {
					there = append(there, fmt.Sprintf("%s in region %s", one.Interface, one.Region))
				}
			}
		}
	}
	slices.Sort(there)
	switch {
	case len(there) > 0:
		return "", fmt.Errorf("the service catalog has no Burano (application-catalog) with the %s interface in region %q; it has %s: name one of these (OS_REGION_NAME, OS_INTERFACE), or %s",
			endpoint.Availability, endpoint.Region, strings.Join(slices.Compact(there), ", "), remedy)
	case isLoopback(c.Auth.IdentityEndpoint):
		return DefaultURL, nil
	}
	return "", fmt.Errorf("the service catalog has no Burano (application-catalog): have the operator run burano setup --url, or %s", remedy)
}

func isLoopback(address string) bool {
	parsed, err := url.Parse(address)
	if err != nil {
		return false
	}
	host := parsed.Hostname()
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// SignIn returns a session of Keystone that renews its token by itself, and the options for other services in its catalog.
func SignIn(ctx context.Context, cloud string) (*gophercloud.ProviderClient, gophercloud.EndpointOpts, error) {
	credentials, err := ReadCredentials(cloud)
	if err != nil {
		return nil, gophercloud.EndpointOpts{}, err
	}
	provider, err := credentials.SignIn(ctx)
	return provider, credentials.Endpoint, err
}

// SignIn returns a session of Keystone that renews its token by itself.
func (c Credentials) SignIn(ctx context.Context) (*gophercloud.ProviderClient, error) {
	if c.federated != nil {
		return c.signInFederated(ctx)
	}
	auth := c.Auth
	auth.AllowReauth = true
	provider, err := config.NewProviderClient(ctx, auth, config.WithTLSConfig(c.TLS))
	if err != nil {
		if gophercloud.ResponseCodeIs(err, http.StatusUnauthorized) {
			return nil, fmt.Errorf("Keystone at %s refuses these credentials: check user, password and project", auth.IdentityEndpoint)
		}
		return nil, fmt.Errorf("sign in to Keystone at %s: %w", auth.IdentityEndpoint, err)
	}
	return provider, nil
}
