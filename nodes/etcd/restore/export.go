package restore

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"

	"github.com/burano/burano/nodes/etcd"
)

// PositionOf reads from a member's data how far it has come. The member need not run: without a majority it does not start to serve.
func PositionOf(data string) (etcd.Position, error) {
	_, position, _, err := readLog(data, wal.OpenForRead)
	return position, err
}

// readLog reads the log of a member that is opened so.
func readLog(data string, open func(*zap.Logger, string, walpb.Snapshot) (*wal.WAL, error)) (*wal.WAL, etcd.Position, raftpb.HardState, error) {
	folder := filepath.Join(data, "member", "wal")
	failed := func(err error) (*wal.WAL, etcd.Position, raftpb.HardState, error) {
		return nil, etcd.Position{}, raftpb.HardState{}, fmt.Errorf("read the log of the etcd member in %s: %w", data, err)
	}
	snapshots, err := wal.ValidSnapshotEntries(zap.NewNop(), folder)
	if err != nil {
		return failed(err)
	}
	if len(snapshots) == 0 {
		return failed(errors.New("it has no beginning"))
	}
	from := snapshots[len(snapshots)-1]
	log, err := open(zap.NewNop(), folder, from)
	if err != nil {
		return failed(err)
	}
	_, state, entries, err := log.ReadAll()
	if err != nil {
		return failed(err)
	}
	position := etcd.Position{Term: from.Term, Index: from.Index}
	if len(entries) > 0 {
		last := entries[len(entries)-1]
		position = etcd.Position{Term: last.Term, Index: last.Index}
	}
	return log, position, state, nil
}

// acknowledge has a member take all entries that it has for acknowledged. A member hears of that a moment after an entry was, so one that
// died in between has acknowledged entries that it does not know to be.
func acknowledge(data string) (etcd.Position, error) {
	log, position, state, err := readLog(data, wal.Open)
	if err != nil {
		return position, err
	}
	state.Commit = position.Index
	return position, errors.Join(log.Save(state, nil), log.Close())
}

// Export writes a full snapshot of a member that does not run. The member's data do not change: they are copied below scratch, and a separate etcd applies
// the entries to the copy that are only in the log. No majority is needed for that.
func Export(ctx context.Context, data, file, scratch string) (err error) {
	folder, err := os.MkdirTemp(scratch, "etcd-")
	if err != nil {
		return fmt.Errorf("export the etcd member in %s: %w", data, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	copied := filepath.Join(folder, "data")
	if err := os.CopyFS(copied, os.DirFS(data)); err != nil {
		return fmt.Errorf("copy the data of the etcd member: %w", err)
	}
	if err := os.Chmod(copied, 0o700); err != nil {
		return err
	}
	position, err := acknowledge(copied)
	if err != nil {
		return err
	}
	opened, err := open(ctx, copied, func(server *etcdserver.EtcdServer) bool { return server.AppliedIndex() >= position.Index })
	if err != nil {
		return err
	}
	defer opened.HardStop()
	to, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	sum := sha256.New()
	snapshot := opened.Backend().Snapshot()
	_, err = snapshot.WriteTo(io.MultiWriter(to, sum))
	if err == nil {
		_, err = to.Write(sum.Sum(nil))
	}
	if err := errors.Join(err, snapshot.Close(), to.Sync(), to.Close()); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}
