package main

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"os"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"
	"go.yaml.in/yaml/v3"
)

// credentials reads clouds.yaml, or the OS_* variables when no entry is named.
func (c *connection) credentials() (gophercloud.AuthOptions, gophercloud.EndpointOpts, *tls.Config, error) {
	if c.cloud == "" {
		return credentialsOfVariables(os.Getenv)
	}
	auth, endpoint, tlsConfig, err := clouds.Parse(clouds.WithCloudName(c.cloud))
	if err != nil {
		return auth, endpoint, nil, fmt.Errorf("read the entry %q of clouds.yaml: %w", c.cloud, err)
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
