package kube

import (
	"encoding/base64"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/burano/burano/nodes/network"
	"github.com/burano/burano/nodes/pki"
)

func TestNodesFindTheClustersOwnRegistryByItsAddressAndMayLogIn(t *testing.T) {
	others, err := ParseRegistries(RegistrySettings{Mirrors: "https://mirror.example.org", GoogleKey: `{"a": 1}`})
	require.NoError(t, err)
	both := others.With("My Cluster", netip.MustParseAddr("10.96.0.11"), RegistryPuller, "secret")
	folder, files := both.runtime()
	require.Len(t, files, 2)
	require.Equal(t, folder+"/registry.my-cluster.internal/hosts.toml", files[1].Path)
	require.Equal(t, `
[host."https://10.96.0.11:443"]
  capabilities = ["pull", "resolve"]
  ca = "/etc/burano/pki/kubernetes-ca.crt"
`, string(files[1].Content))
	require.Equal(t, loginOf("node", "secret"), both.logins["registry.my-cluster.internal"])
	require.Contains(t, both.logins, "gcr.io")
	require.NotContains(t, others.logins, "registry.my-cluster.internal", "those of a cluster without one stay as they are")
}

func TestTheRegistryBeginsAnewForWhatItReadsAndForNothingElse(t *testing.T) {
	authority, _, err := pki.NewAuthority("kubernetes", time.Now())
	require.NoError(t, err)
	registry := Registry{Size: resource.MustParse("20Gi"), CollectAt: "03:00"}
	c := Cluster{Name: "demo", Authorities: &pki.Cluster{Kubernetes: authority}, Addressing: network.DefaultAddressing()}
	order := c.RegistryOrders()["registry"]
	require.Equal(t, []string{"registry.demo.internal", "burano-registry.kube-system.svc"}, order.Request.DNS)
	require.Equal(t, []netip.Addr{netip.MustParseAddr("10.96.0.11")}, order.Request.IP)
	upstream, options := "", ""
	objects := func(pair pki.Pair, users, password string) (template map[string]any, login map[string]any) {
		manifests, err := c.RegistryManifests(registry, map[string]pki.Pair{"registry": pair}, RegistryLogins{User: RegistryPusher, Password: password, Users: []byte(users)}, upstream)
		require.NoError(t, err)
		list, err := Objects(manifests)
		require.NoError(t, err)
		var refs []Ref
		for _, one := range list {
			object, err := plain(one)
			require.NoError(t, err)
			refs = append(refs, Ref{object.GetAPIVersion(), object.GetKind(), object.GetNamespace(), object.GetName()})
			switch {
			case object.GetKind() == "Deployment":
				template, _, _ = unstructured.NestedMap(object.Object, "spec", "template")
			case object.GetKind() == "Secret" && object.GetName() == RegistryObject:
				text, _, _ := unstructured.NestedString(object.Object, "data", "burano.json")
				decoded, err := base64.StdEncoding.DecodeString(text)
				require.NoError(t, err)
				options = string(decoded)
			case object.GetName() == RegistryLogin:
				login, _, _ = unstructured.NestedMap(object.Object, "data")
			}
		}
		require.ElementsMatch(t, RegistryObjects(), refs, "what is made is removed")
		return template, login
	}
	pair := pki.Pair{Certificate: []byte("certificate"), Key: []byte("key")}
	template, login := objects(pair, "users", "password")
	same, other := objects(pair, "users", "another")
	require.Equal(t, template, same)
	require.Equal(t, base64.StdEncoding.EncodeToString([]byte("another")), other["password"])
	require.Equal(t, base64.StdEncoding.EncodeToString(authority.Trusted()), login["ca.crt"])
	for _, changed := range []pki.Pair{{Certificate: []byte("other"), Key: pair.Key}, {Certificate: pair.Certificate, Key: []byte("other")}} {
		renewed, _ := objects(changed, "users", "password")
		require.NotEqual(t, template, renewed)
	}
	renewed, _ := objects(pair, "others", "password")
	require.NotEqual(t, template, renewed)
	require.JSONEq(t, `{"collectAt": "03:00", "archives": "/opt/burano/images"}`, options)
	registry.UntaggedDays, registry.CollectAt, upstream = 30, "", "https://mirror.example.org"
	renewed, _ = objects(pair, "users", "password")
	require.NotEqual(t, template, renewed)
	require.JSONEq(t, `{"untaggedDays": 30, "archives": "/opt/burano/images",
		"mirror": {"of": "https://mirror.example.org", "address": ":5001", "folder": "/var/lib/registry/mirror", "bytes": 10737418240}}`, options)
}

func TestNodesAskTheClustersOwnRegistryForImagesOfDockerHubAndOthersWhenItDoesNotAnswer(t *testing.T) {
	for _, one := range []struct{ mirrors, upstream, below string }{
		{"", "https://registry-1.docker.io", ""},
		{"http://192.0.2.1:5000, https://other.example.org", "http://192.0.2.1:5000", ""},
		{"https://harbor.example.org/v2/hub", "https://harbor.example.org", "/v2/hub"},
		{"https://one.example.org/docker, https://two.example.org/", "https://two.example.org", ""},
		{"https://one.example.org/docker", "", ""},
	} {
		r, err := ParseRegistries(RegistrySettings{Mirrors: one.mirrors})
		require.NoError(t, err)
		upstream, below := r.Upstream(Proxy{})
		require.Equal(t, []string{one.upstream, one.below}, []string{upstream, below}, one.mirrors)
	}
	proxy, err := ParseProxy(ProxySettings{HTTPS: "http://proxy.example.org:3128"})
	require.NoError(t, err)
	upstream, _ := Registries{}.Upstream(proxy)
	require.Empty(t, upstream, "pods know no proxy")

	r, err := ParseRegistries(RegistrySettings{Mirrors: "https://harbor.example.org/v2/hub"})
	require.NoError(t, err)
	_, files := r.Through(netip.MustParseAddr("10.96.0.11"), "/v2/hub").runtime()
	require.Len(t, files, 1)
	require.Equal(t, `server = "https://registry-1.docker.io"

[host."https://10.96.0.11:5001/v2/hub"]
  capabilities = ["pull", "resolve"]
  ca = "/etc/burano/pki/kubernetes-ca.crt"
  dial_timeout = "2s"
  override_path = true

[host."https://harbor.example.org/v2/hub"]
  capabilities = ["pull", "resolve"]
  override_path = true
`, string(files[0].Content))
	_, files = Registries{}.Through(netip.MustParseAddr("10.96.0.11"), "").runtime()
	require.Equal(t, `server = "https://registry-1.docker.io"

[host."https://10.96.0.11:5001"]
  capabilities = ["pull", "resolve"]
  ca = "/etc/burano/pki/kubernetes-ca.crt"
  dial_timeout = "2s"
`, string(files[0].Content))
}
