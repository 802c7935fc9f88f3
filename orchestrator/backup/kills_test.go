package backup_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/burano/burano/internal/quota"
	"github.com/burano/burano/nodes/claimdata/claimdatatest"
	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/orchestrator/backup"
	"github.com/burano/burano/orchestrator/snapshot"
	"github.com/burano/burano/orchestrator/store"
)

var errKilled = errors.New("the server was killed")

// life is the life of a server, which changes nothing more after a number of instants. An instant is before and after each of its changes in the database, in a cluster and on a node.
type life struct {
	mutex sync.Mutex
	left  int // instants; less than 0 for a server that is not killed
	dead  bool
}

func (l *life) instant() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.left == 0 {
		l.dead = true
		return errKilled
	}
	l.left = max(l.left-1, -1)
	return nil
}

func (l *life) died() bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.dead
}

func (l *life) do(change func() error) error {
	if err := l.instant(); err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	return l.instant()
}

// mortalRows, mortalSnapshots and mortalNodes are changed by a server while it lives.
type mortalRows struct {
	backup.Rows
	life *life
}

func (m mortalRows) Begin(ctx context.Context, made *store.Backup) error {
	return m.life.do(func() error { return m.Rows.Begin(ctx, made) })
}

func (m mortalRows) Keep(ctx context.Context, made store.Backup) error {
	return m.life.do(func() error { return m.Rows.Keep(ctx, made) })
}

func (m mortalRows) Remove(ctx context.Context, id string) error {
	return m.life.do(func() error { return m.Rows.Remove(ctx, id) })
}

type mortalSnapshots struct {
	snapshot.Rows
	life *life
}

func (m mortalSnapshots) BeginSnapshot(ctx context.Context, begun *store.Snapshot) error {
	return m.life.do(func() error { return m.Rows.BeginSnapshot(ctx, begun) })
}

func (m mortalSnapshots) AddPiece(ctx context.Context, id string, number int64, sealed string) error {
	return m.life.do(func() error { return m.Rows.AddPiece(ctx, id, number, sealed) })
}

func (m mortalSnapshots) KeepSnapshot(ctx context.Context, id string, revision, size int64) error {
	return m.life.do(func() error { return m.Rows.KeepSnapshot(ctx, id, revision, size) })
}

func (m mortalSnapshots) DeleteSnapshot(ctx context.Context, id string) error {
	return m.life.do(func() error { return m.Rows.DeleteSnapshot(ctx, id) })
}

type mortalNodes struct {
	*claimdatatest.Nodes
	life *life
}

func (m mortalNodes) Stream(ctx context.Context, node string, job ssh.Job) error {
	return m.life.do(func() error { return m.Nodes.Stream(ctx, node, job) })
}

// kills has servers work with a cluster, one after another.
type kills struct {
	*world
	client *fake.Clientset
	nodes  *claimdatatest.Nodes
	now    *life
}

func newKills(w *world, client *fake.Clientset, nodes *claimdatatest.Nodes) *kills {
	k := &kills{world: w, client: client, nodes: nodes}
	nodes.Fails = func(string, string) error { return k.now.instant() }
	client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		switch action.GetVerb() {
		case "get", "list", "watch":
			return k.now.died(), nil, errKilled
		}
		err := k.now.instant()
		return err != nil, nil, err
	})
	return k
}

// server begins the life of the next server.
func (k *kills) server(instants int) (backup.Backups, backup.Cluster) {
	of := &life{left: instants}
	k.now = of
	cluster := k.of(k.client, k.nodes)
	cluster.Nodes = mortalNodes{k.nodes, of}
	k.archive = k.newArchive(mortalSnapshots{k.rows.Snapshots(), of})
	return backup.Backups{Rows: mortalRows{k.rows.Backups(), of}, Archive: k.archive}, cluster
}

// calm makes sure that pods run and that nothing is left of a server in the cluster.
func (k *kills) calm(t *testing.T, instants int) {
	t.Helper()
	require.Empty(t, k.nodes.Frozen(), "killed after %d instants", instants)
	require.Empty(t, k.nodes.Left(), "killed after %d instants", instants)
	holders, err := k.client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{LabelSelector: "burano.io/holds-for"})
	require.NoError(t, err)
	require.Empty(t, holders.Items, "killed after %d instants", instants)
}

