package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/burano/burano/internal/door"
)

// Snapshot writes the store of the client's one endpoint as it is now, followed by its SHA-256: the form that etcdutl restores. It has all changes that
// were acknowledged before. client's user is Root.
func Snapshot(ctx context.Context, client *clientv3.Client, to io.Writer) error {
	// After a linearizable read the member has applied all changes that any other member has acknowledged.
	err := patiently(ctx, "read from etcd before a snapshot", func(ctx context.Context) error {
		_, err := client.Get(ctx, quorumProbe)
		return err
	})
	if err != nil {
		return err
	}
	answer, err := client.SnapshotWithVersion(ctx)
	if err != nil {
		return fmt.Errorf("take a snapshot of etcd: %w", err)
	}
	_, err = io.Copy(to, door.Reader(answer.Snapshot, MostSnapshot, "the snapshot"))
	if err := errors.Join(err, answer.Snapshot.Close()); err != nil {
		return fmt.Errorf("read a snapshot of etcd: %w", err)
	}
	return nil
}

// Position is the last entry that a member has. When a majority is lost, the remaining member that is ahead has the last writes: raft elects by the same
// rule.
type Position struct {
	Term  uint64 `json:"term"`
	Index uint64 `json:"index"`
}

// Compare is positive where p is ahead of q.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Term, q.Term), cmp.Compare(p.Index, q.Index))
}
