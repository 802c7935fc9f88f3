package kube

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http/httpproxy"

	"github.com/burano/burano/nodes/network"
)

func TestProxiesAreReadAsTheyAreMeant(t *testing.T) {
	for _, one := range []struct {
		settings ProxySettings
		told     string // "" for none
	}{
		{ProxySettings{}, ""},
		{ProxySettings{HTTP: "http://proxy.example.org:3128", HTTPS: "http://user:p%40ss@192.0.2.7:3128/", No: "registry.example.org:5000, .example.net *.example.com 192.0.2.0/24,::1"}, ""},
		{ProxySettings{HTTP: "proxy.example.org:3128"}, `httpProxy is "proxy.example.org:3128": give the URL of a proxy`},
		{ProxySettings{HTTPS: "socks5://proxy.example.org"}, "httpsProxy is"},
		{ProxySettings{HTTPS: "http://"}, "httpsProxy is"},
		{ProxySettings{HTTP: "http://user:it's \"me\"@proxy.example.org"}, "special characters of a user and password as %XX"},
		{ProxySettings{HTTP: "user:\"me\"@proxy.example.org:3128"}, `httpProxy is "…@proxy.example.org:3128"`},
		{ProxySettings{HTTP: "http://proxy.example.org/\nHTTPS_PROXY=http://other"}, "httpProxy is"},
		{ProxySettings{HTTP: "http://proxy.example.org", No: "http://registry.example.org"}, `noProxy has "http://registry.example.org": give hosts`},
		{ProxySettings{No: "registry.example.org"}, "noProxy says what is reached without a proxy, and there is none"},
	} {
		_, err := ParseProxy(one.settings)
		if one.told == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, one.told)
		require.NotContains(t, err.Error(), `me\"@`, "a password is not repeated")
	}
}

// The test reads a minion's file as programs in Go do.
func TestWhatIsOfTheClusterIsReachedWithoutItsProxy(t *testing.T) {
	proxy, err := ParseProxy(ProxySettings{HTTP: "http://plain.example.org:3128", HTTPS: "http://user:p%40ss@secure.example.org:3128", No: "registry.example.org, .example.net"})
	require.NoError(t, err)
	cluster := Cluster{Name: "My Cluster", Proxy: proxy, NodeNetwork: netip.MustParsePrefix("10.20.3.0/24"), Addressing: network.Addressing{
		Pods: netip.MustParsePrefix("172.20.0.0/18"), Services: netip.MustParsePrefix("172.21.4.0/22"), Domain: "k8s.example.org"}}
	variables := map[string]string{}
	for line := range strings.Lines(string(cluster.proxyEnvironment())) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		variables[name] = value
	}
	ask := (&httpproxy.Config{HTTPProxy: variables["HTTP_PROXY"], HTTPSProxy: variables["HTTPS_PROXY"], NoProxy: variables["NO_PROXY"]}).ProxyFunc()
	for asked, through := range map[string]string{
		"https://registry-1.docker.io/v2/": "secure.example.org:3128", "http://images.example.com/": "plain.example.org:3128", "https://192.0.2.1/": "secure.example.org:3128",
		"https://api.my-cluster.internal:6443/api": "", "https://172.21.4.1/": "", "http://172.20.63.1:8080/": "", "http://10.20.3.4:5000/v2/": "", "http://169.254.169.254/": "",
		"http://web.default.svc.k8s.example.org/": "", "http://web.default.svc/": "", "http://127.0.0.1:10248/healthz": "", "http://localhost/": "",
		"https://registry.example.org/v2/": "", "https://a.example.net/": "", "https://172.20.64.1/": "secure.example.org:3128",
	} {
		target, err := url.Parse(asked)
		require.NoError(t, err)
		found, err := ask(target)
		require.NoError(t, err)
		host := ""
		if found != nil {
			host = found.Host
		}
		require.Equal(t, through, host, asked)
	}
}

func TestMastersAreTheWayToRegistriesOrAProxyIs(t *testing.T) {
	p, err := ParseProxy(ProxySettings{Masters: "registry.example.org:5000, .example.org 192.0.2.7", No: "own.example.org"})
	require.NoError(t, err)
	require.True(t, p.ThroughMasters())
	require.True(t, p.exists())
	require.Equal(t, []string{"registry.example.org:5000", ".example.org", "192.0.2.7"}, p.masters)
	for settings, told := range map[ProxySettings]string{
		{Masters: "https://registry.example.org"}: `registriesThroughMasters has "https://registry.example.org": give hosts and domains`,
		{Masters: "registry.example.org/team"}:    `registriesThroughMasters has "registry.example.org/team"`,
		{Masters: "*"}:                            `registriesThroughMasters has "*"`,
		{Masters: "registry.example.org", HTTPS: "http://proxy.example.org:3128"}: "through masters (registriesThroughMasters) or through a proxy (httpProxy, httpsProxy): leave one of them out",
	} {
		_, err := ParseProxy(settings)
		require.ErrorContains(t, err, told)
	}
}
