package client

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheVariablesOfOpenStacksClientsGiveCredentials(t *testing.T) {
	options, endpoint, _, err := credentialsOfVariables(func(name string) string {
		return map[string]string{"OS_AUTH_URL": "http://keystone/v3", "OS_USERNAME": "demo", "OS_PASSWORD": "secret: {x}", "OS_PROJECT_NAME": "work",
			"OS_USER_DOMAIN_NAME": "People", "OS_PROJECT_DOMAIN_ID": "d1", "OS_REGION_NAME": "north"}[name]
	})
	require.NoError(t, err)
	require.Equal(t, "secret: {x}", options.Password)
	require.Equal(t, "People", options.DomainName)
	require.Equal(t, "work", options.Scope.ProjectName)
	require.Equal(t, "d1", options.Scope.DomainID)
	require.Equal(t, "north", endpoint.Region)

	options, _, _, err = credentialsOfVariables(func(name string) string {
		return map[string]string{"OS_AUTH_URL": "http://keystone/v3", "OS_USERNAME": "demo", "OS_PASSWORD": "p", "OS_PROJECT_NAME": "work"}[name]
	})
	require.NoError(t, err)
	require.Equal(t, "default", options.DomainID)
	require.Equal(t, "default", options.Scope.DomainID)

	options, _, _, err = credentialsOfVariables(func(name string) string {
		return map[string]string{"OS_AUTH_URL": "http://keystone/v3", "OS_APPLICATION_CREDENTIAL_ID": "i", "OS_APPLICATION_CREDENTIAL_SECRET": "s"}[name]
	})
	require.NoError(t, err)
	require.Nil(t, options.Scope)
	require.Equal(t, "i", options.ApplicationCredentialID)

	for _, variables := range []map[string]string{{}, {"OS_AUTH_URL": "http://keystone/v3", "OS_USERNAME": "demo"}} {
		_, _, _, err = credentialsOfVariables(func(name string) string { return variables[name] })
		require.ErrorContains(t, err, "name an entry of clouds.yaml with OS_CLOUD or --os-cloud, or set the OS_* variables")
	}
}
