package client

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/stretchr/testify/require"
)

// of makes a function of a map.
func of(variables map[string]string) func(string) string {
	return func(name string) string { return variables[name] }
}

func TestTheVariablesOfOpenStacksClientsGiveCredentials(t *testing.T) {
	read, err := readCredentials("", of(map[string]string{"OS_AUTH_URL": "http://keystone/v3", "OS_USERNAME": "demo", "OS_PASSWORD": "secret: {x}",
		"OS_PROJECT_NAME": "work", "OS_USER_DOMAIN_NAME": "People", "OS_PROJECT_DOMAIN_ID": "d1", "OS_REGION_NAME": "north",
		"OS_APPLICATION_CATALOG_ENDPOINT_OVERRIDE": "https://burano.example.com/"}))
	require.NoError(t, err)
	require.Equal(t, "secret: {x}", read.Auth.Password)
	require.Equal(t, "People", read.Auth.DomainName)
	require.Equal(t, "work", read.Auth.Scope.ProjectName)
	require.Equal(t, "d1", read.Auth.Scope.DomainID)
	require.Equal(t, "north", read.Endpoint.Region)
	require.Equal(t, "https://burano.example.com", read.URL)

	read, err = readCredentials("", of(map[string]string{"OS_AUTH_URL": "http://keystone/v3", "OS_USERNAME": "demo", "OS_PASSWORD": "p", "OS_TENANT_NAME": "work"}))
	require.NoError(t, err)
	require.Equal(t, "default", read.Auth.DomainID)
	require.Equal(t, "default", read.Auth.Scope.DomainID)
	require.Equal(t, "work", read.Auth.Scope.ProjectName)

	read, err = readCredentials("", of(map[string]string{"OS_AUTH_URL": "http://keystone/v3", "OS_APPLICATION_CREDENTIAL_ID": "i", "OS_APPLICATION_CREDENTIAL_SECRET": "s",
		"OS_AUTH_TYPE": "v3applicationcredential", "OS_USERNAME": "left", "OS_PASSWORD": "over", "OS_PROJECT_NAME": "other"}))
	require.NoError(t, err)
	require.Nil(t, read.Auth.Scope, "it has the project that it was made in")
	require.Equal(t, gophercloud.AuthOptions{IdentityEndpoint: "http://keystone/v3", ApplicationCredentialID: "i", ApplicationCredentialSecret: "s"}, read.Auth)

	read, err = readCredentials("", of(map[string]string{"OS_AUTH_URL": "http://keystone/v3", "OS_AUTH_TYPE": "v3token", "OS_TOKEN": "t", "OS_PROJECT_ID": "p", "OS_USERNAME": "left",
		"OS_PASSWORD": "over"}))
	require.NoError(t, err)
	require.Equal(t, "t", read.Auth.TokenID)
	require.Equal(t, "p", read.Auth.Scope.ProjectID)
	require.Empty(t, read.Auth.Username+read.Auth.Password)

	nowhere := filepath.Join(t.TempDir(), "clouds.yaml")
	_, err = readCredentials("", of(map[string]string{"OS_CLIENT_CONFIG_FILE": nowhere}))
	require.ErrorContains(t, err, "name an entry of clouds.yaml with OS_CLOUD or --os-cloud, or set the OS_* variables")
	for said, more := range map[string]map[string]string{
		"OS_USERNAME":                      {"OS_USERNAME": "demo"},
		"is not known here":                {"OS_AUTH_TYPE": "v3kerberos"},
		"needs a token":                    {"OS_AUTH_TYPE": "v3token"},
		"needs application_credential":     {"OS_AUTH_TYPE": "v3applicationcredential"},
		"needs client_secret":              {"OS_AUTH_TYPE": "v3oidcclientcredentials", "OS_IDENTITY_PROVIDER": "i", "OS_PROTOCOL": "openid", "OS_CLIENT_ID": "c"},
		"needs discovery_endpoint":         {"OS_AUTH_TYPE": "v3oidcdeviceauthz", "OS_IDENTITY_PROVIDER": "i", "OS_PROTOCOL": "openid", "OS_CLIENT_ID": "c"},
		"needs a project":                  {"OS_AUTH_TYPE": "v3oidcaccesstoken", "OS_IDENTITY_PROVIDER": "i", "OS_PROTOCOL": "openid", "OS_ACCESS_TOKEN": "a"},
		"v3oidcauthcode is not known":      {"OS_AUTH_TYPE": "v3oidcauthcode"},
		`insecure is "maybe", and neither`: {"OS_USERNAME": "u", "OS_PASSWORD": "p", "OS_INSECURE": "maybe"},
	} {
		more["OS_AUTH_URL"] = "http://keystone/v3"
		_, err := readCredentials("", of(more))
		require.ErrorContains(t, err, said)
	}
}

