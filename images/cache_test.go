package images

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}

func treeKey(t *testing.T, folder string) string {
	t.Helper()
	key := newKey()
	require.NoError(t, key.addTree(folder, isSource))
	return key.String()
}

func TestAKeyChangesWithTheSourcesAndWithNothingElse(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "go.mod"), "module a")
	write(t, filepath.Join(folder, "b", "main.go"), "package main")
	before := treeKey(t, folder)

	write(t, filepath.Join(folder, "b", "main_test.go"), "package main")
	write(t, filepath.Join(folder, "README.md"), "read me")
	require.NoError(t, os.Chtimes(filepath.Join(folder, "go.mod"), time.Unix(0, 0), time.Unix(0, 0)))
	require.NoError(t, os.Chmod(filepath.Join(folder, "go.mod"), 0o600))
	require.Equal(t, before, treeKey(t, folder), "tests, texts, times and what Git does not keep are no inputs")

	copied := filepath.Join(t.TempDir(), "clone")
	require.NoError(t, os.CopyFS(copied, os.DirFS(folder)))
	require.Equal(t, before, treeKey(t, copied), "another clone gives the same")

	write(t, filepath.Join(folder, "b", "main.go"), "package main //")
	changed := treeKey(t, folder)
	require.NotEqual(t, before, changed)
	require.NoError(t, os.Rename(filepath.Join(folder, "b"), filepath.Join(folder, "c")))
	require.NotEqual(t, changed, treeKey(t, folder))
}

func TestAKeyChangesWithAFileOfAnotherFolderThatIsLinked(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "newest", "main.go"), "package main")
	require.NoError(t, os.Mkdir(filepath.Join(folder, "former"), 0o755))
	require.NoError(t, os.Symlink("../newest/main.go", filepath.Join(folder, "former", "main.go")))
	before := treeKey(t, filepath.Join(folder, "former"))
	write(t, filepath.Join(folder, "newest", "main.go"), "package main // changed")
	require.NotEqual(t, before, treeKey(t, filepath.Join(folder, "former")))
}

func TestDifferentListsOfPartsHaveDifferentKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.String())
		one, other := parts.Draw(t, "one"), parts.Draw(t, "other")
		first, second := newKey(), newKey()
		first.add(one...)
		second.add(other...)
		require.Equal(t, slices.Equal(one, other), first.String() == second.String())
	})
}

func newCache(t *testing.T) (*cache, *progress, *strings.Builder) {
	t.Helper()
	var said strings.Builder
	progress := newProgress(&said, 3)
	cache, err := openCache(t.Context(), t.TempDir(), progress)
	require.NoError(t, err)
	t.Cleanup(cache.close)
	return cache, progress, &said
}

func keyOf(text string) string {
	key := newKey()
	key.add(text)
	return key.String()
}

func TestAPieceIsMadeOnceAndSaysSo(t *testing.T) {
	cache, progress, said := newCache(t)
	makes := 0
	makePiece := func(text string) piece {
		piece, err := cache.piece(progress, "thing", keyOf(text), "making it", func(folder string, _ io.Writer) error {
			makes++
			return os.WriteFile(filepath.Join(folder, "content"), []byte(text), 0o644)
		})
		require.NoError(t, err)
		return piece
	}
	first := makePiece("one")
	require.Equal(t, first, makePiece("one"))
	require.Equal(t, 1, makes)
	require.NotEqual(t, first, makePiece("two"))
	require.Equal(t, 2, makes)
	require.FileExists(t, filepath.Join(first.folder, "content"))

	require.Regexp(t, `^\[ 1 of 3\] thing: making it\n\[ 1 of 3\] thing: done, \d+\.\d s\n\[ 2 of 3\] thing: unchanged, kept\n\[ 3 of 3\]`, said.String())
	made, kept := progress.counts()
	require.Equal(t, []int{2, 1}, []int{made, kept})
}

