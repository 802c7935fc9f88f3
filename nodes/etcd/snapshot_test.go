package etcd_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/etcd/restore"
)

// snapshot takes one of a node's member into a file.
func (c *cluster) snapshot(node etcd.Node) string {
	c.t.Helper()
	file, err := os.CreateTemp(c.t.TempDir(), "snapshot-")
	require.NoError(c.t, err)
	require.NoError(c.t, etcd.Snapshot(c.t.Context(), c.client(etcd.Root, node.ClientURL()), file))
	require.NoError(c.t, file.Close())
	return file.Name()
}

// restore has a node's member begin with a snapshot.
func (c *cluster) restore(node etcd.Node, file string) {
	c.t.Helper()
	data := filepath.Join(c.dirs[node.Name], etcd.DataDir)
	require.NoError(c.t, os.RemoveAll(data))
	require.NoError(c.t, restore.Member(file, data, node, "restored"))
	require.NoError(c.t, os.Chmod(data, 0o700))
	c.start(node, map[string]string{node.Name: node.PeerURL()}, "new")
}

func (c *cluster) holds(client *clientv3.Client, want ...string) {
	c.t.Helper()
	c.answers(client)
	var found []string
	answer, err := client.Get(c.t.Context(), "/registry/kept/", clientv3.WithPrefix())
	require.NoError(c.t, err)
	for _, pair := range answer.Kvs {
		found = append(found, string(pair.Value))
	}
	require.Equal(c.t, want, found)
}

func TestAClusterWhoseMembersAreAllGoneIsBackFromItsSnapshotAndTheOthersJoin(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	root := c.bootstrap()
	c.join(root, c.nodes[1], c.nodes[2])
	for i := range 300 {
		_, err := root.Put(t.Context(), "/registry/kept/1", fmt.Sprint(i))
		require.NoError(t, err)
	}
	before, err := root.Get(t.Context(), "/registry/kept/1")
	require.NoError(t, err)
	file := c.snapshot(c.nodes[2])
	checked, err := restore.Check(t.Context(), file, t.TempDir())
	require.NoError(t, err)
	require.GreaterOrEqual(t, checked.Revision, before.Header.Revision, "all that was written before is in it, whichever member is asked")
	_, err = root.Put(t.Context(), "/registry/kept/2", "too late")
	require.NoError(t, err)
	for _, node := range c.nodes {
		c.stop(node)
		require.NoError(t, os.RemoveAll(filepath.Join(c.dirs[node.Name], etcd.DataDir)))
	}

	c.restore(c.nodes[1], file) // another one than the first
	root = c.client(etcd.Root, c.nodes[1].ClientURL())
	c.holds(root, "299")
	c.join(root, c.nodes[0], c.nodes[2])
	members, err := etcd.Members(t.Context(), root)
	require.NoError(t, err)
	require.Len(t, members.Voters(c.nodes), 3)
	server := c.client(etcd.APIServer, c.nodes[0].ClientURL())
	c.holds(server, "299")
	requireAllowed(t, false, func() error { _, err := server.Get(t.Context(), "/calico/"); return err }(), "permissions are restored, too")
	watch := root.Watch(t.Context(), "/registry/kept/", clientv3.WithPrefix(), clientv3.WithRev(before.Header.Revision))
	require.Positive(t, (<-watch).CompactRevision, "whoever remembers a revision of before reads all again")
}

func TestTheBestMemberThatIsLeftHasWhatWasWrittenLast(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5)
	root := c.bootstrap()
	c.join(root, c.nodes[1:]...)
	c.stop(c.nodes[4]) // it stays behind
	for i := range 10 {
		_, err := root.Put(t.Context(), "/registry/kept/1", fmt.Sprint(i))
		require.NoError(t, err)
	}
	for _, node := range c.nodes[:4] {
		c.stop(node)
	}
	// The remaining members are started again, as after a power failure. Alone they serve no client.
	c.start(c.nodes[4], nil, "existing")
	c.start(c.nodes[3], nil, "existing")
	data := func(node etcd.Node) string { return filepath.Join(c.dirs[node.Name], etcd.DataDir) }
	positions := map[string]etcd.Position{}
	for _, node := range c.nodes[3:] {
		position, err := restore.PositionOf(data(node))
		require.NoError(t, err)
		positions[node.Name] = position
	}
	require.Positive(t, positions["node-4"].Compare(positions["node-5"]), "%v", positions)
	c.stop(c.nodes[4])
	c.stop(c.nodes[3])
	file := filepath.Join(t.TempDir(), "exported")
	require.NoError(t, restore.Export(t.Context(), data(c.nodes[3]), file, t.TempDir()))
	_, err := restore.Check(t.Context(), file, t.TempDir())
	require.NoError(t, err)
	after, err := restore.PositionOf(data(c.nodes[3]))
	require.NoError(t, err)
	require.Equal(t, positions["node-4"], after, "the member's data stay as they are")
	c.restore(c.nodes[0], file)
	c.holds(c.client(etcd.Root), "9")
	// A member of the former cluster that comes back is of another cluster, and changes nothing.
	c.start(c.nodes[3], nil, "existing")
	c.holds(c.client(etcd.Root), "9")
}

// TestASnapshotIsCheckedWhereTheWorkingDirectoryIsReadOnly does so in a process of its own, as under the package's unit, whose working directory is the root.
func TestASnapshotIsCheckedWhereTheWorkingDirectoryIsReadOnly(t *testing.T) {
	t.Parallel()
	const variable = "BURANO_TEST_SNAPSHOT"
	if file := os.Getenv(variable); file != "" {
		_, err := restore.Check(t.Context(), file, t.TempDir())
		require.NoError(t, err)
		return
	}
	c := newCluster(t, 1)
	_, err := c.bootstrap().Put(t.Context(), "/registry/kept/1", "1")
	require.NoError(t, err)
	program, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", `mount -t tmpfs -o ro none "$1"; cd "$1"; exec "$2" -test.run "^$3$"`, "sh",
		t.TempDir(), program, t.Name())
	command.Env = append(os.Environ(), variable+"="+c.snapshot(c.nodes[0]))
	output, err := command.CombinedOutput()
	require.NoErrorf(t, err, "%s", output)
}

func TestADamagedSnapshotIsFoundOut(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	root := c.bootstrap()
	for i := range 100 {
		_, err := root.Put(t.Context(), fmt.Sprint("/registry/", i), "value")
		require.NoError(t, err)
	}
	whole := c.snapshot(c.nodes[0])
	content, err := os.ReadFile(whole)
	require.NoError(t, err)
	for name, damaged := range map[string][]byte{
		"cut off":     content[:len(content)/2],
		"without sum": content[:len(content)-32],
		"another":     append(append(append([]byte{}, content[:len(content)-33]...), content[len(content)-33]^1), content[len(content)-32:]...),
		"empty":       nil,
	} {
		file := filepath.Join(t.TempDir(), "snapshot")
		require.NoError(t, os.WriteFile(file, damaged, 0o600))
		_, err := restore.Check(t.Context(), file, t.TempDir())
		require.Error(t, err, name)
	}
	scratch := t.TempDir()
	_, err = restore.Check(t.Context(), whole, scratch)
	require.NoError(t, err)
	left, err := fs.ReadDir(os.DirFS(scratch), ".")
	require.NoError(t, err)
	require.Empty(t, left)
}
