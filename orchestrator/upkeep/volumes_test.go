package upkeep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/attachments"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/storage"
	"github.com/burano/burano/orchestrator/volumes"
)

// secretsOf are those of one cluster, by name.
type secretsOf map[string]string

func (s secretsOf) Secret(_ context.Context, _, name string) ([]byte, bool, error) {
	text, there := s[name]
	return []byte(text), there, nil
}

func (s secretsOf) SetSecret(context.Context, string, string, []byte) error { return nil }

// storing is the duty for a cluster with volumes of these back-ends, of an environment without a delegation, whose controllers are reached by line.
func storing(t *testing.T, backends string, line func() (net.Conn, error)) (*storageDuty, *keeper.Environment) {
	t.Helper()
	facts, err := json.Marshal(known.Facts{Name: "kube", Nodes: []nodes.Node{{Name: "kube-1", Role: nodes.Master, Server: "server-1"}}})
	require.NoError(t, err)
	secrets := secretsOf{known.SecretName("c", known.FactsName): string(facts), known.SecretName("c", "storage"): backends}
	duty := newStorageDuty(Config{Reach: known.Reach{Logger: slog.New(slog.DiscardHandler)}, Secrets: secrets, Interval: time.Minute})
	duty.line = func(*nodes.Cluster, context.Context) (net.Conn, error) { return line() }
	duty.find = func(context.Context, *keeper.Environment, *desired.Cluster) (storage.Left, error) {
		return storage.Left{}, nil
	}
	return duty, &keeper.Environment{ID: "e", Name: "demo", Clusters: []*desired.Cluster{stored(t, "c", map[string]any{"name": "kube"})},
		Project: func(context.Context, string) (*openstack.Project, error) { return nil, keeper.ErrNoDelegation }}
}

func TestAClusterWithoutVolumesOfCinderIsAskedNothing(t *testing.T) {
	duty, environment := storing(t, `{"backends": ["local"]}`, func() (net.Conn, error) { panic("it is asked") })
	result, err := duty.Look(t.Context(), environment)
	require.NoError(t, err)
	require.Equal(t, keeper.Result{}, result)
}

func TestControllersOfVolumesHaveSomebodyWhoAnswers(t *testing.T) {
	var theirs net.Conn
	comes := 0
	duty, environment := storing(t, `{"backends": ["cinder"]}`, func() (ours net.Conn, err error) {
		comes++
		ours, theirs = net.Pipe()
		return ours, nil
	})
	look := func(kinds ...string) keeper.Result {
		t.Helper()
		result, err := duty.Look(t.Context(), environment)
		require.NoError(t, err)
		require.Len(t, result.Findings, len(kinds))
		for i, kind := range kinds {
			require.Equal(t, kind, result.Findings[i].Kind)
		}
		require.Equal(t, storage.StoragePause, result.Next)
		return result
	}
	require.Contains(t, look("volumes-undelegated").Findings[0].Mends, "burano environment delegation set demo")
	look("volumes-undelegated")
	require.Equal(t, 1, comes, "the connection is kept")

	client, err := grpc.NewClient("passthrough:///controllers", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return theirs, nil }))
	require.NoError(t, err)
	_, err = csi.NewControllerClient(client).DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: "v"})
	require.Equal(t, codes.FailedPrecondition, status.Code(err))
	require.ErrorContains(t, err, "environment demo has no standing delegation, without which Burano asks the cloud for no volumes: burano environment delegation set demo")
	require.NoError(t, client.Close())
	require.Eventually(t, func() bool {
		duty.mutex.Lock()
		defer duty.mutex.Unlock()
		return len(duty.answered) == 0
	}, 10*time.Second, 10*time.Millisecond, "the connection has ended")

	duty.line = func(*nodes.Cluster, context.Context) (net.Conn, error) { return nil, nodes.ErrVolumesHeld }
	look("volumes-undelegated")
	duty.line = func(*nodes.Cluster, context.Context) (net.Conn, error) { return nil, errors.New("no route to kube-1") }
	require.Contains(t, look("volumes-undelegated", "volumes-unanswered").Findings[1].Text, "no route to kube-1. What runs with its volumes goes on")
}

