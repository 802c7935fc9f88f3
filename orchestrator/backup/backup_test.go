package backup_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/quota"
	"github.com/burano/burano/internal/scratch"
	"github.com/burano/burano/nodes/claimdata/claimdatatest"
	"github.com/burano/burano/orchestrator/backup"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/snapshot"
	"github.com/burano/burano/orchestrator/store"
)

// world is an environment with a cluster of two claims, whose files are in the nodes.
type world struct {
	backups     backup.Backups
	rows        *store.Store
	archive     *snapshot.Archive
	newArchive  func(snapshot.Rows) *snapshot.Archive
	environment store.Environment
	nodes       *claimdatatest.Nodes
	cluster     backup.Cluster
	said        []string
	objects     snapshot.Objects // nil: the archive knows no container
	now         time.Time        // goes on by a second with each look
}

func newWorld(t *testing.T, limit int64) *world {
	db, err := database.Open(filepath.Join(t.TempDir(), "burano.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Close(db)) })
	sealer, err := secret.Open(filepath.Join(t.TempDir(), "key"))
	require.NoError(t, err)
	w := &world{now: time.Now(), nodes: &claimdatatest.Nodes{Files: map[string]string{path("u1", "pv-1"): "one", path("u2", "pv-2"): "two"}}}
	rows, err := store.New(t.Context(), db, func() time.Time { w.now = w.now.Add(time.Second); return w.now }, store.Sealed(sealer), store.Quotas(quota.Limits{store.QuotaSnapshotBytes: limit}))
	require.NoError(t, err)
	w.rows = rows
	w.environment = store.Environment{ID: store.NewID(), ProjectID: "p1", Name: "shop", Model: store.Model{Objects: map[string]any{"name": "shop"}, Packages: map[string][]string{"io.burano.Redis": {"1.0.0"}}}}
	require.NoError(t, rows.Environments().Create(t.Context(), &w.environment))
	room := scratch.New(t.TempDir(), 2<<30)
	w.newArchive = func(rows snapshot.Rows) *snapshot.Archive {
		return snapshot.New(rows, w.objects, sealer, func(context.Context, string) (snapshot.Checked, error) { return snapshot.Checked{Revision: 3}, nil }, room)
	}
	w.archive = w.newArchive(rows.Snapshots())
	w.backups = backup.Backups{Rows: rows.Backups(), Archive: w.archive}
	w.cluster = w.of(claims(), w.nodes)
	return w
}

func (w *world) of(client *fake.Clientset, nodes *claimdatatest.Nodes) backup.Cluster {
	return backup.Cluster{ObjectID: "c", Name: "kube", Nodes: nodes, API: client, Snapshot: func(ctx context.Context, of snapshot.Subject) (store.Snapshot, error) {
		return w.archive.Take(ctx, of, func(_ context.Context, to io.Writer) error { _, err := io.WriteString(to, "etcd"); return err })
	}}
}

func (w *world) order(task string) backup.Order {
	said := func(what string) func(context.Context) []string {
		return func(context.Context) []string { w.said = append(w.said, what); return nil }
	}
	return backup.Order{Environment: w.environment, Task: task, Kind: store.Requested, Before: said("before"), After: said("after"), Report: func(context.Context, string) {}, Step: claimdatatest.Step}
}

func path(pod, volume string) string {
	return "/var/lib/kubelet/pods/" + pod + "/volumes/kubernetes.io~csi/" + volume + "/mount"
}

func claims() *fake.Clientset {
	objects := []runtime.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gone"}}}
	for i := range 2 {
		name, volume := fmt.Sprintf("claim-%d", i+1), fmt.Sprintf("pv-%d", i+1)
		objects = append(objects,
			&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume,
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}},
				Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}},
			&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: "local.burano.io", VolumeHandle: volume}}}},
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pod-" + name, UID: types.UID(fmt.Sprintf("u%d", i+1))}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
				Spec: corev1.PodSpec{NodeName: "n1", Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}}})
	}
	return fake.NewClientset(objects...)
}