func TestASwitchOfTheVariablesIsReadByItsValue(t *testing.T) {
	for value, insecure := range map[string]bool{"": false, "false": false, "False": false, "0": false, "no": false, "off": false, "true": true, "1": true, "YES": true} {
		read, err := readCredentials("", of(map[string]string{"OS_AUTH_URL": "https://keystone/v3", "OS_USERNAME": "u", "OS_PASSWORD": "p", "OS_INSECURE": value}))
		require.NoError(t, err)
		require.Equal(t, insecure, read.TLS != nil && read.TLS.InsecureSkipVerify, "OS_INSECURE=%s", value)
	}
}

func TestAnEntryIsReadAsOpenStacksClientsReadIt(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	path := write("clouds.yaml", `
common: &common {auth_url: "https://keystone.example.com/v3", project_name: 0042}
clouds:
  plain: {auth: {<<: *common, username: demo, password: 00123}}
  domain: {default_domain: people, auth: {<<: *common, username: demo, password: p}}
  named: {default_domain: people, auth: {<<: *common, username: demo, password: p, user_domain_name: Mine}}
  top: {username: demo, password: p, project-name: work, auth: {auth_url: "https://keystone.example.com"}, region_name: south,
    application_catalog_endpoint_override: "https://burano.example.com:8082"}
  unsafe: {verify: false, auth: {<<: *common, username: demo, password: p}}
  safe: {insecure: "false", verify: "yes", auth: {<<: *common, username: demo, password: p}}
  secret: {auth: {<<: *common, username: demo}}
  regions: {regions: [north, south], auth: {<<: *common, username: demo, password: p}}
  profiled: {profile: vendor, auth: {username: demo, password: p, project_id: x}}
  robot: {auth_type: v3applicationcredential, auth: {auth_url: "https://keystone.example.com/v3", application_credential_name: ci, username: demo, application_credential_secret: s}}
  oidc:
    auth_type: v3oidcclientcredentials
    auth: {<<: *common, identity_provider: corp, protocol: openid, client_id: c, client_secret: s, discovery_endpoint: "https://issuer/.well-known/openid-configuration"}
`)
	write("secure.yaml", "clouds: {secret: {auth: {password: of the safe}}}\n")
	write("clouds-public.yaml", "public-clouds: {vendor: {region_name: west, auth: {auth_url: 'https://vendor.example.com'}}}\n")
	variables := of(map[string]string{"OS_CLIENT_CONFIG_FILE": path})
	read := func(cloud string) Credentials {
		t.Helper()
		made, err := readCredentials(cloud, variables)
		require.NoError(t, err)
		return made
	}
	plain := read("plain")
	require.Equal(t, "00123", plain.Auth.Password, "a password of digits is no number")
	require.Equal(t, "0042", plain.Auth.Scope.ProjectName)
	require.Equal(t, "default", plain.Auth.DomainID)
	require.Equal(t, "default", plain.Auth.Scope.DomainID)
	require.Equal(t, "people", read("domain").Auth.DomainID)
	require.Equal(t, "people", read("domain").Auth.Scope.DomainID)
	require.Equal(t, "Mine", read("named").Auth.DomainName)
	require.Empty(t, read("named").Auth.DomainID)
	require.Equal(t, "work", read("top").Auth.Scope.ProjectName)
	require.Equal(t, "https://burano.example.com:8082", read("top").URL)
	require.Equal(t, "south", read("top").Endpoint.Region)
	require.True(t, read("unsafe").TLS.InsecureSkipVerify)
	require.False(t, read("safe").TLS != nil && read("safe").TLS.InsecureSkipVerify)
	require.Equal(t, "of the safe", read("secret").Auth.Password)
	require.Equal(t, "north", read("regions").Endpoint.Region)
	require.Equal(t, "https://vendor.example.com", read("profiled").Auth.IdentityEndpoint)
	require.Equal(t, "west", read("profiled").Endpoint.Region)
	require.Equal(t, "default", read("robot").Auth.DomainID)
	require.Equal(t, "ci", read("robot").Auth.ApplicationCredentialName)
	require.Equal(t, oidcClient, read("oidc").federated.kind)
	_, err := readCredentials("nope", variables)
	require.ErrorContains(t, err, "domain, named, oidc, plain")
	_, err = readCredentials("", variables)
	require.ErrorContains(t, err, "name an entry of clouds.yaml")

	single := write("single.yaml", "clouds: {only: {auth: {auth_url: 'https://keystone.example.com', username: demo, password: p}}}\n")
	only, err := readCredentials("", of(map[string]string{"OS_CLIENT_CONFIG_FILE": single}))
	require.NoError(t, err, "the only entry needs no name")
	require.Equal(t, "demo", only.Auth.Username)
}

