// Package restore opens snapshots of etcd: to see that they are whole, and to begin the data of a member with them. It is apart from
// package etcd because it is etcd itself, which only the programs need that open snapshots, each in a process of its own: a damaged
// file may end that process.
package restore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/config"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/features"
	"go.uber.org/zap"

	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes/etcd"
)

// Checked describes a checked snapshot.
type Checked struct {
	Revision int64  `json:"revision"`
	Keys     int    `json:"keys"`
	Size     int64  `json:"size"` // bytes of the store
	Hash     uint32 `json:"hash"` // of the store, as etcdutl snapshot status prints it
}

// The name and address of an etcd that cannot be reached: it listens nowhere.
const (
	scratchName = "scratch"
	scratchPeer = "http://127.0.0.1:2380"
)

// startPatience is how long etcd may take to begin with a snapshot.
const startPatience = time.Minute

// Check finds out whether a snapshot can be restored: its sum is right, its pages are consistent, and a separate etcd starts with it and holds the
// expected keys. All files that it writes lie below a folder that it removes, of the snapshot's size.
func Check(ctx context.Context, file, scratch string) (checked Checked, err error) {
	folder, err := os.MkdirTemp(scratch, "etcd-")
	if err != nil {
		return checked, fmt.Errorf("check a snapshot: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	data := filepath.Join(folder, "data")
	if err := begin(file, data, scratchName, scratchPeer, scratchName, 0); err != nil { // which compares its sum
		return checked, err
	}
	status, err := snapshot.NewV3(zap.NewNop()).Status(file)
	if err != nil {
		return checked, fmt.Errorf("the snapshot is damaged: %w", err)
	}
	if status.Revision < 1 {
		return checked, errors.New("the snapshot is empty")
	}
	opened, err := open(ctx, data, nil)
	if err != nil {
		return checked, err
	}
	defer opened.HardStop()
	if found := opened.KV().Rev(); found != status.Revision {
		return checked, fmt.Errorf("etcd started with the snapshot is at revision %d; the snapshot has %d", found, status.Revision)
	}
	if _, _, err := opened.KV().HashStorage().HashByRev(status.Revision); err != nil {
		return checked, fmt.Errorf("read all of the snapshot: %w", err)
	}
	return Checked{Revision: status.Revision, Keys: status.TotalKey, Size: status.TotalSize, Hash: status.Hash}, nil
}

// open starts an etcd that cannot be reached over the data of a member, until it serves, or until wanted is true. It is etcd's inner server: package embed
// would bring its listeners, its gateway and its tracing into the program.
func open(ctx context.Context, data string, wanted func(*etcdserver.EtcdServer) bool) (*etcdserver.EtcdServer, error) {
	said, err := url.Parse(scratchPeer)
	if err != nil {
		return nil, err
	}
	opened, err := etcdserver.NewServer(config.ServerConfig{
		Name: scratchName, DataDir: data, PeerURLs: []url.URL{*said}, ClientURLs: []url.URL{*said},
		MaxLearners: etcd.MaxLearners,                    // the log has all that were added, and one that is refused would be missed
		TickMs:      10, ElectionTicks: 5, PreVote: true, // it is the only voter, so it waits for nothing
		UnsafeNoFsync: true, // its data are removed when it ends
		Logger:        zap.NewNop(), V2Deprecation: config.V2Depr1WriteOnly, WarningApplyDuration: time.Minute, MaxRequestBytes: 2 << 20,
		ServerFeatureGate: features.NewDefaultServerFeatureGate(scratchName, zap.NewNop()),
	})
	if err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	opened.Start()
	err = wait.Every(20*time.Millisecond).For(startPatience).Until(ctx, func(context.Context) error {
		if wanted != nil && wanted(opened) {
			return nil
		}
		select {
		case <-opened.ReadyNotify():
			return nil
		case <-opened.StopNotify():
			return errors.New("it has stopped")
		default:
			return wait.Again(errors.New("it is not ready"))
		}
	})
	if err != nil {
		opened.HardStop()
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	return opened, nil
}

// revisionBump is by how much a restore raises revisions: more than were written after the snapshot. So a client that remembers a lost revision finds it
// compacted and reads all again (https://etcd.io/docs/v3.6/op-guide/recovery/).
const revisionBump = 1_000_000_000

// Member begins the data of a member with a snapshot. It is the first member of a new cluster, whose id comes from the token, so that members of the
// former cluster which still run do not reach it.
func Member(file, data string, node etcd.Node, token string) error {
	return begin(file, data, node.Name, node.PeerURL(), token, revisionBump)
}

func begin(file, data, name, peer, token string, bump uint64) error {
	err := snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath: file, Name: name, OutputDataDir: data, PeerURLs: []string{peer}, InitialCluster: name + "=" + peer, InitialClusterToken: token,
		RevisionBump: bump, MarkCompacted: bump > 0,
	})
	if err != nil {
		return fmt.Errorf("restore the snapshot: %w", err)
	}
	return nil
}