// empty is a cluster that is made anew: its pods run, and its claims get volumes.
func empty() *fake.Clientset {
	client := running(fake.NewClientset())
	client.PrependReactor("create", "persistentvolumeclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
		claim := action.(clienttesting.CreateAction).GetObject().(*corev1.PersistentVolumeClaim)
		claim.Spec.VolumeName = "new-" + claim.Name
		return false, nil, nil
	})
	return client
}

// running is a cluster whose new pods run at once, on a node.
func running(client *fake.Clientset) *fake.Clientset {
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		pod := action.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
		pod.UID, pod.Status.Phase, pod.Spec.NodeName = types.UID(pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName), corev1.PodRunning, "n9"
		return false, nil, nil
	})
	return client
}

func TestABackupHasAllOfAnEnvironmentAndFillsTheClaimsOfAnother(t *testing.T) {
	w := newWorld(t, quota.Unlimited)
	order := w.order("task")
	order.Contents = store.BackupContents{Secrets: map[string][]byte{"attribute/redis/a/password": []byte("secret")}}
	made, err := w.backups.Make(t.Context(), order, []backup.Cluster{w.cluster})
	require.NoError(t, err)
	require.NotZero(t, made.Whole)
	require.Equal(t, w.environment.Model.Objects, made.Model.Objects)
	require.Equal(t, w.environment.Model.Packages, made.Model.Packages)
	require.Equal(t, []byte("secret"), made.Parts.Secrets["attribute/redis/a/password"])
	require.Len(t, made.Parts.Clusters[0].Claims, 2)
	require.Equal(t, int64(3), made.Parts.Clusters[0].Claims[0].Bytes)
	require.Equal(t, []string{"before", "after"}, w.said)
	require.Empty(t, w.nodes.Left())
	of, err := w.archive.Snapshot(t.Context(), made.Parts.Clusters[0].Snapshot)
	require.NoError(t, err)
	require.Equal(t, store.OfBackup, of.Kind)
	listed, err := w.archive.Snapshots(t.Context(), store.SnapshotFilter{})
	require.NoError(t, err)
	require.Len(t, listed, 1, "the files of claims are no snapshots of etcd")

	require.NoError(t, w.rows.Environments().Remove(t.Context(), w.environment.ID, "user"))
	other := &claimdatatest.Nodes{Files: map[string]string{}}
	require.NoError(t, w.backups.Fill(t.Context(), made.ID, w.of(empty(), other), claimdatatest.Step, order.Report))
	require.Equal(t, map[string]string{path("claim-1", "new-claim-1"): "one", path("claim-2", "new-claim-2"): "two"}, other.Files)

	require.NoError(t, w.backups.Delete(t.Context(), made.ID))
	w.nothing(t, "p1")
}

// nothing makes sure that nothing is left of any backup.
func (w *world) nothing(t *testing.T, project string) {
	t.Helper()
	list, err := w.backups.List(t.Context(), store.BackupFilter{})
	require.NoError(t, err)
	require.Empty(t, list)
	parts, err := w.backups.Parts(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, parts)
	stored, err := w.rows.Quotas().Quotas(t.Context(), project)
	require.NoError(t, err)
	require.Zero(t, stored[store.QuotaSnapshotBytes].Used)
	require.Empty(t, w.nodes.Left())
}

func TestABackupThatFailsAtAnyStepLeavesNothing(t *testing.T) {
	w := newWorld(t, quota.Unlimited)
	away := errors.New("the node is away")
	for _, word := range []string{"held", "copied pv-2 3", "complete", "read pv-2"} {
		w.nodes.Fails = func(_, said string) error {
			if said == word {
				return away
			}
			return nil
		}
		_, err := w.backups.Make(t.Context(), w.order("task"), []backup.Cluster{w.cluster})
		require.ErrorContains(t, err, away.Error(), word)
		require.Equal(t, "after", w.said[len(w.said)-1], word)
		w.nothing(t, "p1")
	}
}