func TestARegionWithoutBuranoIsNamedAndGetsNoToken(t *testing.T) {
	catalog := `[{"type": "application-catalog", "endpoints": [{"interface": "public", "region": "north", "region_id": "north", "url": "https://burano.example.com"}]}]`
	keystone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPost {
			w.Header().Set("X-Subject-Token", "token")
			w.WriteHeader(http.StatusCreated)
			_, _ = fmt.Fprintf(w, `{"token": {"expires_at": "2100-01-01T00:00:00.000000Z", "catalog": %s}}`, catalog)
			return
		}
		_, _ = fmt.Fprintf(w, `{"version": {"id": "v3.14", "status": "stable", "links": [{"rel": "self", "href": "http://%s/v3/"}]}}`, r.Host)
	}))
	t.Cleanup(keystone.Close)
	credentials, err := readCredentials("", of(map[string]string{"OS_AUTH_URL": keystone.URL + "/v3", "OS_USERNAME": "u", "OS_PASSWORD": "p", "OS_PROJECT_ID": "x"}))
	require.NoError(t, err)
	find := func(region, identity string) (string, error) {
		provider, err := credentials.SignIn(t.Context())
		require.NoError(t, err)
		as := credentials
		as.Endpoint.Region, as.Auth.IdentityEndpoint = region, identity
		return as.find(provider)
	}
	found, err := find("north", keystone.URL)
	require.NoError(t, err)
	require.Equal(t, "https://burano.example.com/", found)
	_, err = find("south", keystone.URL)
	require.ErrorContains(t, err, `in region "south"; it has public in region north`)
	catalog = "[]"
	_, err = find("south", "https://keystone.example.com/v3")
	require.ErrorContains(t, err, "burano setup")
	found, err = find("south", keystone.URL)
	require.NoError(t, err)
	require.Equal(t, DefaultURL, found, "beside a Keystone of this machine")

	catalog = `[{"type": "application-catalog", "endpoints": []}]`
	overridden, err := Credentials{URL: "https://own.example.com", TLS: nil}.Of(&gophercloud.ProviderClient{}, "")
	require.NoError(t, err)
	require.Equal(t, "https://own.example.com", overridden.url)
}
