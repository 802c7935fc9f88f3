package snapshot_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/quota"
	"github.com/burano/burano/internal/scratch"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/snapshot"
	"github.com/burano/burano/orchestrator/store"
)

// archive is an archive over a new database, with an environment e. check gets the database's file of a snapshot.
func archive(t *testing.T, limit int64, check func(ctx context.Context, file string) (snapshot.Checked, error)) (*snapshot.Archive, store.Environment) {
	db, err := database.Open(filepath.Join(t.TempDir(), "burano.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Close(db)) })
	sealer, err := secret.Open(filepath.Join(t.TempDir(), "key"))
	require.NoError(t, err)
	now := time.Now()
	rows, err := store.New(t.Context(), db, func() time.Time { now = now.Add(time.Second); return now }, store.Sealed(sealer),
		store.Quotas(quota.Limits{store.QuotaSnapshotBytes: limit}))
	require.NoError(t, err)
	e := store.Environment{ID: store.NewID(), ProjectID: "p1", Name: "one", Model: store.Model{Objects: map[string]any{}}}
	require.NoError(t, rows.Environments().Create(t.Context(), &e))
	return snapshot.New(rows.Snapshots(), nil, sealer, check, scratch.New(t.TempDir(), 2<<30)), e
}

func fits(context.Context, string) (snapshot.Checked, error) {
	return snapshot.Checked{Revision: 3, Size: 9}, nil
}

// noise writes bytes that cannot be compressed, and returns their sum.
func noise(seed uint64, size int64) (write func(context.Context, io.Writer) error, sum []byte) {
	source := func() io.Reader { return io.LimitReader(rand.NewChaCha8([32]byte{byte(seed)}), size) }
	hash := sha256.New()
	_, _ = io.Copy(hash, source())
	return func(_ context.Context, to io.Writer) error { _, err := io.Copy(to, source()); return err }, hash.Sum(nil)
}

func TestASnapshotOfManyPiecesIsReadBackAsItWasWritten(t *testing.T) {
	write, sum := noise(1, 3<<20)
	a, e := archive(t, quota.Unlimited, fits)
	taken, err := a.Take(t.Context(), snapshot.Subject{EnvironmentID: e.ID, ClusterID: "c", Kind: store.Requested, Secrets: []byte("keys")}, write)
	require.NoError(t, err)
	require.Equal(t, "keys", taken.Secrets)
	require.Greater(t, taken.Stored, int64(4<<20), "as base64")
	content, err := a.Open(t.Context(), taken.ID)
	require.NoError(t, err)
	hash := sha256.New()
	_, err = io.Copy(hash, content)
	require.NoError(t, err)
	require.Equal(t, sum, hash.Sum(nil))
}

func TestASnapshotThatDoesNotOpenOrBreaksOffIsNotKept(t *testing.T) {
	damaged := errors.New("page 7 is wrong")
	a, e := archive(t, quota.Unlimited, func(context.Context, string) (snapshot.Checked, error) { return snapshot.Checked{}, damaged })
	write, _ := noise(1, 1<<20)
	of := snapshot.Subject{EnvironmentID: e.ID, ClusterID: "c", Kind: store.Requested}
	_, err := a.Take(t.Context(), of, write)
	require.ErrorIs(t, err, damaged)
	away := errors.New("the connection was lost")
	_, err = a.Take(t.Context(), of, func(ctx context.Context, to io.Writer) error { return errors.Join(write(ctx, to), away) })
	require.ErrorIs(t, err, away)
	list, err := a.Snapshots(t.Context(), store.SnapshotFilter{})
	require.NoError(t, err)
	require.Empty(t, list)
}

func TestTwoSnapshotsAreOpenedAtTheSameTimeAndTheirFilesAreGoneThereafter(t *testing.T) {
	const takes = 6
	var open, most atomic.Int32
	var stored, all sync.WaitGroup
	stored.Add(takes)
	folders := make(chan string, takes)
	a, e := archive(t, quota.Unlimited, func(_ context.Context, file string) (snapshot.Checked, error) {
		most.Store(max(most.Load(), open.Add(1)))
		defer open.Add(-1)
		stored.Wait() // so that the others want to be opened, too
		folders <- filepath.Dir(file)
		info, err := os.Stat(file)
		if err == nil && info.Mode().Perm() != 0o600 {
			err = errors.New("others may read it")
		}
		return snapshot.Checked{Revision: 1}, err
	})
	for i := range takes {
		all.Go(func() {
			write, _ := noise(uint64(i), 1000)
			_, err := a.Take(t.Context(), snapshot.Subject{EnvironmentID: e.ID, ClusterID: "c", Kind: store.Requested, Stored: stored.Done}, write)
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.Equal(t, int32(2), most.Load())
	left, err := os.ReadDir(<-folders)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestASnapshotByScheduleTakesThePlaceOfTheOldestOnesAndNeverOfARequestedOne(t *testing.T) {
	a, e := archive(t, 4<<20+64<<10, fits)
	take := func(kind store.SnapshotKind, size int64, keep int) (store.Snapshot, error) {
		write, _ := noise(uint64(size), size)
		return a.Take(t.Context(), snapshot.Subject{EnvironmentID: e.ID, ClusterID: "c", Kind: kind, Keep: keep}, write)
	}
	kinds := func(want ...store.SnapshotKind) {
		t.Helper()
		list, err := a.Snapshots(t.Context(), store.SnapshotFilter{ClusterID: "c"})
		require.NoError(t, err)
		var found []store.SnapshotKind
		for _, one := range list {
			found = append(found, one.Kind)
		}
		require.Equal(t, want, found)
	}
	for range 4 {
		_, err := take(store.Scheduled, 100_000, 2)
		require.NoError(t, err)
	}
	kinds(store.Scheduled, store.Scheduled)
	_, err := take(store.Requested, 2<<20, 0)
	require.NoError(t, err)
	_, err = take(store.BeforeChange, 1<<20, 5) // 1.33 MiB sealed: beyond the quota together with the present ones, without the scheduled ones
	require.NoError(t, err)
	_, err = take(store.Requested, 1<<20, 0)
	require.Equal(t, fault.Forbidden, fault.KindOf(err), "for a user's nothing is removed")
	_, err = take(store.Scheduled, 1<<20, 2)
	require.Equal(t, fault.Forbidden, fault.KindOf(err), "the newest one of all stays")
	list, err := a.Snapshots(t.Context(), store.SnapshotFilter{ClusterID: "c"})
	require.NoError(t, err)
	require.Equal(t, store.BeforeChange, list[0].Kind)
	require.True(t, bytes.Contains([]byte(list[len(list)-1].Kind+list[1].Kind), []byte(store.Requested)))
}

// zeros are bytes that take nothing when they are compressed.
type zeros struct{}

func (zeros) Read(into []byte) (int, error) { clear(into); return len(into), nil }

func TestZerosWithoutEndAreNotUnpackedBesideTheDatabase(t *testing.T) {
	opened := false
	a, e := archive(t, 64<<20, func(context.Context, string) (snapshot.Checked, error) { opened = true; return snapshot.Checked{}, nil })
	_, err := a.Take(t.Context(), snapshot.Subject{EnvironmentID: e.ID, ClusterID: "c", Kind: store.Requested}, func(_ context.Context, to io.Writer) error {
		_, err := io.Copy(to, zeros{})
		return err
	})
	require.ErrorContains(t, err, "the snapshot, for which a project has scratch space, has more than")
	require.False(t, opened)
	list, err := a.Snapshots(t.Context(), store.SnapshotFilter{})
	require.NoError(t, err)
	require.Empty(t, list)
}
