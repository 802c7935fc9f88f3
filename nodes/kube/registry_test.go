package kube

import (
	"encoding/base64"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
	c := Cluster{Name: "demo", Authorities: &pki.Cluster{Kubernetes: authority}, Addressing: network.DefaultAddressing()}
	order := c.RegistryOrders()["registry"]
	require.Equal(t, []string{"registry.demo.internal", "burano-registry.kube-system.svc"}, order.Request.DNS)
	require.Equal(t, []netip.Addr{netip.MustParseAddr("10.96.0.11")}, order.Request.IP)
	objects := func(pair pki.Pair, users, password string) (template map[string]any, login map[string]any) {
		list, err := Objects(c.RegistryManifests(map[string]pki.Pair{"registry": pair}, RegistryLogins{User: RegistryPusher, Password: password, Users: []byte(users)}))
		require.NoError(t, err)
		var refs []Ref
		for _, one := range list {
			object := one.(*unstructured.Unstructured)
			refs = append(refs, Ref{object.GetAPIVersion(), object.GetKind(), object.GetNamespace(), object.GetName()})
			switch {
			case object.GetKind() == "Deployment":
				template, _, _ = unstructured.NestedMap(object.Object, "spec", "template")
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
}