func TestABackupGoesOnAfterItsServerIsKilledAtAnyInstant(t *testing.T) {
	w := newWorld(t, quota.Unlimited)
	client := claims()
	require.NoError(t, client.CoreV1().Pods("default").Delete(t.Context(), "pod-claim-2", metav1.DeleteOptions{})) // so that a pod of Burano's has its claim mounted
	k := newKills(w, running(client), w.nodes)
	w.nodes.Files[path("claim-2", "pv-2")] = "two"
	instants := 0
	for died := true; died; instants++ {
		backups, cluster := k.server(instants)
		_, err := backups.Make(t.Context(), w.order("task"), []backup.Cluster{cluster})
		died = k.now.died()
		require.Equal(t, died, err != nil, "%d: %v", instants, err)
		require.Empty(t, w.nodes.Frozen(), "pods run when the server is gone (%d)", instants)

		backups, cluster = k.server(-1)
		made, err := backups.Make(t.Context(), w.order("task"), []backup.Cluster{cluster})
		require.NoError(t, err, instants)
		require.Len(t, made.Parts.Clusters[0].Claims, 2)
		k.calm(t, instants)
		list, err := backups.List(t.Context(), store.BackupFilter{})
		require.NoError(t, err)
		require.Len(t, list, 1, instants)
		parts, err := backups.Parts(t.Context(), made.ID)
		require.NoError(t, err)
		require.Len(t, parts, 3, "no snapshot is left of the killed server (%d)", instants)
		require.NoError(t, backups.Delete(t.Context(), made.ID))
		w.nothing(t, "p1")
	}
	require.Greater(t, instants, 40)
	t.Logf("%d instants", instants)
}

func TestABackupThatNoServerGoesOnWithLeavesNothing(t *testing.T) {
	w := newWorld(t, quota.Unlimited)
	k := newKills(w, claims(), w.nodes)
	instants := 0
	for died := true; died; instants++ {
		backups, cluster := k.server(instants)
		_, _ = backups.Make(t.Context(), w.order("task"), []backup.Cluster{cluster})
		if died = k.now.died(); !died {
			break
		}
		backups, cluster = k.server(-1)
		require.NoError(t, backups.Sweep(t.Context(), w.now))
		list, err := backups.List(t.Context(), store.BackupFilter{})
		require.NoError(t, err)
		for _, one := range list {
			if one.Whole != 0 { // it was killed after its work
				require.NoError(t, backups.Delete(t.Context(), one.ID))
			}
		}
		stored, err := w.rows.Quotas().Quotas(t.Context(), "p1")
		require.NoError(t, err)
		require.Zero(t, stored[store.QuotaSnapshotBytes].Used, "half a backup counts for no quota (%d)", instants)
		w.said = nil
		require.NoError(t, backups.EndFormer(t.Context(), w.order("the keeper's"), []backup.Cluster{cluster}))
		k.calm(t, instants)
		w.nothing(t, "p1")
		require.NoError(t, backups.EndFormer(t.Context(), w.order("the keeper's"), []backup.Cluster{cluster}))
		require.LessOrEqual(t, len(w.said), 1, "applications are told once")
	}
	require.Greater(t, instants, 30)
}

func TestClaimsAreFilledAfterTheServerIsKilledAtAnyInstant(t *testing.T) {
	w := newWorld(t, quota.Unlimited)
	made, err := w.backups.Make(t.Context(), w.order("task"), []backup.Cluster{w.cluster})
	require.NoError(t, err)
	instants := 0
	for died := true; died; instants++ {
		k := newKills(w, empty(), &claimdatatest.Nodes{Files: map[string]string{}})
		backups, cluster := k.server(instants)
		err := backups.Fill(t.Context(), made.ID, cluster, claimdatatest.Step, w.order("").Report)
		died = k.now.died()
		require.Equal(t, died, err != nil, "%d: %v", instants, err)
		backups, cluster = k.server(-1)
		require.NoError(t, backups.Fill(t.Context(), made.ID, cluster, claimdatatest.Step, w.order("").Report), instants)
		require.Equal(t, map[string]string{path("claim-1", "new-claim-1"): "one", path("claim-2", "new-claim-2"): "two"}, k.nodes.Files, instants)
		k.calm(t, instants)
	}
	require.Greater(t, instants, 15)
}

func TestAnUploadWhoseServerIsKilledAtAnyInstantLeavesNothing(t *testing.T) {
	w := newWorld(t, quota.Unlimited)
	made, file := w.written(t)
	require.NoError(t, w.backups.Delete(t.Context(), made.ID))
	k := newKills(w, claims(), w.nodes)
	instants := 0
	for died := true; died; instants++ {
		backups, _ := k.server(instants)
		_, err := backups.Read(t.Context(), uploads("p1"), bytes.NewReader(file))
		died = k.now.died()
		require.Equal(t, died, err != nil, "%d: %v", instants, err)
		w.now = w.now.Add(10 * time.Minute)
		backups, _ = k.server(-1)
		require.NoError(t, backups.Sweep(t.Context(), w.now))
		list, err := backups.List(t.Context(), store.BackupFilter{})
		require.NoError(t, err)
		for _, one := range list {
			require.NotZero(t, one.Whole, "it is whole, or nothing is left (%d)", instants)
			require.NoError(t, backups.Delete(t.Context(), one.ID))
		}
		w.nothing(t, "p1")
	}
	require.Greater(t, instants, 10)
}
