package openstack

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
)

// Zed's Keystone answers so to a user of an identity provider whose authorization_ttl is 0.
func TestWhoHasRolesByTheTokenAloneIsToldWhyNothingCanBeDeployed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/role_inferences") {
			_, _ = w.Write([]byte(`{"role_inferences":[]}`))
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"error":{"code":404,"message":"Could not find role: 59eba72c4d2e4ff5b8fa8610a5ce183a.","title":"Not Found"}}`))
	}))
	defer server.Close()
	s := &Service{Objects: Objects{userID: "burano"}, SignIns: SignIns{&gophercloud.ServiceClient{ProviderClient: &gophercloud.ProviderClient{}, Endpoint: server.URL + "/"}}}
	_, _, err := s.CreateTrust(t.Context(), identity.Caller{UserID: "u", ProjectID: "p", Roles: []string{"member"}, Token: "t"}, []string{"member"}, time.Time{})
	require.Equal(t, fault.Forbidden, fault.KindOf(err), "%v", err)
	require.ErrorContains(t, err, "authorization_ttl")
}
