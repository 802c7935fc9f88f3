package scratch

import (
	"bytes"
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/fault"
)

func budget(t *testing.T, limit int64) *Budget {
	b := New(t.TempDir(), limit)
	b.free = func() (int64, error) { return 1 << 40, nil }
	return b
}

func TestAProjectHasHalfOfTheRoomAndOthersHaveTheirs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget(t, 100<<20)
		_, err := b.Reserve(t.Context(), "one", 51<<20)
		require.Equal(t, fault.TooLarge, fault.KindOf(err))
		require.ErrorContains(t, err, "it needs 51 MiB for temporary files, and a project may have 50 MiB at a time")
		first, err := b.Reserve(t.Context(), "one", 40<<20)
		require.NoError(t, err)
		require.False(t, b.Fits("one", 20<<20))
		_, err = b.Reserve(t.Context(), "one", 20<<20)
		require.ErrorContains(t, err, "the project has 40 MiB of the 50 MiB that it may have")
		began := time.Now()
		other, err := b.Reserve(t.Context(), "two", 50<<20)
		require.NoError(t, err)
		require.Zero(t, time.Since(began), "another project does not wait for it")
		_, err = b.Reserve(t.Context(), "three", 20<<20)
		require.ErrorContains(t, err, "90 MiB of the server's 100 MiB are taken")

		go func() {
			<-time.After(time.Minute)
			_ = other.Release()
		}()
		third, err := b.Reserve(t.Context(), "three", 20<<20)
		require.NoError(t, err, "it waits for room")
		for _, room := range []*Room{first, third} {
			require.NoError(t, room.Release())
			require.NoError(t, room.Release(), "twice is as good as once")
		}
		require.Zero(t, b.all)
		require.Empty(t, b.taken)

		_, err = b.Reserve(t.Context(), "one", 50<<20)
		require.NoError(t, err)
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("the task ends"))
		_, err = b.Reserve(ended, "one", 1)
		require.ErrorContains(t, err, "the task ends")
	})
}

func TestTheDiskKeepsSomeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget(t, 100<<30)
		b.free = func() (int64, error) { return kept + 100<<20, nil }
		_, err := b.Reserve(t.Context(), "one", 100<<20)
		require.NoError(t, err)
		_, err = b.Reserve(t.Context(), "two", 1<<20)
		require.ErrorContains(t, err, "make room there")
	})
}

func TestAFileTakesNoMoreThanItsRoomAndGoesWithIt(t *testing.T) {
	b := New(t.TempDir(), 1<<20)
	room, err := b.Reserve(t.Context(), "one", 10)
	require.NoError(t, err)
	file, err := room.File("kept-")
	require.NoError(t, err)
	info, err := os.Stat(file.Name())
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	n, err := file.Write(bytes.Repeat([]byte("x"), 20))
	require.True(t, door.IsExceeded(err))
	require.Equal(t, 10, n)
	require.NoError(t, file.Close())
	moved, err := room.File("moved-")
	require.NoError(t, err)
	require.NoError(t, moved.Close())
	require.NoError(t, os.Rename(moved.Name(), moved.Name()+".tar"))
	require.NoError(t, room.Release())
	require.NoFileExists(t, file.Name())
	require.FileExists(t, moved.Name()+".tar")
}