func TestABackupThatDoesNotFitInTheQuotaIsRefusedAndLeavesNothing(t *testing.T) {
	w := newWorld(t, 100)
	_, err := w.backups.Make(t.Context(), w.order("task"), []backup.Cluster{w.cluster})
	require.ErrorContains(t, err, "Quota exceeded")
	w.nothing(t, "p1")
}

func TestATaskThatIsTakenOverBeginsItsBackupAnewAndEndsWhatItBegan(t *testing.T) {
	w := newWorld(t, quota.Unlimited)
	left := store.Backup{ProjectID: "p1", EnvironmentID: w.environment.ID, TaskID: "task", Kind: store.Requested}
	require.NoError(t, w.backups.Begin(t.Context(), &left))
	_, err := w.archive.Take(t.Context(), snapshot.Subject{EnvironmentID: w.environment.ID, Kind: store.ClaimFiles, Backup: left.ID},
		func(_ context.Context, to io.Writer) error { _, err := io.WriteString(to, "half"); return err })
	require.NoError(t, err)
	made, err := w.backups.Make(t.Context(), w.order("task"), []backup.Cluster{w.cluster})
	require.NoError(t, err)
	require.Equal(t, []string{"after", "before", "after"}, w.said, "what the dead server began is ended first")
	again, err := w.backups.Make(t.Context(), w.order("task"), []backup.Cluster{w.cluster})
	require.NoError(t, err)
	require.Equal(t, made.ID, again.ID, "a whole one is not made twice")
	parts, err := w.backups.Parts(t.Context(), left.ID)
	require.NoError(t, err)
	require.Empty(t, parts)
}

func TestClaimsThatCannotBeBackedUpAreRefusedUnlessTheyMayBeMissing(t *testing.T) {
	w := newWorld(t, quota.Unlimited)
	block := corev1.PersistentVolumeBlock
	_, err := w.cluster.API.CoreV1().PersistentVolumeClaims("default").Create(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "raw"},
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1", VolumeMode: &block}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = w.backups.Make(t.Context(), w.order("task"), []backup.Cluster{w.cluster})
	require.ErrorContains(t, err, "kube: default/raw (it is a block device")
	require.Empty(t, w.nodes.Said, "nothing was done")
	order := w.order("task")
	order.Incomplete = true
	made, err := w.backups.Make(t.Context(), order, []backup.Cluster{w.cluster})
	require.NoError(t, err)
	require.Contains(t, made.Parts.Missing, "kube: default/raw")
	require.Len(t, made.Parts.Clusters[0].Claims, 2)
}

func TestScheduledBackupsMakeRoomForEachOtherAndForNoOthers(t *testing.T) {
	w := newWorld(t, quota.Unlimited)
	_, err := w.backups.Make(t.Context(), w.order("requested"), []backup.Cluster{w.cluster})
	require.NoError(t, err)
	for i := range 4 {
		order := w.order(fmt.Sprint("task-", i))
		order.Kind, order.Kept = store.Scheduled, 2
		_, err := w.backups.Make(t.Context(), order, []backup.Cluster{w.cluster})
		require.NoError(t, err)
	}
	list, err := w.backups.List(t.Context(), store.BackupFilter{})
	require.NoError(t, err)
	var kept []string
	for _, one := range list {
		kept = append(kept, one.TaskID)
	}
	require.Equal(t, "task-3 task-2 requested", strings.Join(kept, " "))
}

