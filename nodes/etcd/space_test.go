package etcd_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/burano/burano/nodes/etcd"
)

func TestAStoreThatIsFullTakesWritesAgainAfterADefragmentation(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	root := c.bootstrap()
	c.join(root, c.nodes[1], c.nodes[2])
	for range 60 {
		_, err := root.Put(t.Context(), "/registry/large", strings.Repeat("x", 1<<20))
		require.NoError(t, err)
	}
	_, err := root.Put(t.Context(), "/registry/large", "small")
	require.NoError(t, err)
	members, err := etcd.Members(t.Context(), root)
	require.NoError(t, err)
	member := members.Of(c.nodes[1])
	before, err := etcd.SpaceOf(t.Context(), root, member)
	require.NoError(t, err)
	require.Greater(t, before.Size, int64(50<<20))
	require.EqualValues(t, 2<<30, before.Quota)
	// The alarm as etcd itself raises it.
	_, err = etcdserverpb.NewMaintenanceClient(root.ActiveConnection()).Alarm(t.Context(),
		&etcdserverpb.AlarmRequest{Action: etcdserverpb.AlarmRequest_ACTIVATE, MemberID: member.ID, Alarm: etcdserverpb.AlarmType_NOSPACE})
	require.NoError(t, err)
	_, err = root.Put(t.Context(), "/registry/more", "x")
	require.ErrorContains(t, err, "space")
	full, err := etcd.SpaceOf(t.Context(), root, member)
	require.NoError(t, err)
	require.True(t, full.Full, fmt.Sprint(full))
	require.True(t, full.Short())

	require.NoError(t, etcd.Defragment(t.Context(), root))
	_, err = root.Put(t.Context(), "/registry/more", "x")
	require.NoError(t, err)
	after, err := etcd.SpaceOf(t.Context(), root, member)
	require.NoError(t, err)
	require.Less(t, after.Size, int64(10<<20))
	require.False(t, after.Full)
	require.False(t, after.Wasted())
	require.NoError(t, etcd.Defragment(t.Context(), root), "with no history that could be compacted")
}

// The API server would compact, and may not.
func TestMembersCompactTheHistoryByThemselves(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	c.settings = map[string]string{"ETCD_AUTO_COMPACTION_RETENTION": "1s"} // minutes on nodes
	root := c.bootstrap()
	first, err := root.Put(t.Context(), "/registry/a", "1")
	require.NoError(t, err)
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		_, err := root.Put(context.Background(), "/registry/a", "2")
		assert.NoError(t, err)
		_, err = root.Get(context.Background(), "/registry/a", clientv3.WithRev(first.Header.Revision))
		assert.ErrorIs(t, err, rpctypes.ErrCompacted)
	}, time.Minute, 100*time.Millisecond)
}
