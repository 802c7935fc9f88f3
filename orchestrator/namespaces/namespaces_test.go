package namespaces

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podsecurity "k8s.io/pod-security-admission/api"

	"github.com/burano/burano/internal/fault"
)

func TestANamespaceHasTheStrictestLevelThatItsPodsKeep(t *testing.T) {
	yes, no := true, false
	strict := corev1.SecurityContext{RunAsNonRoot: &yes, AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	pod := func(name string, level podsecurity.Level, security corev1.SecurityContext) Pod {
		return Pod{Name: name, Level: level, Specs: []corev1.PodSpec{{Containers: []corev1.Container{{Name: "web", SecurityContext: &security}}}}}
	}
	plain, mighty := corev1.SecurityContext{}, corev1.SecurityContext{Privileged: &yes}
	for _, c := range []struct {
		pods    []Pod
		level   podsecurity.Level
		problem string
	}{
		{[]Pod{pod("web", "", strict)}, podsecurity.LevelRestricted, ""},
		{nil, podsecurity.LevelRestricted, ""},
		{[]Pod{pod("web", "", strict), pod("api", "", plain)}, podsecurity.LevelBaseline, ""},
		{[]Pod{pod("web", "", strict), pod("agent", "", mighty)}, podsecurity.LevelPrivileged, ""},
		{[]Pod{pod("web", podsecurity.LevelBaseline, strict)}, podsecurity.LevelBaseline, ""},
		{[]Pod{pod("web", podsecurity.LevelBaseline, plain), pod("api", podsecurity.LevelRestricted, plain)}, "", "pods web and api are both in namespace shop, with the podSecurity baseline and restricted"},
		{[]Pod{pod("web", podsecurity.LevelRestricted, strict), pod("api", "", plain)}, "", "pod api breaks the level restricted of Pod Security, which pod web gives namespace shop: " +
			`allowPrivilegeEscalation != false (container "web" must set securityContext.allowPrivilegeEscalation=false)`},
	} {
		level, err := LevelOf("shop", c.pods)
		if c.problem != "" {
			require.ErrorContains(t, err, c.problem)
			require.Equal(t, fault.Invalid, fault.KindOf(err))
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.level, level)
	}
	twice := pod("web", "", mighty)
	twice.Specs = append(twice.Specs, twice.Specs...)
	broken, err := twice.Breaks(podsecurity.LevelBaseline)
	require.NoError(t, err)
	require.Len(t, broken, 1, "each rule once: %v", broken)
	found := &Found{}
	require.Equal(t, podsecurity.LevelBaseline, found.Weaken("c/shop", podsecurity.LevelBaseline))
	require.Equal(t, podsecurity.LevelBaseline, found.Weaken("c/shop", podsecurity.LevelRestricted), "a pod that was found before needs it")
	require.Equal(t, podsecurity.LevelRestricted, found.Weaken("c/other", podsecurity.LevelRestricted))
	object := Object("shop", "cluster", podsecurity.LevelBaseline)
	require.True(t, Ours(object))
	require.Equal(t, podsecurity.LevelBaseline, Enforced(object))
	require.False(t, Ours(&corev1.Namespace{}))
	require.Empty(t, Enforced(&corev1.Namespace{}))
}

// former has left; present has not.
type former struct{}

func (former) Pod(id string) bool { return id == "former" }

func (former) Marks() ([]string, string) { return []string{"pod", "bootstrap-of"}, "with-pod" }

func TestANamespaceGoesWhenOnlyTracesOfItsPodsAreLeft(t *testing.T) {
	object := func(name string, labels map[string]string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	of := func(id string) map[string]string { return map[string]string{"pod": id} }
	for _, c := range []struct {
		kind   string
		object *metav1.PartialObjectMetadata
		stays  bool
	}{
		{"configmaps", object("kube-root-ca.crt", nil), false},
		{"serviceaccounts", object("default", nil), false},
		{"configmaps", object("settings", nil), true},
		{"pods", object("web-1", of("former")), false},
		{"pods", object("web-before-1", map[string]string{"bootstrap-of": "former"}), false},
		{"pods", object("web-1", of("present")), true},
		{"persistentvolumeclaims", object("data", of("former")), true},
		{"persistentvolumeclaims", object("data", map[string]string{"pod": "former", "with-pod": "true"}), false},
	} {
		require.Equal(t, c.stays, stays(c.kind, c.object, former{}), "%s %s %v", c.kind, c.object.Name, c.object.Labels)
		c.object.DeletionTimestamp = new(metav1.Now())
		require.False(t, stays(c.kind, c.object, former{}))
	}
}
