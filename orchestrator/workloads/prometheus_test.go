package workloads

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestTargetsArePrometheusOwnLists(t *testing.T) {
	require.Equal(t, "[]", targets(nil, 2379))
	require.Equal(t, "['10.0.0.1:2379', '[fd00::2]:2379']", targets([]netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::2")}, 2379))
}

func TestWhoCollectsMetricsMayDoNothingElse(t *testing.T) {
	objects := watcherRights("burano:prometheus:a", "a")
	require.Len(t, objects, 2)
	for _, rule := range objects[0].(*rbacv1.ClusterRole).Rules {
		require.Subset(t, []string{"list", "get"}, rule.Verbs)
		require.Subset(t, []string{"nodes", "nodes/metrics"}, rule.Resources)
		require.Subset(t, []string{"/metrics"}, rule.NonResourceURLs)
	}
	require.Equal(t, []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "burano:prometheus:a"}}, objects[1].(*rbacv1.ClusterRoleBinding).Subjects)
}
