package clients

import (
	"net/http"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/test/golden"
)

// TestTheProgramAnswersAsRecorded replays the recording of the catalog on the program itself, with tokens of a real Keystone.
func TestTheProgramAnswersAsRecorded(t *testing.T) {
	s := startKeystone(t)
	s.build()
	s.serve(http.DefaultClient, "http", "--package-page", "20") // the recorded Murano's setting
	demo, ofDemo := s.token("demo", "demo")
	other, ofOther := s.token("other", "other")
	admin, ofAdmin := s.token("burano", "service") // an administrator, whose project owns the packages that come with Burano
	golden.CatalogAnswersAsRecorded(t, &golden.Replay{
		URL: s.url, Keystone: s.keystone + "/identity/v3",
		Tokens: map[string]string{"{token:demo}": demo, "{token:other}": other, "{token:admin}": admin},
		IDs:    golden.IDs{golden.ProjectDemo: ofDemo, golden.ProjectOther: ofOther, golden.ProjectAdmin: ofAdmin},
	})
}

// token signs a user in, whose password is its name, and returns the token and the project's id.
func (s *server) token(user, project string) (token, id string) {
	s.t.Helper()
	provider, err := openstack.AuthenticatedClient(s.t.Context(), gophercloud.AuthOptions{IdentityEndpoint: s.keystone + "/identity/v3",
		Username: user, Password: user, TenantName: project, DomainName: "Default"})
	require.NoError(s.t, err)
	result, ok := provider.GetAuthResult().(tokens.CreateResult)
	require.True(s.t, ok)
	scope, err := result.ExtractProject()
	require.NoError(s.t, err)
	return provider.Token(), scope.ID
}
