package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Snapshot writes the store of the client's one endpoint as it is now, followed by its SHA-256, which is what etcdutl restores. It has all
// that was acknowledged before. client's user is Root.
func Snapshot(ctx context.Context, client *clientv3.Client, to io.Writer) error {
	// After a linearizable read the member has applied what any other has acknowledged.
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
	_, err = io.Copy(to, answer.Snapshot)
	if err := errors.Join(err, answer.Snapshot.Close()); err != nil {
		return fmt.Errorf("read a snapshot of etcd: %w", err)
	}
	return nil
}
