package workloads

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/orchestrator/task"
)

// Prometheus is io.burano.Prometheus.
type Prometheus struct {
	Runtime interface {
		Conceal(value any)
		Step(ctx context.Context, object *muranopl.Object, name string, run func(context.Context) error) error
	}
	Pods Pods
}

func (p Prometheus) Methods() map[string]muranopl.NativeMethod {
	return map[string]muranopl.NativeMethod{"obtain": p.obtain, "renounce": p.renounce}
}

// obtain lets the application read the metrics of its cluster, and returns the access: texts by name. Valid parts of the former access, which it gets,
// stay.
func (p Prometheus) obtain(ctx context.Context, call muranopl.Call) (any, error) {
	pod := call.Object.Object("host")
	if pod == nil || !pod.Class().IsEmbedded(task.ClassPod) {
		return nil, fault.New(fault.Invalid, "%s runs in a pod of the cluster that it watches: let its host be a KubernetesPod", call.Object)
	}
	api, err := p.Pods.Kubernetes(ctx, call.Interpreter, pod)
	if err != nil {
		return nil, err
	}
	live, err := p.Pods.Clusters.Live(pod.Object("kubernetesCluster"))
	if err != nil {
		return nil, err
	}
	given, _ := call.Args["former"].(map[string]any)
	former := values(func(name string) any { return given[name] })
	var found nodes.Watcher
	err = p.Runtime.Step(ctx, call.Object, "let it read the cluster's metrics", func(ctx context.Context) error {
		user := watcherName(call.Object)
		found, err = live.Watcher(ctx, user, nodes.Watcher{
			Kubernetes: pki.Pair{Certificate: []byte(former.text("kubernetesCertificate")), Key: []byte(former.text("kubernetesKey"))},
			Etcd:       pki.Pair{Certificate: []byte(former.text("etcdCertificate")), Key: []byte(former.text("etcdKey"))}})
		if err != nil {
			return err
		}
		for _, object := range watcherRights(user, call.Object.ID()) {
			if err := kube.Apply(ctx, api, kube.Manager, object); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	p.Runtime.Conceal([]any{string(found.Kubernetes.Key), string(found.Etcd.Key)})
	return map[string]any{
		"kubernetesCertificate": string(found.Kubernetes.Certificate), "kubernetesKey": string(found.Kubernetes.Key), "kubernetesAuthorities": string(found.KubernetesAuthorities),
		"etcdCertificate": string(found.Etcd.Certificate), "etcdKey": string(found.Etcd.Key), "etcdAuthorities": string(found.EtcdAuthorities),
		"masters": targets(found.Masters, kube.APIServerPort), "members": targets(found.Members, etcd.ClientPort), "gateways": targets(found.Gateways, route.MetricsPort),
	}, nil
}

// targets writes addresses with a port as Prometheus' configuration has a list of them.
func targets(addresses []netip.Addr, port int) string {
	var texts []string
	for _, address := range addresses {
		texts = append(texts, fmt.Sprintf("'%s'", netip.AddrPortFrom(address, uint16(port))))
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func watcherName(object *muranopl.Object) string { return "burano:prometheus:" + object.ID() }

// watcherRights let a user list nodes, and read the metrics of kubelets and API servers.
func watcherRights(user, id string) []runtime.Object {
	meta := metav1.ObjectMeta{Name: user, Labels: map[string]string{kube.LabelObject: id}}
	return []runtime.Object{
		&rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}, ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}},
			{APIGroups: []string{""}, Resources: []string{"nodes/metrics"}, Verbs: []string{"get"}},
			{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}},
		}},
		&rbacv1.ClusterRoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding"}, ObjectMeta: meta,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}},
	}
}

// renounce takes the application's rights away, unless its cluster goes as well.
func (p Prometheus) renounce(ctx context.Context, call muranopl.Call) (any, error) {
	was := call.Object.Object("host")
	if was == nil || was.Object("kubernetesCluster") == nil {
		return nil, nil
	}
	cluster := p.Pods.Hosting.Objects.Find(was.Object("kubernetesCluster").ID())
	if cluster == nil {
		return nil, nil
	}
	if _, err := call.Interpreter.Invoke(ctx, cluster, task.MethodDeploy, nil); err != nil {
		return nil, err
	}
	api, err := p.Pods.Clusters.Kubernetes(ctx, cluster)
	if err != nil {
		return nil, err
	}
	return nil, p.Runtime.Step(ctx, call.Object, "take its rights away", func(ctx context.Context) error {
		for _, kind := range []string{"ClusterRoleBinding", "ClusterRole"} {
			if err := kube.Delete(ctx, api, kube.Ref{APIVersion: "rbac.authorization.k8s.io/v1", Kind: kind, Name: watcherName(call.Object)}); err != nil {
				return err
			}
		}
		return nil
	})
}
