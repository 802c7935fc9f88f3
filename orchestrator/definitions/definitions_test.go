package definitions

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/burano/burano/gateway/route"
)

func TestDefinitionsThatCannotBeAreRefused(t *testing.T) {
	spec := map[string]any{"containers": []any{}}
	named := map[string]any{"name": "web"}
	for refusal, defined := range map[string]map[string]any{
		"definition is empty":                      {},
		"kind of the definition is Service":        {"kind": "Service", "metadata": named, "spec": spec},
		"apiVersion of the definition is v2":       {"apiVersion": "v2", "metadata": named, "spec": spec},
		"the definition has no metadata":           {"spec": spec},
		"the definition has no spec":               {"metadata": named, "spec": "text"},
		"metadata.name of the definition is missi": {"metadata": map[string]any{"labels": map[string]any{}}, "spec": spec},
		"labels are texts":                         {"metadata": map[string]any{"name": "web", "labels": map[string]any{"a": int64(1)}}, "spec": spec},
		"definition.spec.hosts[0] is":              {"metadata": named, "spec": map[string]any{"hosts": []any{struct{}{}}}},
	} {
		_, err := read(kindPod, defined)
		require.ErrorContains(t, err, refusal)
	}
	object, err := read(kindPod, map[string]any{"metadata": named, "spec": map[string]any{"hostname": nil, "containers": []any{map[string]any{"name": "a"}}}, "status": "x"})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "web", "namespace": "default"},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "a"}}}}, object.Object, "a key without a value is left out")
	require.Equal(t, map[string]any{"name": "web"}, named, "the caller's map stays")
}

func TestLabelsAreAMapOrAText(t *testing.T) {
	for _, value := range []any{"app=web,tier=front", map[string]any{"app": "web", "tier": "front"}} {
		set, err := labelsIn(value)
		require.NoError(t, err)
		require.Equal(t, labels.Set{"app": "web", "tier": "front"}, set)
	}
	for refusal, value := range map[string]any{"would be all pods": "", "labels are empty": map[string]any{}, "write key=value": "app", "labels are texts": map[string]any{"a": int64(1)},
		"give a map": int64(1), "labels:": map[string]any{"a": "not a value"}} {
		_, err := labelsIn(value)
		require.ErrorContains(t, err, refusal)
	}
}

func TestPodsAreCalledLikeTheirControllers(t *testing.T) {
	controlled := func(kind, owner, hash string) corev1.Pod {
		yes := true
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: owner + "-x", Labels: map[string]string{"pod-template-hash": hash},
			OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: owner, Controller: &yes}}}}
	}
	require.True(t, called(corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, "web"))
	require.True(t, called(controlled("ReplicationController", "web", ""), "web"))
	require.True(t, called(controlled("ReplicaSet", "web-7f", "7f"), "web"), "of a Deployment")
	require.False(t, called(controlled("ReplicaSet", "web-db-7f", "7f"), "web"), "the name of another one begins so")
	require.False(t, called(controlled("ReplicationController", "web-db", ""), "web"))
}

func TestPortsThatAreTakenGetFreeOnes(t *testing.T) {
	of := service{application: "Web Shop", pod: "shop"}
	other := corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80, Protocol: "TCP"}, {Port: 1025, Protocol: "TCP"}}}}
	ports := []port{{number: 80, wanted: 80, protocol: "TCP", scope: "public"}, {number: 22, wanted: 22, protocol: "TCP", scope: "cloud"}, {number: 80, wanted: 80, protocol: "UDP", scope: "public"},
		{number: 81, wanted: 80, protocol: "TCP", scope: "internal"}, {number: 8080, wanted: 8080, protocol: "TCP", scope: "public"}}
	require.NoError(t, give(ports, of, []corev1.Service{other}))
	given := func() (list []int64) {
		for _, one := range ports {
			list = append(list, one.given)
		}
		return list
	}
	require.Equal(t, []int64{1026, 1027, 80, 80, 8080}, given(), "the node's own port and another Service's are not free")
	former := corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: of.name(ports[0]), Labels: map[string]string{labelServiceOf: of.label()}},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1030, TargetPort: intstr.FromInt32(80), Protocol: "TCP"}}}}
	require.NoError(t, give(ports, of, []corev1.Service{former}))
	require.EqualValues(t, 1030, ports[0].given, "a Service keeps its port, also when another one is free again")
	for _, one := range append(ports, port{number: 65535, protocol: "UDP"}) {
		for _, application := range []string{"Web Shop", "9to5", "", "a-very-long-name-of-an-application-that-nobody-would-ever-write-by-hand"} {
			name := service{application, "shop"}.name(one)
			require.Empty(t, validation.IsDNS1035Label(name), name)
		}
	}
}

func TestEndpointsOfAClusterAreItsRoutes(t *testing.T) {
	routes := []route.Route{
		{Namespace: "default", Service: "web-8080-abc", GatewayPort: 8080, Protocol: "TCP", Backends: []route.Backend{{Port: 80}}},
		{Namespace: "default", Service: "pod-hello", GatewayPort: 80, Protocol: "TCP"},
		{Namespace: "other", Service: "plain", GatewayPort: 90, Protocol: "TCP"},
	}
	services := map[[2]string]corev1.Service{{"default", "web-8080-abc"}: {}, {"default", "pod-hello"}: {ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"burano.io/pod": "p", "burano.io/container": "hello"}}}}
	former := []any{
		map[string]any{"serviceName": "web-8080-abc", "scope": "internal", "portScope": "cloud", "applicationName": "Web", "podId": "web", "address": "inside"},
		map[string]any{"serviceName": "web-8080-abc", "scope": "cloud", "portScope": "cloud", "applicationName": "Web", "podId": "web", "address": "a former gateway"},
		map[string]any{"serviceName": "gone", "scope": "internal", "applicationName": "Gone", "podId": "gone", "address": "inside"},
	}
	var found []string
	for _, one := range published(former, routes, services, []string{"10.0.0.1", "10.0.0.2"}) {
		fields := one.(map[string]any)
		found = append(found, fmt.Sprintf("%v:%v %v of %v is %v for %v", fields["address"], fields["port"], fields["scope"], fields["podId"], fields["applicationName"], fields["containerPort"]))
	}
	require.Equal(t, []string{"inside:<nil> internal of web is Web for <nil>", "10.0.0.1:8080 cloud of web is Web for 80", "10.0.0.2:8080 cloud of web is Web for 80",
		"10.0.0.1:80 public of p is hello for 80", "10.0.0.2:80 public of p is hello for 80", "10.0.0.1:90 public of  is plain for 90", "10.0.0.2:90 public of  is plain for 90"}, found)
}