func TestAFailedPieceIsNotKeptAndItsErrorHasTheEndOfTheOutput(t *testing.T) {
	cache, progress, _ := newCache(t)
	_, err := cache.piece(progress, "thing", keyOf("a"), "making it", func(folder string, output io.Writer) error {
		write(t, filepath.Join(folder, "half"), "")
		for range 100 {
			_, _ = io.WriteString(output, "early line\n")
		}
		_, _ = io.WriteString(output, "main.go:1: expected 'package'")
		return errors.New("exit status 1")
	})
	require.ErrorContains(t, err, `step "thing" failed after 0 s: exit status 1; the end of its output:`)
	require.ErrorContains(t, err, "main.go:1: expected 'package'")
	require.Less(t, strings.Count(err.Error(), "early line"), 30)
	_, found := cache.find("thing", keyOf("a"))
	require.False(t, found)
	left, globErr := filepath.Glob(filepath.Join(cache.folder, "making-*"))
	require.NoError(t, globErr)
	require.Empty(t, left)
}

func TestWhatAnInterruptedBuildLeavesIsRemoved(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "making-thing-123", "half"), "")
	cache, err := openCache(t.Context(), folder, newProgress(nil, 0))
	require.NoError(t, err)
	defer cache.close()
	require.NoDirExists(t, filepath.Join(folder, "making-thing-123"))
}

func TestMountsOfAKilledProgramAreGone(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root mounts")
	}
	folder := t.TempDir()
	at := filepath.Join(folder, "making-thing-123", "proc")
	require.NoError(t, os.MkdirAll(at, 0o755))
	command := exec.CommandContext(t.Context(), "sh", "-c", `mount -t proc proc "$1" && echo mounted && kill -KILL $$`, "sh", at)
	said := &strings.Builder{}
	require.ErrorContains(t, runCommand(command, said), "signal: killed")
	require.Equal(t, "mounted\n", said.String())
	cache, err := openCache(t.Context(), folder, newProgress(nil, 0))
	require.NoError(t, err)
	defer cache.close()
	require.NoDirExists(t, filepath.Dir(at))
}

func TestASecondBuildWaitsForTheFirst(t *testing.T) {
	folder := t.TempDir()
	first, err := openCache(t.Context(), folder, newProgress(nil, 0))
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	said, heard := io.Pipe()
	failed := make(chan error, 1)
	go func() {
		_, err := openCache(ctx, folder, newProgress(heard, 0))
		failed <- err
	}()
	line := make([]byte, 100)
	n, err := said.Read(line)
	require.NoError(t, err)
	require.Contains(t, string(line[:n]), "another build uses the cache")
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)

	first.close()
	second, err := openCache(t.Context(), folder, newProgress(nil, 0))
	require.NoError(t, err)
	second.close()
}

func TestOnlyTheYoungestGenerationsAreKept(t *testing.T) {
	cache, _, _ := newCache(t)
	var pieces []piece
	for age, text := range []string{"newest", "older", "oldest"} {
		piece, err := cache.make("thing", keyOf(text), func(string) error { return nil })
		require.NoError(t, err)
		then := time.Now().Add(-time.Duration(age) * time.Hour)
		require.NoError(t, os.Chtimes(piece.folder, then, then))
		pieces = append(pieces, piece)
	}
	other, err := cache.make("other-thing", keyOf("oldest"), func(string) error { return nil })
	require.NoError(t, err)
	cache.sweep()
	require.DirExists(t, pieces[0].folder)
	require.DirExists(t, pieces[1].folder)
	require.NoDirExists(t, pieces[2].folder)
	require.DirExists(t, other.folder)
}

func TestTheTailOfAnOutputIsItsLastLines(t *testing.T) {
	tail := newTail()
	for _, part := range []string{"one\ntw", "o\n\n", "10 %\r20 %\rthree"} {
		n, err := tail.Write([]byte(part))
		require.NoError(t, err)
		require.Equal(t, len(part), n)
	}
	require.Equal(t, "one\ntwo\n20 %\nthree", tail.String())
	require.Equal(t, "three", tail.last())
	_, _ = tail.Write([]byte(" and four\n"))
	require.Equal(t, "three and four", tail.last())
	_, _ = io.WriteString(tail, strings.Repeat("x", 500)+"\n")
	require.Len(t, []rune(tail.last()), 101)
	require.Empty(t, newTail().last())
}
