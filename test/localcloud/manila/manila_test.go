package manila

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/sharedfilesystems/v2/sharenetworks"
	"github.com/gophercloud/gophercloud/v2/openstack/sharedfilesystems/v2/shares"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/identity"
)

// serving is the service of a folder, and a client of project one.
func serving(t *testing.T, folder string) (*Service, *gophercloud.ServiceClient) {
	t.Helper()
	service, err := New(Config{StateDir: folder, Server: "10.88.0.1"})
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		service.Handler().ServeHTTP(w, r.WithContext(identity.With(r.Context(), identity.Caller{ProjectID: "one", Admin: true})))
	}))
	t.Cleanup(server.Close)
	return service, &gophercloud.ServiceClient{ProviderClient: &gophercloud.ProviderClient{HTTPClient: *server.Client()}, Endpoint: server.URL + "/v2/", Type: "sharev2", Microversion: "2.14"}
}

func TestAShareIsAFolderWithRulesMetadataAndAQuota(t *testing.T) {
	folder := t.TempDir()
	service, client := serving(t, folder)
	ctx := t.Context()
	network, err := sharenetworks.Create(ctx, client, sharenetworks.CreateOpts{Name: "storage"}).Extract()
	require.NoError(t, err)
	create := func(opts shares.CreateOpts) (*shares.Share, error) {
		opts.ShareProto, opts.Size = "NFS", 2
		return shares.Create(ctx, client, opts).Extract()
	}
	share, err := create(shares.CreateOpts{Name: "data", ShareNetworkID: network.ID, Metadata: map[string]string{"of": "test"}})
	require.NoError(t, err)
	require.Equal(t, "available", share.Status)
	require.DirExists(t, service.folder(share.ID))
	_, err = create(shares.CreateOpts{ShareType: "other"})
	require.True(t, gophercloud.ResponseCodeIs(err, http.StatusNotFound), err)
	_, err = create(shares.CreateOpts{ShareNetworkID: "other"})
	require.True(t, gophercloud.ResponseCodeIs(err, http.StatusNotFound), err)

	rule, err := shares.GrantAccess(ctx, client, share.ID, shares.GrantAccessOpts{AccessType: "ip", AccessTo: "10.1.0.1", AccessLevel: "rw"}).Extract()
	require.NoError(t, err)
	err = shares.GrantAccess(ctx, client, share.ID, shares.GrantAccessOpts{AccessType: "ip", AccessTo: "10.1.0.1", AccessLevel: "rw"}).Err
	require.True(t, gophercloud.ResponseCodeIs(err, http.StatusBadRequest), err)
	rights, err := shares.ListAccessRights(ctx, client, share.ID).Extract()
	require.NoError(t, err)
	require.Len(t, rights, 1)
	require.NoError(t, shares.RevokeAccess(ctx, client, share.ID, shares.RevokeAccessOpts{AccessID: rule.ID}).ExtractErr())
	require.True(t, gophercloud.ResponseCodeIs(shares.RevokeAccess(ctx, client, share.ID, shares.RevokeAccessOpts{AccessID: rule.ID}).Err, http.StatusNotFound))

	require.NoError(t, shares.SetMetadata(ctx, client, share.ID, shares.SetMetadataOpts{Metadata: map[string]string{"more": "yes"}}).Err)
	require.NoError(t, shares.DeleteMetadatum(ctx, client, share.ID, "of").ExtractErr())
	require.NoError(t, shares.Extend(ctx, client, share.ID, shares.ExtendOpts{NewSize: 3}).ExtractErr())
	response, err := client.Put(ctx, client.ServiceURL("quota-sets", "one"), map[string]any{"quota_set": map[string]any{"gigabytes": 4}}, nil, &gophercloud.RequestOpts{OkCodes: []int{http.StatusOK}})
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	_, err = create(shares.CreateOpts{})
	require.True(t, gophercloud.ResponseCodeIs(err, http.StatusRequestEntityTooLarge), err)
	require.ErrorContains(t, err, "ShareSizeExceedsAvailableQuota")

	// It is there after a restart, and an unknown folder is not.
	require.NoError(t, os.Mkdir(service.folder("unknown"), 0o755))
	service, client = serving(t, folder)
	require.NoDirExists(t, service.folder("unknown"))
	pages, err := shares.ListDetail(client, shares.ListOpts{Name: "data"}).AllPages(ctx)
	require.NoError(t, err)
	list, err := shares.ExtractShares(pages)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, 3, list[0].Size)
	require.Equal(t, map[string]string{"more": "yes"}, list[0].Metadata)
	exports, err := shares.ListExportLocations(ctx, client, share.ID).Extract()
	require.NoError(t, err)
	require.Equal(t, "10.88.0.1:"+service.folder(share.ID), exports[0].Path)
	require.NoError(t, shares.Delete(ctx, client, share.ID).ExtractErr())
	require.NoDirExists(t, service.folder(share.ID))
	require.True(t, gophercloud.ResponseCodeIs(shares.Get(ctx, client, share.ID).Err, http.StatusNotFound))
}