func TestAClaimThatIsThereAlreadyKeepsItsFilesAndTheOthersAreFilled(t *testing.T) {
	w := newWorld(t, quota.Unlimited)
	made, err := w.backups.Make(t.Context(), w.order("task"), []backup.Cluster{w.cluster})
	require.NoError(t, err)
	client, other := empty(), &claimdatatest.Nodes{Files: map[string]string{}}
	_, err = client.CoreV1().PersistentVolumeClaims("default").Create(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "claim-1"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	var said []string
	require.NoError(t, w.backups.Fill(t.Context(), made.ID, w.of(client, other), claimdatatest.Step, func(_ context.Context, text string) { said = append(said, text) }))
	require.Equal(t, map[string]string{path("claim-2", "new-claim-2"): "two"}, other.Files)
	require.Contains(t, strings.Join(said, "\n"), "There is a claim default/claim-1 that was not made of backup")
}

// waits has an environment wait for the files of a backup.
func (w *world) waits(t *testing.T, backupID string) store.Environment {
	t.Helper()
	waiting := store.Environment{ID: store.NewID(), ProjectID: "p1", Name: store.NewID(), Model: store.Model{Objects: map[string]any{}}}
	require.NoError(t, w.rows.Environments().Import(t.Context(), store.Imported{Environment: waiting,
		Attributes: []store.Attribute{{EnvironmentID: waiting.ID, ObjectID: "c", Class: "Cluster", Name: backup.AttributeFilledFrom, Value: fmt.Sprintf("%q", backupID)}}}))
	return waiting
}

func TestABackupThatAnEnvironmentWaitsForIsNotRemovedForItsAge(t *testing.T) {
	w := newWorld(t, quota.Unlimited)
	order := w.order("clone")
	order.Kind = store.Passing
	clone, err := w.backups.Make(t.Context(), order, []backup.Cluster{w.cluster})
	require.NoError(t, err)
	waiting := w.waits(t, clone.ID)
	w.now = w.now.Add(48 * time.Hour)
	there := func(id string) bool {
		_, err := w.backups.Get(t.Context(), id)
		if !errors.Is(err, store.ErrNotFound) {
			require.NoError(t, err)
		}
		return err == nil
	}
	require.NoError(t, w.backups.Sweep(t.Context(), w.now))
	require.True(t, there(clone.ID))

	var scheduled []store.Backup
	for i := range 3 {
		order := w.order(fmt.Sprint("task-", i))
		order.Kind, order.Kept = store.Scheduled, 1
		made, err := w.backups.Make(t.Context(), order, []backup.Cluster{w.cluster})
		require.NoError(t, err)
		if scheduled = append(scheduled, made); i == 0 {
			w.waits(t, made.ID)
		}
	}
	require.Equal(t, []bool{true, false, true}, []bool{there(scheduled[0].ID), there(scheduled[1].ID), there(scheduled[2].ID)})

	require.NoError(t, w.rows.Environments().Remove(t.Context(), waiting.ID, "user"))
	require.NoError(t, w.backups.Sweep(t.Context(), w.now))
	require.False(t, there(clone.ID), "the clone is gone")
	order = w.order("another")
	order.Kind = store.Passing
	clone, err = w.backups.Make(t.Context(), order, []backup.Cluster{w.cluster})
	require.NoError(t, err)
	require.NoError(t, w.backups.Sweep(t.Context(), w.now))
	require.True(t, there(clone.ID), "its clone may be about to be made")
}

func TestAnApplicationThatCannotPrepareIsAnErrorAndItsPodsAreNotFrozen(t *testing.T) {
	w := newWorld(t, quota.Unlimited)
	order := w.order("task")
	order.Before = func(context.Context) []string {
		w.said = append(w.said, "before")
		return []string{"orders (beforeBackup): run redis-cli in store-0: its disk is full"}
	}
	_, err := w.backups.Make(t.Context(), order, []backup.Cluster{w.cluster})
	require.ErrorContains(t, err, "These applications could not write what they have in memory: orders (beforeBackup): run redis-cli in store-0: its disk is full. Nothing was copied, and no pod was frozen")
	require.Equal(t, fault.Invalid, fault.KindOf(err))
	require.Empty(t, w.nodes.Said, "no pod was frozen")
	require.Equal(t, []string{"before", "after"}, w.said)
	w.nothing(t, "p1")
	order.Incomplete = true
	made, err := w.backups.Make(t.Context(), order, []backup.Cluster{w.cluster})
	require.NoError(t, err)
	require.Equal(t, []string{"orders (beforeBackup): run redis-cli in store-0: its disk is full. The backup has what was on its disk, as after a power cut"}, made.Parts.Warnings)
}
