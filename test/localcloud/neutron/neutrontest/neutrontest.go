// Package neutrontest gives tests a Neutron over real namespaces of its own, which are gone when the test ends.
package neutrontest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/test/localcloud/fabric"
	"github.com/burano/burano/test/localcloud/neutron"
)

// Config is one that no other test on this machine uses at the same time: prefix and external network are of this process.
func Config(t testing.TB) neutron.Config {
	pid := os.Getpid()
	return neutron.Config{
		StateDir:     t.TempDir(),
		Prefix:       fmt.Sprintf("n%04x-", pid&0xffff),
		ExternalCIDR: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(200 + pid%20), byte(pid / 20), 0}), 24),
	}
}

// Start starts Neutron; when the test ends, everything is removed and the test fails if anything is left.
func Start(t testing.TB, config neutron.Config) *neutron.Service {
	t.Helper()
	service, err := neutron.New(config)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, service.DeleteAll(context.Background()))
		require.Empty(t, Found(t, config.Prefix))
	})
	require.NoError(t, service.Restore(context.Background()))
	return service
}

// Found lists the namespaces and the host's interfaces whose names begin with prefix.
func Found(t testing.TB, prefix string) (found []string) {
	t.Helper()
	entries, err := os.ReadDir("/run/netns")
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), prefix) {
			found = append(found, entry.Name())
		}
	}
	links, err := fabric.Dump(netlink.LinkList)
	require.NoError(t, err)
	for _, link := range links {
		if strings.HasPrefix(link.Attrs().Name, prefix) {
			found = append(found, link.Attrs().Name)
		}
	}
	return found
}

// Serve serves a handler on loopback like Keystone's middleware: the token is the name of a project, and an administrator's is "admin".
func Serve(t testing.TB, handler http.Handler) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		project := r.Header.Get("X-Auth-Token")
		if project == "" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		caller := identity.Caller{UserID: "user-of-" + project, ProjectID: project, ProjectName: project, Admin: project == "admin"}
		handler.ServeHTTP(w, r.WithContext(identity.With(r.Context(), caller)))
	}))
	t.Cleanup(server.Close)
	return server.URL
}
