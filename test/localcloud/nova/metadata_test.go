package nova_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/keypairs"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/stretchr/testify/require"
)

func TestAServerIsToldWhatItsConfigDriveTells(t *testing.T) {
	c := start(t)
	demo := c.as("demo")
	_, err := keypairs.Create(t.Context(), demo, keypairs.CreateOpts{Name: "key", PublicKey: publicKey}).Extract()
	require.NoError(t, err)
	made, err := servers.Create(t.Context(), demo, keypairs.CreateOptsExt{KeyName: "key", CreateOptsBuilder: servers.CreateOpts{
		Name: "told", FlavorRef: "2", ImageRef: "image-1", UserData: []byte("#!/bin/sh\n"), Networks: []servers.Network{{UUID: c.network.ID}},
	}}, nil).Extract()
	require.NoError(t, err)
	c.wait(made.ID, "ACTIVE")
	service := httptest.NewServer(c.Metadata(made.ID))
	defer service.Close()
	read := func(path string) (int, string) {
		response, err := http.Get(service.URL + path)
		require.NoError(t, err)
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(body)
	}
	drive := c.machines.started1(made.ID).ConfigDrive
	require.Len(t, drive, 4)
	for path, content := range drive {
		status, body := read("/" + path)
		require.Equal(t, 200, status, path)
		require.Equal(t, string(content), body, path)
		_, body = read("/" + strings.Replace(path, "latest", "2015-10-15", 1))
		require.Equal(t, string(content), body, path)
	}
	address := c.networks.ServerAddresses(made.ID)[0].IP.String()
	for path, want := range map[string]string{
		"/":                                "2009-04-04\nlatest\nopenstack",
		"/openstack":                       "2015-10-15\nlatest",
		"/openstack/latest/":               "meta_data.json\nnetwork_data.json\nuser_data\nvendor_data.json",
		"/latest":                          "meta-data/\nuser-data",
		"/latest/user-data":                "#!/bin/sh\n",
		"/latest/meta-data/":               "hostname\ninstance-id\ninstance-type\nlocal-hostname\nlocal-ipv4\nplacement/\npublic-hostname\npublic-keys/\nsecurity-groups",
		"/latest/meta-data/hostname":       "told",
		"/latest/meta-data/local-ipv4":     address,
		"/latest/meta-data/instance-id":    "i-" + made.ID[:8],
		"/latest/meta-data/public-keys/":   "0=key",
		"/latest/meta-data/public-keys/0/": "openssh-key",
		"/2009-04-04/meta-data/public-keys/0/openssh-key": publicKey,
	} {
		status, body := read(path)
		require.Equal(t, 200, status, path)
		require.Equal(t, want, body, path)
	}
	var meta struct{ UUID string }
	_, body := read("/openstack/latest/meta_data.json")
	require.NoError(t, json.Unmarshal([]byte(body), &meta))
	require.Equal(t, made.ID, meta.UUID)
	for _, path := range []string{"/openstack/1999-01-01/meta_data.json", "/latest/meta-data/public-ipv4", "/openstack/latest/password", "/nothing"} {
		status, _ := read(path)
		require.Equal(t, 404, status, path)
	}
	response, err := http.Post(service.URL+"/openstack/latest/password", "text/plain", strings.NewReader("x"))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, 405, response.StatusCode)
}
