package kube

import (
	"testing"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestALeaseIsReleasedForTheNodeThatHoldsIt(t *testing.T) {
	ctx, identity, seconds := t.Context(), "m1.example.org_0b7c", int32(15)
	client := fake.NewClientset(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-scheduler"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &identity, LeaseDurationSeconds: &seconds}})
	holds := func(program, want string) {
		t.Helper()
		holder, err := leaseHolder(ctx, client, program)
		require.NoError(t, err)
		require.Equal(t, want, holder)
	}
	holds("kube-scheduler", "m1")
	holds("kube-controller-manager", "")
	require.NoError(t, releaseLease(ctx, client, "kube-scheduler", "m"))
	require.NoError(t, releaseLease(ctx, client, "kube-scheduler", "m2"))
	require.NoError(t, releaseLease(ctx, client, "kube-controller-manager", "m1"))
	holds("kube-scheduler", "m1")
	require.NoError(t, releaseLease(ctx, client, "kube-scheduler", "m1"))
	holds("kube-scheduler", "")
	lease, err := client.CoordinationV1().Leases("kube-system").Get(ctx, "kube-scheduler", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, int32(1), *lease.Spec.LeaseDurationSeconds, "as Kubernetes' own programs release theirs")
}
