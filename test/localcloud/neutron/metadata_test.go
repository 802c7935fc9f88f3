package neutron_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/routers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/test/localcloud/neutron"
	"github.com/burano/burano/test/localcloud/neutron/neutrontest"
)

// asks reads the metadata address as a server does, from one of its addresses, "" for its own.
func asks(t *testing.T, namespace, local string) (answer string, err error) {
	t.Helper()
	return answer, within(t, namespace, func() error {
		dialer := net.Dialer{Timeout: 10 * time.Second}
		if local != "" {
			dialer.LocalAddr = &net.TCPAddr{IP: netip.MustParseAddr(local).AsSlice()}
		}
		// The namespace is this thread's: the connection is made here, not by the client's own goroutine.
		connection, err := dialer.Dial("tcp4", "169.254.169.254:80")
		if err != nil {
			return err
		}
		defer connection.Close()
		if _, err := io.WriteString(connection, "GET /who HTTP/1.0\r\nHost: 169.254.169.254\r\n\r\n"); err != nil {
			return err
		}
		text, err := io.ReadAll(connection)
		answer = string(text)
		return err
	})
}

func TestAServerIsKnownAtTheMetadataAddressByItsNetworkAndItsOwnAddress(t *testing.T) {
	config := neutrontest.Config(t)
	tell := func(serverID string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprintf(w, "%s %s", serverID, r.URL.Path) })
	}
	service, err := neutron.New(config)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, service.DeleteAll(context.Background()))
		require.Empty(t, neutrontest.Found(t, config.Prefix))
	})
	service.ServeMetadata(tell)
	require.NoError(t, service.Restore(t.Context()))
	url := neutrontest.Serve(t, service.Handler())
	c := cloud{service, config, clientOf(url, "demo"), clientOf(url, "other"), clientOf(url, "admin")}

	var places []site
	for i, client := range []*gophercloud.ServiceClient{c.demo, c.other} { // the same addresses in two projects
		place := c.site(t, client, "10.10.0.0/24")
		places = append(places, place)
		port, err := ports.Create(t.Context(), client, ports.CreateOpts{NetworkID: place.network, AllowedAddressPairs: []ports.AddressPair{{IPAddress: "10.10.0.200"}}}).Extract()
		require.NoError(t, err)
		id := fmt.Sprintf("7777777%d", i)
		c.boot(t, id, port.ID)
		namespace, err := service.CreateServerNamespace(t.Context(), id)
		require.NoError(t, err)
		answer, err := asks(t, namespace, "")
		require.NoError(t, err)
		require.Contains(t, answer, "200 OK")
		require.Contains(t, answer, id+" /who")

		alsoUses(t, namespace, "10.10.0.200")
		answer, err = asks(t, namespace, "10.10.0.200")
		require.NoError(t, err)
		require.Contains(t, answer, "404 Not Found", "an address pair is not the server's own address")
	}

	// The process begins again.
	require.NoError(t, service.Close())
	namespace, err := service.CreateServerNamespace(t.Context(), "77777770")
	require.NoError(t, err)
	_, err = asks(t, namespace, "")
	require.Error(t, err)
	require.NoError(t, service.Restore(t.Context()))
	answer, err := asks(t, namespace, "")
	require.NoError(t, err)
	require.Contains(t, answer, "77777770 /who")

	_, err = routers.RemoveInterface(t.Context(), c.demo, places[0].router, routers.RemoveInterfaceOpts{SubnetID: places[0].subnet}).Extract()
	require.NoError(t, err)
	require.NoError(t, routers.Delete(t.Context(), c.demo, places[0].router).ExtractErr())
	_, err = asks(t, namespace, "")
	require.Error(t, err, "a network without a router has no metadata")
}
