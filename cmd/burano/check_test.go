package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/burano/burano/gateway/etcdtest"
	"github.com/burano/burano/internal/scratch"
	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/orchestrator/snapshot"
)

// checks is a checker that runs this program, and the processes and files that it leaves.
type checks struct {
	*snapshot.Checker
	t       *testing.T
	scratch string
}

func newChecks(t *testing.T, idle time.Duration) *checks {
	t.Helper()
	t.Setenv(asProgram, "1")
	self, err := os.Executable()
	require.NoError(t, err)
	folder := t.TempDir()
	c := &checks{Checker: snapshot.NewChecker(self, scratch.New(folder, 1<<30), idle), t: t, scratch: folder}
	t.Cleanup(c.Close)
	return c
}

// processes are the running ones.
func (c *checks) processes() []int {
	c.t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(c.t, err)
	var found []int
	for _, one := range all {
		line, _ := os.ReadFile(one) // it may have ended
		if bytes.Contains(line, []byte("etcd\x00check\x00--scratch\x00"+c.scratch)) {
			id, err := strconv.Atoi(filepath.Base(filepath.Dir(one)))
			require.NoError(c.t, err)
			found = append(found, id)
		}
	}
	return found
}

// requireGone checks that nothing is left of processes: no zombie, and no file that they wrote.
func (c *checks) requireGone(processes ...int) {
	c.t.Helper()
	for _, id := range processes {
		require.NoDirExists(c.t, fmt.Sprintf("/proc/%d", id))
	}
	require.Empty(c.t, c.processes())
	left, err := os.ReadDir(c.scratch)
	require.NoError(c.t, err)
	require.Empty(c.t, left)
}

// awaitOne waits until one process checks a file, and returns its number. The file must be one that is never read to its end.
func (c *checks) awaitOne() int {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		begun, err := filepath.Glob(filepath.Join(c.scratch, "check-*", "etcd-*"))
		return err == nil && len(begun) == 1
	}, time.Minute, 5*time.Millisecond)
	found := c.processes()
	require.Len(c.t, found, 1)
	return found[0]
}

// neverRead is a file whose opening does not end.
func neverRead(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "snapshot")
	require.NoError(t, syscall.Mkfifo(file, 0o600))
	return file
}

// snapshots takes snapshots of an etcd, one after each further key.
func snapshots(t *testing.T, count int) []string {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{etcdtest.New(t).URL}, DialTimeout: 10 * time.Second})
	require.NoError(t, err)
	defer client.Close()
	folder := t.TempDir()
	files := make([]string, count)
	for i := range files {
		_, err := client.Put(t.Context(), fmt.Sprintf("/registry/%d", i), strings.Repeat("value", 5000))
		require.NoError(t, err)
		var content bytes.Buffer
		require.NoError(t, etcd.Snapshot(t.Context(), client, &content))
		files[i] = filepath.Join(folder, strconv.Itoa(i))
		require.NoError(t, os.WriteFile(files[i], content.Bytes(), 0o600))
	}
	return files
}

// damaged returns a damaged copy of a snapshot. With rightSum its sum is right, but its pages are wrong.
func damaged(t *testing.T, file string, rightSum bool) string {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	pages := content[:len(content)-sha256.Size]
	for i := 2 * os.Getpagesize(); i < len(pages); i++ {
		pages[i] ^= 0x55
	}
	if rightSum {
		sum := sha256.Sum256(pages)
		copy(content[len(pages):], sum[:])
	}
	to := filepath.Join(t.TempDir(), "damaged")
	require.NoError(t, os.WriteFile(to, content, 0o600))
	return to
}

func TestAProcessChecksSnapshotsUntilOneIsDamaged(t *testing.T) {
	c, whole := newChecks(t, time.Hour), snapshots(t, 3)
	var last snapshot.Checked
	for _, file := range whole {
		checked, err := c.Check(t.Context(), file)
		require.NoError(t, err)
		require.Greater(t, checked.Revision, last.Revision)
		last = checked
	}
	first := c.processes()
	require.Len(t, first, 1)
	for _, rightSum := range []bool{false, true} {
		file := damaged(t, whole[2], rightSum)
		output, err := program(t, "etcd", "check", file).CombinedOutput()
		require.Error(t, err)
		text, _, _ := strings.Cut(strings.TrimPrefix(string(output), "burano: "), "\n")
		_, err = c.Check(t.Context(), file)
		require.ErrorContains(t, err, text[:min(len(text), 40)], "what a process says that checks nothing else")
		c.requireGone(first...)
		checked, err := c.Check(t.Context(), whole[2])
		require.NoError(t, err)
		require.Equal(t, last, checked)
		require.Len(t, c.processes(), 1)
		require.NotEqual(t, first, c.processes())
		first = c.processes()
	}
}

