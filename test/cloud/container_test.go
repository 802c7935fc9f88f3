package cloud

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/objectstorage/v1/containers"
	"github.com/gophercloud/gophercloud/v2/openstack/objectstorage/v1/objects"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/quota"
	"github.com/burano/burano/internal/scratch"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/snapshot"
	"github.com/burano/burano/orchestrator/store"
)

// aSharedContainerTakesASnapshot stores a snapshot of several objects in a container of demo's project: the trust is needed to share
// the container, and for nothing afterwards.
func aSharedContainerTakesASnapshot(t *testing.T, c *cloud) {
	service, demo, other := c.service(t), c.as(t, "demo"), c.as(t, "other")
	const name = "burano-test-snapshots"
	mine := demo.client(t, openstack.NewObjectStorageV1)
	t.Cleanup(func() {
		err := containers.Delete(context.Background(), mine, name).Err
		require.True(t, err == nil || gophercloud.ResponseCodeIs(err, 404), "%v", err)
	})
	trust, _, err := service.CreateTrust(t.Context(), demo.caller(t, service), []string{"member"}, time.Time{})
	require.NoError(t, err)
	project, err := service.Project(t.Context(), trust)
	require.NoError(t, err)
	address, err := service.ShareContainer(t.Context(), project, name)
	require.NoError(t, err)
	again, err := service.ShareContainer(t.Context(), project, name)
	require.NoError(t, err)
	require.Equal(t, address, again)
	require.NoError(t, service.DeleteTrust(t.Context(), trust))

	now := time.Now()
	rows, sealer, environment := snapshotRows(t, func() time.Time { return now })
	archive := snapshot.New(rows.Snapshots(), service, sealer, func(context.Context, string) (snapshot.Checked, error) {
		return snapshot.Checked{Revision: 1, Size: 1}, nil
	}, scratch.New(t.TempDir(), 1<<30))
	of := snapshot.Subject{EnvironmentID: environment, ClusterID: "c", Kind: store.Requested, Secrets: []byte("keys"), Container: address,
		Refused: func(why error) { t.Errorf("the container was not used: %v", why) }}
	content := func() io.Reader { return io.LimitReader(rand.NewChaCha8([32]byte{7}), 9<<20) }
	write := func(_ context.Context, to io.Writer) error { _, err := io.Copy(to, content()); return err }
	taken, err := archive.Take(t.Context(), of, write)
	require.NoError(t, err)
	require.Equal(t, address, taken.Container)
	require.Greater(t, taken.Stored, int64(9<<20), "it counts for the quota")
	_, there, err := rows.Snapshots().Piece(t.Context(), taken.ID, 0)
	require.NoError(t, err)
	require.False(t, there, "the database has nothing of it")

	listed := func() (names []string) {
		pages, err := objects.List(mine, name, nil).AllPages(t.Context())
		require.NoError(t, err)
		found, err := objects.ExtractNames(pages)
		require.NoError(t, err)
		return found
	}
	require.Equal(t, []string{taken.ID + "/000000", taken.ID + "/000001", taken.ID + "/000002"}, listed())
	_, found, err := service.Object(t.Context(), address, taken.ID+"/000003")
	require.NoError(t, err)
	require.False(t, found)
	require.True(t, gophercloud.ResponseCodeIs(objects.Download(t.Context(), foreign(t, other, address), name, taken.ID+"/000000", nil).Err, 403), "another project reads nothing")

	sum := func(from io.Reader) string {
		hash := sha256.New()
		_, err := io.Copy(hash, from)
		require.NoError(t, err)
		return string(hash.Sum(nil))
	}
	read, err := archive.Open(t.Context(), taken.ID)
	require.NoError(t, err)
	require.Equal(t, sum(content()), sum(read))

	// The limit of bytes holds, and nothing of the refused snapshot stays.
	require.NoError(t, rows.Quotas().SetQuotas(t.Context(), "p1", quota.Limits{store.QuotaSnapshotBytes: 14 << 20}))
	_, err = archive.Take(t.Context(), of, write)
	require.Equal(t, fault.Forbidden, fault.KindOf(err), "%v", err)
	require.Len(t, listed(), 3)

	require.NoError(t, archive.DeleteSnapshot(t.Context(), taken.ID))
	require.Empty(t, listed())
	_, err = archive.Snapshot(t.Context(), taken.ID)
	require.ErrorIs(t, err, store.ErrNotFound)

	// A snapshot whose environment is deleted stays for its time, and then goes.
	taken, err = archive.Take(t.Context(), of, write)
	require.NoError(t, err)
	require.NoError(t, rows.Environments().Remove(t.Context(), environment, ""))
	keep := store.Retention{Snapshots: time.Hour}
	_, err = rows.Expired().Sweep(t.Context(), keep, archive.DeleteSnapshot)
	require.NoError(t, err)
	require.Len(t, listed(), 3)
	now = now.Add(2 * time.Hour)
	_, err = rows.Expired().Sweep(t.Context(), keep, archive.DeleteSnapshot)
	require.NoError(t, err)
	require.Empty(t, listed())

	// Once the project deletes a snapshot in its account, it cannot be deleted again; the next snapshot is then stored
	// in the database.
	require.NoError(t, containers.Delete(t.Context(), mine, name).Err)
	of.EnvironmentID = addEnvironment(t, rows)
	var why error
	of.Refused = func(err error) { why = errors.Join(why, err) }
	taken, err = archive.Take(t.Context(), of, write)
	require.NoError(t, err)
	require.Empty(t, taken.Container)
	require.ErrorContains(t, why, name)
	read, err = archive.Open(t.Context(), taken.ID)
	require.NoError(t, err)
	require.Equal(t, sum(content()), sum(read))
}

// foreign is a user's client of another project's account.
func foreign(t *testing.T, u user, container string) *gophercloud.ServiceClient {
	client := u.client(t, openstack.NewObjectStorageV1)
	client.Endpoint = container[:strings.LastIndex(container, "/")+1]
	return client
}

// snapshotRows is a database with an environment of project p1.
func snapshotRows(t *testing.T, clock func() time.Time) (*store.Store, *secret.Sealer, string) {
	db, err := database.Open(filepath.Join(t.TempDir(), "burano.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Close(db)) })
	sealer, err := secret.Open(filepath.Join(t.TempDir(), "key"))
	require.NoError(t, err)
	rows, err := store.New(t.Context(), db, clock, store.Sealed(sealer))
	require.NoError(t, err)
	return rows, sealer, addEnvironment(t, rows)
}

func addEnvironment(t *testing.T, rows *store.Store) (id string) {
	environment := store.Environment{ID: store.NewID(), ProjectID: "p1", Name: "one", Model: store.Model{Objects: map[string]any{}}}
	require.NoError(t, rows.Environments().Create(t.Context(), &environment))
	return environment.ID
}
