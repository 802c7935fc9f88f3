package workloads

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	podsecurity "k8s.io/pod-security-admission/api"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes/kube"
)

// hardened is a container that keeps the level restricted when its hardening counts.
func hardened() container {
	yes, no := true, false
	return container{application: "a", name: "web", image: "registry.local/web:1", options: containerOptions{hardening: &corev1.SecurityContext{RunAsNonRoot: &yes, AllowPrivilegeEscalation: &no,
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}}}
}

func TestAllObjectsOfAPodAreInItsNamespace(t *testing.T) {
	one, err := containerIn(t, wholeContainer)
	require.NoError(t, err)
	one.options.files = []containerFile{{path: "/etc/web.conf", text: "text"}}
	one.options.bootstraps = map[phase]*bootstrap{beforeRoll: {Commands: []string{"migrate"}}, afterRoll: {Commands: []string{"check"}}}
	for _, kind := range []workloadKind{kindDeployment, kindStatefulSet, kindDaemonSet, kindJob, kindCronJob} {
		spec := wholePod()
		spec.namespace, spec.options.kind = "shop", kind
		for _, object := range spec.objects([]container{one}) {
			accessor, err := meta.Accessor(object)
			require.NoError(t, err)
			require.Equal(t, "shop", accessor.GetNamespace(), "%T %s", object, accessor.GetName())
		}
	}
	spec := podSpec{id: "p", name: "web", namespace: "shop", replicas: 1, options: podOptions{kind: kindDeployment}}
	public := container{name: "pages", image: "web:1", ports: []port{{number: 80, published: 80, protocol: "TCP", scope: "public"}, {number: 81, published: 81, protocol: "TCP", scope: "internal"}}}
	require.Equal(t, map[string]string{kube.AnnotationPublish: "true", annotationInternalPorts: "tcp-81"}, spec.service(public).Annotations, "gateways publish on request only")
	require.Equal(t, "web-pages.shop.svc.cluster.local", serviceAddress(spec, "cluster.local", "pages"))
	public.ports = public.ports[1:]
	require.NotContains(t, spec.service(public).Annotations, kube.AnnotationPublish)
	spec.namespace = ""
	require.NotContains(t, spec.service(public).Annotations, kube.AnnotationPublish, "in default nothing is said: all are published")
}

func TestAPodDoesNotMoveToAnotherNamespace(t *testing.T) {
	mine := metav1.ObjectMeta{Name: "web", Namespace: "default", Labels: map[string]string{LabelPod: "p"}}
	spec := podSpec{id: "p", name: "web", namespace: "shop"}
	check := func(client *fake.Clientset) error {
		there, err := spec.workloads(t.Context(), client)
		require.NoError(t, err)
		return checkPlace(t.Context(), client, spec, there)
	}
	require.NoError(t, check(fake.NewClientset()))
	err := check(fake.NewClientset(&corev1.PersistentVolumeClaim{ObjectMeta: mine}))
	require.ErrorContains(t, err, "pod web is in namespace default and cannot move to shop")
	require.Equal(t, fault.Conflict, fault.KindOf(err))
	there := mine
	there.Namespace = "shop"
	require.NoError(t, check(fake.NewClientset(&appsv1.Deployment{ObjectMeta: there})))
	for name, problem := range map[string]string{"shop": "", "": "", "Shop": "write small letters", "kube-system": "are those of Kubernetes itself"} {
		err := checkNamespace(name, podOptions{})
		if problem == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, problem)
		}
	}
	require.ErrorContains(t, checkNamespace("", podOptions{level: podsecurity.LevelBaseline}), "podSecurity is for a namespace of its own")
}

func TestHardeningIsBeneathWhatAPodHasItself(t *testing.T) {
	spec := podSpec{id: "p", name: "web", replicas: 1, options: podOptions{kind: kindDeployment}}
	one := hardened()
	security := func() *corev1.SecurityContext {
		return spec.template([]container{one}).Spec.Containers[0].SecurityContext
	}
	require.Equal(t, one.options.hardening, security())
	may, user := true, int64(0)
	one.options.security = &corev1.SecurityContext{AllowPrivilegeEscalation: &may, Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_ADMIN"}}}
	require.True(t, *security().AllowPrivilegeEscalation)
	require.Equal(t, []corev1.Capability{"NET_ADMIN"}, security().Capabilities.Add)
	require.NotNil(t, security().SeccompProfile)
	spec.options.security = &corev1.PodSecurityContext{RunAsUser: &user}
	require.Nil(t, security().RunAsNonRoot, "the pod's own user counts")
	require.Nil(t, one.options.hardening.RunAsUser, "nothing is changed")

	plain := hardened()
	plain.options.hardening = nil
	require.Equal(t, plain.digest(), hardened().digest(), "no hook of an application is called for it")
	job := func(spec podSpec, one container) *batchv1.Job {
		one.options.bootstraps = map[phase]*bootstrap{beforeRoll: {Commands: []string{"migrate"}}}
		return spec.bootstrapJobs([]container{one}, beforeRoll)[0]
	}
	fresh := podSpec{id: "p", name: "web", replicas: 1}
	require.Equal(t, job(fresh, plain).Annotations, job(fresh, hardened()).Annotations, "no bootstrap runs again for it")
	require.NotNil(t, job(fresh, hardened()).Spec.Template.Spec.Containers[0].SecurityContext)
	fresh.soft = true
	require.Equal(t, job(fresh, plain).Spec, job(fresh, hardened()).Spec)
	require.Equal(t, fresh.template([]container{plain}), fresh.template([]container{hardened()}), "pods that run without it stay as they are")
}

func TestPodSecurityLooksAtPodsAndTheirBootstraps(t *testing.T) {
	one := hardened()
	one.options.bootstraps = map[phase]*bootstrap{afterRoll: {Commands: []string{"check"}}}
	secured := securedPod(podSpec{id: "p", name: "web", replicas: 1, options: podOptions{kind: kindDeployment, level: podsecurity.LevelBaseline}}, []container{one})
	require.Len(t, secured.Specs, 2)
	require.Equal(t, podsecurity.LevelBaseline, secured.Level)
	broken, err := secured.Breaks(podsecurity.LevelRestricted)
	require.NoError(t, err)
	require.Empty(t, broken, "both have the hardening")
}