func TestAProcessThatIsKilledWhileItChecksIsTheErrorOfThatSnapshot(t *testing.T) {
	c, whole := newChecks(t, time.Hour), snapshots(t, 1)[0]
	failed := make(chan error)
	go func() {
		_, err := c.Check(t.Context(), neverRead(t))
		failed <- err
	}()
	id := c.awaitOne()
	require.NoError(t, syscall.Kill(id, syscall.SIGKILL))
	require.EqualError(t, <-failed, "the process that opened it has ended (signal: killed)")
	c.requireGone(id)
	_, err := c.Check(t.Context(), whole)
	require.NoError(t, err)
}

func TestAProcessThatDiesWhileItWaitsIsNoSnapshotsError(t *testing.T) {
	c, whole := newChecks(t, time.Hour), snapshots(t, 1)[0]
	_, err := c.Check(t.Context(), whole)
	require.NoError(t, err)
	before := c.processes()
	require.Len(t, before, 1)
	require.NoError(t, syscall.Kill(before[0], syscall.SIGKILL))
	_, err = c.Check(t.Context(), whole)
	require.NoError(t, err)
	after := c.processes()
	require.Len(t, after, 1)
	require.NotEqual(t, before, after)
	c.Close()
	c.requireGone(before[0], after[0])
}

func TestACheckThatTakesTooLongEndsItsProcess(t *testing.T) {
	c := newChecks(t, time.Hour)
	late := errors.New("it took too long")
	ctx, cancel := context.WithCancelCause(t.Context())
	failed := make(chan error)
	go func() {
		_, err := c.Check(ctx, neverRead(t))
		failed <- err
	}()
	id := c.awaitOne()
	cancel(late)
	require.ErrorIs(t, <-failed, late)
	c.requireGone(id)
}

func TestAProcessWithNothingToCheckEnds(t *testing.T) {
	c, whole := newChecks(t, 50*time.Millisecond), snapshots(t, 1)[0]
	for range 2 {
		_, err := c.Check(t.Context(), whole)
		require.NoError(t, err)
		require.Eventually(t, func() bool { left, err := os.ReadDir(c.scratch); return err == nil && len(left) == 0 }, time.Minute, 5*time.Millisecond)
		c.requireGone()
	}
}

func TestManyChecksBesideEachOtherGetTheirOwnAnswers(t *testing.T) {
	c, whole := newChecks(t, time.Hour), snapshots(t, 6)
	torn := damaged(t, whole[0], true)
	var all sync.WaitGroup
	var mutex sync.Mutex
	revisions := map[int]int64{}
	for i, file := range whole {
		all.Go(func() {
			for _, one := range []string{file, torn, file} {
				checked, err := c.Check(t.Context(), one)
				if (err != nil) != (one == torn) {
					t.Errorf("snapshot %s: %v", one, err)
					return
				}
				mutex.Lock()
				revisions[i] = checked.Revision
				mutex.Unlock()
			}
		})
	}
	all.Wait()
	for i := 1; i < len(whole); i++ {
		require.Equal(t, revisions[0]+int64(i), revisions[i])
	}
	processes := c.processes()
	require.NotEmpty(t, processes)
	require.LessOrEqual(t, len(processes), len(whole))
	c.Close()
	c.requireGone(processes...)
}

func TestTheEndOfTheServerEndsAllChecks(t *testing.T) {
	c, whole := newChecks(t, time.Hour), snapshots(t, 1)[0]
	failed := make(chan error)
	go func() {
		_, err := c.Check(t.Context(), neverRead(t))
		failed <- err
	}()
	busy := c.awaitOne()
	_, err := c.Check(t.Context(), whole) // by another one, which waits from now on
	require.NoError(t, err)
	processes := c.processes()
	require.Len(t, processes, 2)
	require.True(t, slices.Contains(processes, busy))
	c.Close()
	require.ErrorIs(t, <-failed, context.Canceled)
	c.requireGone(processes...)
	_, err = c.Check(t.Context(), whole)
	require.Error(t, err)
	c.requireGone()
}

// So a server that is killed leaves no process behind.
func TestAProcessEndsWithItsInputWhileItChecks(t *testing.T) {
	scratch := t.TempDir()
	process := program(t, "etcd", "check", "--scratch", scratch)
	input, err := process.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, process.Start())
	_, err = fmt.Fprintln(input, neverRead(t))
	require.NoError(t, err)
	require.Eventually(t, func() bool { begun, err := os.ReadDir(scratch); return err == nil && len(begun) == 1 }, time.Minute, 5*time.Millisecond)
	require.NoError(t, input.Close())
	require.NoError(t, process.Wait())
}
