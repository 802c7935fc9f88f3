package publish_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// infrastructureIsPropagated has a real API server, and a publisher with its rights.
func infrastructureIsPropagated(t *testing.T, admin kubernetes.Interface, create func(path, text string), condition func(is string) func() bool, eventually func(what string, is func() bool)) {
	t.Helper()
	services := admin.CoreV1().Services("default")
	foreign := newService("marked-burano", 7000)
	_, err := services.Create(t.Context(), foreign, meta.CreateOptions{})
	require.NoError(t, err)
	create("namespaces/default/gateways", `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: marked, namespace: default}
spec:
  gatewayClassName: burano
  infrastructure: {labels: {team: shop, zone: a}, annotations: {external-dns.alpha.kubernetes.io/hostname: shop.example.org}}
  listeners: [{name: plain, port: 8088, protocol: HTTP, hostname: marked.org}, {name: more, port: 8088, protocol: HTTP, hostname: more.org}, {name: names, port: 53, protocol: UDP}]
`)
	eventually("a Service of another owner stays", condition("burano.io/Infrastructure=False/NotPossible"))
	has, err := services.Get(t.Context(), foreign.Name, meta.GetOptions{})
	require.NoError(t, err)
	require.Empty(t, has.OwnerReferences)
	require.NoError(t, services.Delete(t.Context(), foreign.Name, meta.DeleteOptions{}))
	eventually("the labels are propagated", condition("burano.io/Infrastructure=True/Propagated"))
	service := func(is func(s *core.Service) bool) func() bool {
		return func() bool {
			s, err := services.Get(t.Context(), "marked-burano", meta.GetOptions{})
			return err == nil && is(s)
		}
	}
	eventually("a Service has them, and the addresses", service(func(s *core.Service) bool {
		return s.Labels["team"] == "shop" && s.Labels["zone"] == "a" && s.Labels["gateway.networking.k8s.io/gateway-name"] == "marked" &&
			s.Annotations["external-dns.alpha.kubernetes.io/hostname"] == "shop.example.org" && len(s.OwnerReferences) == 1 &&
			len(s.Spec.Ports) == 2 && s.Spec.Ports[0].Name == "udp-53" && s.Spec.Ports[1].Name == "tcp-8088" && s.Spec.Ports[1].NodePort == 0 &&
			len(s.Status.LoadBalancer.Ingress) == 1 && s.Status.LoadBalancer.Ingress[0].IP == "203.0.113.1"
	}))
	patch := func(name, text string) {
		t.Helper()
		path := "/apis/gateway.networking.k8s.io/v1/namespaces/default/gateways/" + name
		require.NoError(t, admin.CoreV1().RESTClient().Patch(types.MergePatchType).AbsPath(path).Body([]byte(text)).Do(t.Context()).Error())
	}
	_, err = services.Patch(t.Context(), "marked-burano", types.MergePatchType, []byte(`{"metadata":{"labels":{"own":"1","team":"wrong"}}}`), meta.PatchOptions{})
	require.NoError(t, err)
	patch("marked", `{"spec":{"infrastructure":{"labels":{"zone":null}},"listeners":[{"name":"plain","port":8088,"protocol":"HTTP","hostname":"marked.org"}]}}`)
	eventually("it follows the Gateway, and has the labels of others", service(func(s *core.Service) bool {
		_, zone := s.Labels["zone"]
		return s.Labels["team"] == "shop" && s.Labels["own"] == "1" && !zone && len(s.Spec.Ports) == 1
	}))
	patch("marked", `{"spec":{"infrastructure":null}}`)
	eventually("it goes with them", func() bool {
		_, err := services.Get(t.Context(), "marked-burano", meta.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	eventually("and so does the condition", func() bool {
		return !condition("burano.io/Infrastructure=True/Propagated")() && !condition("burano.io/Infrastructure=False/NotPossible")()
	})
	require.NoError(t, admin.CoreV1().RESTClient().Delete().AbsPath("/apis/gateway.networking.k8s.io/v1/namespaces/default/gateways/marked").Do(t.Context()).Error())
}