func TestSharesThatAClusterDoesNotKnowAreAFinding(t *testing.T) {
	duty, environment := storing(t, `{"backends": ["manila"]}`, func() (net.Conn, error) { return nil, nodes.ErrVolumesHeld })
	environment.Project = func(context.Context, string) (*openstack.Project, error) { return nil, nil }
	duty.find = func(context.Context, *keeper.Environment, *desired.Cluster) (storage.Left, error) {
		return storage.Left{Shares: []openstack.Share{{ID: "id", Name: "pvc-1", GiB: 3}}}, nil
	}
	result, err := duty.Look(t.Context(), environment)
	require.NoError(t, err)
	require.Len(t, result.Findings, 1)
	require.Equal(t, "shares-left", result.Findings[0].Kind)
	require.Equal(t, "1 shares in Manila, of 3 GiB together, were made for cluster kube, and no PersistentVolume of it is any of them: id (pvc-1)", result.Findings[0].Text)
	require.Contains(t, result.Findings[0].Mends, "burano cluster volumes delete demo")
}

func TestVolumesThatAClusterDoesNotKnowAreAFinding(t *testing.T) {
	duty, environment := storing(t, `{"backends": ["cinder"]}`, func() (net.Conn, error) { return nil, nodes.ErrVolumesHeld })
	environment.Project = func(context.Context, string) (*openstack.Project, error) { return nil, nil }
	looks := 0
	var found storage.Left
	var failed error
	duty.find = func(context.Context, *keeper.Environment, *desired.Cluster) (storage.Left, error) {
		looks++
		return found, failed
	}
	look := func() []keeper.Finding {
		t.Helper()
		result, err := duty.Look(t.Context(), environment)
		require.NoError(t, err)
		return result.Findings
	}
	again := func() {
		for key, one := range duty.left {
			one.Looked = time.Now().Add(-2 * leftEvery)
			duty.left[key] = one
		}
	}
	require.Empty(t, look())
	for i := range 12 {
		found.Volumes = append(found.Volumes, openstack.Volume{ID: fmt.Sprintf("id-%d", i), Name: fmt.Sprintf("pvc-%d", i), GiB: 2, Made: time.Date(2026, 5, 3, 0, 0, 0, 0, time.UTC)})
	}
	require.Empty(t, look(), "it is looked for them once an hour")
	require.Equal(t, 1, looks)
	again()
	list := look()
	require.Len(t, list, 1)
	require.Equal(t, "volumes-left", list[0].Kind)
	require.Contains(t, list[0].Text, "12 volumes in Cinder, of 24 GiB together, were made for cluster kube, and no PersistentVolume of it is any of them: id-0 (pvc-0, 2 GiB, made 3 May 2026), ")
	require.Contains(t, list[0].Text, ", id-9 (pvc-9, 2 GiB, made 3 May 2026), 2 more")
	again()
	found.Snapshots = []openstack.Snapshot{{ID: "id", Name: "snapshot-1", GiB: 2}}
	list = look()
	require.Len(t, list, 2)
	require.Equal(t, "volume-snapshots-left", list[1].Kind)
	require.Contains(t, list[1].Text, "1 snapshots of volumes in Cinder, of 2 GiB together, were made for cluster kube, and no VolumeSnapshotContent of it is any of them: id (snapshot-1)")
	again()
	found, failed = storage.Left{}, errors.New("nobody answers")
	require.Len(t, look(), 2, "they are as they were")
	failed = nil
	require.Empty(t, look())
}

