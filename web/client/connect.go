package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/config"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"
	"go.yaml.in/yaml/v3"
)

// DefaultURL is where a server answers that was started without further settings.
const DefaultURL = "http://127.0.0.1:8082"

// Connect signs in to Keystone and finds the server. cloud is an entry of clouds.yaml; "" means the variables OS_*. Without a url the
// service catalog is asked for the type application-catalog, and without an entry there DefaultURL is taken.
func Connect(ctx context.Context, cloud, url string) (*Client, error) {
	provider, endpoint, err := SignIn(ctx, cloud)
	if err != nil {
		return nil, err
	}
	return Of(provider, endpoint, url), nil
}

// Of is the client of who is signed in; url is as for Connect.
func Of(provider *gophercloud.ProviderClient, endpoint gophercloud.EndpointOpts, url string) *Client {
	if url == "" {
		endpoint.ApplyDefaults("application-catalog")
		var err error
		if url, err = provider.EndpointLocator(endpoint); err != nil || url == "" {
			url = DefaultURL
		}
	}
	// What clouds.yaml and the variables say of certificates holds for all services of the cloud, and so for Burano.
	return New(url, provider, provider.HTTPClient.Transport)
}

// SignIn returns a session of Keystone that renews its token by itself, with what is needed to find other services in its catalog.
func SignIn(ctx context.Context, cloud string) (*gophercloud.ProviderClient, gophercloud.EndpointOpts, error) {
	auth, endpoint, tlsConfig, err := Credentials(cloud)
	if err != nil {
		return nil, endpoint, err
	}
	auth.AllowReauth = true
	provider, err := config.NewProviderClient(ctx, auth, config.WithTLSConfig(tlsConfig))
	if err != nil {
		if gophercloud.ResponseCodeIs(err, http.StatusUnauthorized) {
			return nil, endpoint, fmt.Errorf("Keystone at %s refuses these credentials: check user, password and project", auth.IdentityEndpoint)
		}
		return nil, endpoint, fmt.Errorf("sign in to Keystone at %s: %w", auth.IdentityEndpoint, err)
	}
	return provider, endpoint, nil
}

// Credentials reads clouds.yaml, or the variables OS_* when no entry is named.
func Credentials(cloud string) (gophercloud.AuthOptions, gophercloud.EndpointOpts, *tls.Config, error) {
	if cloud == "" {
		return credentialsOfVariables(os.Getenv)
	}
	auth, endpoint, tlsConfig, err := clouds.Parse(clouds.WithCloudName(cloud))
	if err != nil {
		return auth, endpoint, nil, fmt.Errorf("read the entry %q of clouds.yaml: %w", cloud, err)
	}
	return auth, endpoint, tlsConfig, nil
}

// credentialsOfVariables reads the variables that python-openstackclient reads, as an entry of clouds.yaml that is not in a file: so
// both ways mean the same.
func credentialsOfVariables(variable func(string) string) (gophercloud.AuthOptions, gophercloud.EndpointOpts, *tls.Config, error) {
	fail := func(err error) (gophercloud.AuthOptions, gophercloud.EndpointOpts, *tls.Config, error) {
		return gophercloud.AuthOptions{}, gophercloud.EndpointOpts{}, nil,
			fmt.Errorf("no credentials: name an entry of clouds.yaml with OS_CLOUD or --os-cloud, or set the OS_* variables (%w)", err)
	}
	auth := clouds.AuthInfo{
		AuthURL: variable("OS_AUTH_URL"), Token: cmp.Or(variable("OS_TOKEN"), variable("OS_AUTH_TOKEN")),
		Username: variable("OS_USERNAME"), UserID: cmp.Or(variable("OS_USER_ID"), variable("OS_USERID")), Password: variable("OS_PASSWORD"),
		ApplicationCredentialID:     variable("OS_APPLICATION_CREDENTIAL_ID"),
		ApplicationCredentialName:   variable("OS_APPLICATION_CREDENTIAL_NAME"),
		ApplicationCredentialSecret: variable("OS_APPLICATION_CREDENTIAL_SECRET"),
		SystemScope:                 variable("OS_SYSTEM_SCOPE"),
		ProjectName:                 cmp.Or(variable("OS_PROJECT_NAME"), variable("OS_TENANT_NAME")),
		ProjectID:                   cmp.Or(variable("OS_PROJECT_ID"), variable("OS_TENANT_ID")),
		UserDomainName:              variable("OS_USER_DOMAIN_NAME"), UserDomainID: variable("OS_USER_DOMAIN_ID"),
		ProjectDomainName: variable("OS_PROJECT_DOMAIN_NAME"), ProjectDomainID: variable("OS_PROJECT_DOMAIN_ID"),
		DomainName: variable("OS_DOMAIN_NAME"), DomainID: variable("OS_DOMAIN_ID"),
	}
	byPassword := auth.Password != "" && (auth.Username != "" || auth.UserID != "")
	switch {
	case auth.AuthURL == "":
		return fail(errors.New("OS_AUTH_URL is not set"))
	case !byPassword && auth.Token == "" && auth.ApplicationCredentialSecret == "":
		return fail(errors.New("OS_USERNAME with OS_PASSWORD, OS_APPLICATION_CREDENTIAL_ID with _SECRET, or OS_TOKEN is needed"))
	}
	// OpenStack's own clients take the domain "default" when none is named.
	fallback := cmp.Or(variable("OS_DEFAULT_DOMAIN"), "default")
	if auth.UserID == "" && auth.Username != "" && auth.UserDomainName+auth.UserDomainID+auth.DomainName+auth.DomainID == "" {
		auth.UserDomainID = fallback
	}
	if auth.ProjectName != "" && auth.ProjectDomainName+auth.ProjectDomainID+auth.DomainName+auth.DomainID == "" {
		auth.ProjectDomainID = fallback
	}
	const name = "variables"
	verify := variable("OS_INSECURE") == ""
	text, err := yaml.Marshal(map[string]any{"clouds": map[string]any{name: clouds.Cloud{AuthInfo: &auth, RegionName: variable("OS_REGION_NAME"),
		Interface: variable("OS_INTERFACE"), CACertFile: variable("OS_CACERT"), ClientCertFile: variable("OS_CERT"), ClientKeyFile: variable("OS_KEY"),
		Verify: &verify}}})
	if err != nil {
		return fail(err)
	}
	options, endpoint, tlsConfig, err := clouds.Parse(clouds.WithCloudName(name), clouds.WithCloudsYAML(bytes.NewReader(text)))
	if err != nil {
		return fail(err)
	}
	return options, endpoint, tlsConfig, nil
}
