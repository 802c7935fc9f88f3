package openstack

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/fault"
)

func TestAPathOfTheCloudWithADotSegmentIsNotAskedFor(t *testing.T) {
	for _, address := range []string{"http://c/v3/volumes/../servers/1", "http://c/v3/volumes/..%2fservers%2f1", "http://c/v3/volumes/%2e%2e/1", "http://c/v3/volumes/..", "http://c/v3/./1",
		"http://c/v3/volumes/..\\servers", "http://c/v3/volumes/1#x", "http://c/v3/volumes/a%0d%0ab", "http://c/v3/volumes/a%00"} {
		parsed, err := url.Parse(address)
		require.NoError(t, err)
		require.False(t, sound(parsed), address)
	}
	for _, address := range []string{"http://c/v3/volumes/6f1c", "http://c/AUTH_1/burano/6f1c%2F000001", "http://c/v2/os-keypairs/my%20key%3F", "http://c/v2/images/a%2Fb", "http://c/v3/flavors/m1..large",
		"http://c/v1/stacks/n/1?show_nested=True"} {
		parsed, err := url.Parse(address)
		require.NoError(t, err)
		require.True(t, sound(parsed), address)
	}

	sent := newService(answers(http.StatusOK))
	client := &http.Client{Transport: retryTransport{next: soundTransport{sent}, named: func(*url.URL) string { return "volumev3" }}}
	_, err := client.Get("http://c/v3/volumes/..%2fservers")
	require.ErrorContains(t, err, "is not one of its API")
	require.Empty(t, sent.sent, "and it is not tried again")
}

// The controllers of a cluster's volumes send the id of the volume.
func TestWhatIsNoIDOfAVolumeOrShareIsNotAskedFor(t *testing.T) {
	sent := newService(answers(http.StatusOK))
	client := &gophercloud.ServiceClient{ProviderClient: &gophercloud.ProviderClient{HTTPClient: http.Client{Transport: sent}}, Endpoint: "http://c/v3/"}
	storage, shares, project := &BlockStorage{client, client}, &SharedFileSystems{manila: client}, &Project{Nova: Nova{client}, Neutron: Neutron{client}}
	ctx := t.Context()
	for _, id := range []string{"", ".", "..", "../servers/1", "..%2fservers", "1/action", "1?force=true", "1#", "a b", "ä"} {
		_, volume := storage.Volume(ctx, id)
		_, snapshot := storage.Snapshot(ctx, id)
		_, backup := storage.Backup(ctx, id)
		_, share := shares.Share(ctx, id)
		_, export := shares.Export(ctx, id)
		_, allowed := shares.Allowed(ctx, id)
		_, console := project.Console(ctx, id, 10)
		_, network := project.ExternalNetworkOfNetwork(ctx, id)
		_, router := project.ExternalNetworkOf(ctx, id)
		for _, err := range []error{volume, snapshot, backup, share, export, allowed, console, network, router, storage.Delete(ctx, id), storage.Attach(ctx, id, "1"), storage.Attach(ctx, "1", id),
			storage.Detach(ctx, id, "1"), storage.Grow(ctx, Volume{ID: id}, 1), storage.DeleteSnapshot(ctx, id), storage.DeleteBackup(ctx, id), shares.Delete(ctx, id), shares.Grow(ctx, id, 1),
			shares.Allow(ctx, id, "10.0.0.1"), shares.Deny(ctx, id, "1"), shares.Note(ctx, id, nil), shares.Forget(ctx, id, "k"), project.RebootServer(ctx, id, false)} {
			require.Equal(t, fault.NotFound, fault.KindOf(err), "%q: %v", id, err)
		}
		state, err := project.Server(ctx, id)
		require.NoError(t, err)
		require.Equal(t, Gone, state.Status)
	}
	require.Empty(t, sent.sent)
}