func TestClaimsAreBackedUpWhenThatIsDue(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	claims := []volumes.Claim{{Namespace: "default", Name: "data"}}
	var list []volumes.Backup
	var failure error
	duty := newBackupsDuty(Config{Reach: known.Reach{Logger: slog.New(slog.DiscardHandler)}, Secrets: secretsOf{known.SecretName("c", "storage"): `{"backends": ["cinder"]}`}})
	duty.now = func() time.Time { return now }
	duty.look = func(context.Context, *keeper.Environment, *desired.Cluster) ([]volumes.Claim, []volumes.Backup, error) {
		return claims, list, failure
	}
	environment := &keeper.Environment{ID: "e", Clusters: []*desired.Cluster{stored(t, "c", map[string]any{"name": "kube", "claimBackupEvery": int64(24)}),
		stored(t, "never", map[string]any{}), stored(t, "without", map[string]any{"claimBackupEvery": int64(24)})}}
	look := func(want ...string) []keeper.Finding {
		t.Helper()
		result, err := duty.Look(t.Context(), environment)
		require.NoError(t, err)
		require.Equal(t, append([]string{}, want...), kinds(result.Findings))
		return result.Findings
	}
	found := look("info claim-backup-due ")
	require.Contains(t, found[0].Text, "Claims of cluster kube have no backup of the last 24 hours: default/data")
	require.Equal(t, &keeper.Repair{ObjectID: "c", Method: "backUpClaims", Args: map[string]any{"scheduled": true}, Cloud: true, Routine: true, AfterFailure: true,
		Text: "Claims of cluster kube are backed up, every 24 hours"}, found[0].Repair)
	list = []volumes.Backup{{Why: volumes.Scheduled, Status: "creating", Claim: claims[0], Made: now}}
	look()
	now = now.Add(25 * time.Hour)
	look("info claim-backup-due ")
	list = []volumes.Backup{{Why: volumes.Scheduled, Status: "error", Failure: "the object store is full", Claim: claims[0], Made: now}}
	require.Contains(t, look("info claim-backup-due ", "warning claim-backup-failed default/data")[1].Text, "it is in status error the object store is full")
	failure = keeper.ErrNoDelegation
	look()
	failure = errors.New("Cinder is away")
	_, err := duty.Look(t.Context(), environment)
	require.Error(t, err)
}

func TestClaimsThatNoApplicationUsesAreAFinding(t *testing.T) {
	_, environment := storing(t, `{"backends": ["local"]}`, nil)
	facts := secretsOf{known.SecretName("c", "storage"): `{"backends": ["local"]}`}
	claim := func(name string, made time.Time) corev1.PersistentVolumeClaim {
		one := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(made)}}
		one.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}
		return one
	}
	found := []corev1.PersistentVolumeClaim{claim("young", time.Now())}
	duty := claimsDuty{Config{Reach: known.Reach{Logger: slog.New(slog.DiscardHandler)}, Secrets: facts}, func(context.Context, *keeper.Environment, *desired.Cluster) ([]corev1.PersistentVolumeClaim, error) {
		return slices.Clone(found), nil
	}}
	result, err := duty.Look(t.Context(), environment)
	require.NoError(t, err)
	require.Empty(t, result.Findings, "an application may be about to use it")
	found = append(found, claim("web-db--data", time.Date(2026, 5, 3, 0, 0, 0, 0, time.UTC)))
	result, err = duty.Look(t.Context(), environment)
	require.NoError(t, err)
	require.Len(t, result.Findings, 1)
	require.Equal(t, "No application of cluster kube uses: claim web-db--data (10Gi, made 3 May 2026). They keep their data", result.Findings[0].Text)
	require.Contains(t, result.Findings[0].Mends, "burano cluster volumes delete demo NAME")
}

func TestAttachmentsThatDifferAreFindingsUntilTheyAreMended(t *testing.T) {
	_, environment := storing(t, "", nil)
	duty := newAttachmentsDuty(Config{Reach: known.Reach{Logger: slog.New(slog.DiscardHandler)}, Secrets: secretsOf{known.SecretName("c", "storage"): `{"backends": ["cinder"]}`}, Interval: time.Minute})
	looks := 0
	found, failed := []attachments.Difference{{Volume: "v", Text: "volume v is attached to node a", Mends: "Burano mends it"}}, error(nil)
	duty.reconcile = func(context.Context, *keeper.Environment, *desired.Cluster, *openstack.Project) ([]attachments.Difference, error) {
		looks++
		return found, failed
	}
	look := func() keeper.Result {
		t.Helper()
		result, err := duty.Look(t.Context(), environment)
		require.NoError(t, err)
		return result
	}
	require.Empty(t, look().Findings)
	require.Zero(t, looks, "without a delegation the cloud is not asked")
	environment.Project = func(context.Context, string) (*openstack.Project, error) { return nil, nil }
	result := look()
	require.Equal(t, []keeper.Finding{{ObjectID: "c", Kind: "volume-attachment-differs", Subject: "v", Severity: keeper.Warning, Text: "volume v is attached to node a", Mends: "Burano mends it"}}, result.Findings)
	require.Equal(t, time.Minute/hurry, result.Next)
	found, failed = nil, errors.New("no route to host")
	require.Len(t, look().Findings, 1, "while the cluster is not reached it stands")
	failed = nil
	require.Empty(t, look().Findings)
	found, failed = nil, errors.New("no route to host")
	require.Empty(t, look().Findings)
}
