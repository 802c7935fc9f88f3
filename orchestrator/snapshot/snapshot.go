// Package snapshot stores snapshots of clusters in the database, or in a container of the project's object store: compressed, sealed, and in
// pieces, so that neither memory nor a transaction ever holds a whole one. A snapshot stays only when it was read back from there and opened.
package snapshot

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"

	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/scratch"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

// How many bytes of a compressed snapshot are sealed together: in the database, and in a container, where each is an object.
const (
	pieceSize  = 256 << 10
	objectSize = 4 << 20
)

// Rows keep snapshots (store.Snapshots).
type Rows interface {
	BeginSnapshot(ctx context.Context, snapshot *store.Snapshot) error
	AddPiece(ctx context.Context, id string, number int64, sealed string) error
	KeepSnapshot(ctx context.Context, id string, revision, size int64) error
	Snapshots(ctx context.Context, filter store.SnapshotFilter) ([]store.Snapshot, error)
	Snapshot(ctx context.Context, id string) (store.Snapshot, error)
	Piece(ctx context.Context, id string, number int64) (string, bool, error)
	DeleteSnapshot(ctx context.Context, id string) error
	CountPiece(ctx context.Context, id string, number, size int64) error
	SnapshotPieces(ctx context.Context, id string) (store.Snapshot, error)
	HideSnapshot(ctx context.Context, id string) error
	Environment(ctx context.Context, id string) (store.Environment, error)
}

// Sealer makes pieces unreadable for a reader of the database alone (secret.Sealer).
type Sealer interface {
	Seal(owner string, value []byte) string
	Open(owner, sealed string) ([]byte, error)
}

// Checked is the result of opening a snapshot.
type Checked struct {
	Revision int64 `json:"revision"`
	Size     int64 `json:"size"`
}

// Objects are the objects in containers that projects share with this server (openstack.Service).
type Objects interface {
	PutObject(ctx context.Context, container, name string, content []byte) error
	Object(ctx context.Context, container, name string) (content []byte, found bool, err error)
	DeleteObject(ctx context.Context, container, name string) error
}

// Archive is safe for concurrent use.
type Archive struct {
	Rows
	objects Objects
	sealer  Sealer
	check   func(ctx context.Context, file string) (Checked, error)
	checks  chan struct{} // holds a token for each snapshot that is opened
	scratch *scratch.Budget
}

// How much room the opening of a snapshot takes: the file and twice its size besides, and etcd's first files (two segments of its log, of 64 MiB each).
const (
	roomPerByte = 3
	roomOfAny   = 192 << 20
)

// maxChecks is how many snapshots are opened at the same time: each takes a processor, and twice its size on the disk.
const maxChecks = 2

// New makes an archive; objects may be nil where no snapshot is in a container. check opens the snapshot that is in a file, as
// Checker.Check does. Room for that, the file's and the check's, is reserved in the budget.
func New(rows Rows, objects Objects, sealer Sealer, check func(ctx context.Context, file string) (Checked, error), budget *scratch.Budget) *Archive {
	return &Archive{Rows: rows, objects: objects, sealer: sealer, check: check, checks: make(chan struct{}, maxChecks), scratch: budget}
}

// Subject is the cluster of a snapshot, and its reason.
type Subject struct {
	// ProjectID and EnvironmentName are of a snapshot that was taken elsewhere; "" for the ones of the environment.
	ProjectID, EnvironmentName            string
	EnvironmentID, ClusterID, ClusterName string
	Kind                                  store.SnapshotKind
	Reason                                string // for a person
	Secrets                               []byte // the keys without which it cannot be used
	Backup                                string // the backup that it becomes a part of; "" for none
	// Keep is how many snapshots of this kind the cluster keeps; the oldest go. 0: all.
	Keep int
	// Stored is called when all is written and before it is opened. May be nil.
	Stored func()
	// Container is the address of the container that takes the pieces, "" for the database. When it cannot be written or read, the database
	// takes them after all, and Refused gets the reason; it may be nil.
	Container string
	Refused   func(why error)
	// Once is true if write can be called once only: then a failure of the container is the failure of the snapshot.
	Once bool
}

// Take stores the output of write as a snapshot, and returns it when it could be read back and opened. Where the project's quota is
// full, scheduled snapshots and the ones before changes replace the oldest such ones of the cluster.
func (a *Archive) Take(ctx context.Context, of Subject, write func(ctx context.Context, to io.Writer) error) (taken store.Snapshot, err error) {
	if of.ProjectID == "" {
		environment, err := a.Environment(ctx, of.EnvironmentID)
		if err != nil {
			return taken, err
		}
		of.ProjectID, of.EnvironmentName = environment.ProjectID, environment.Name
	}
	container := of.Container
	if a.objects == nil {
		container = ""
	}
	stored := func() {}
	if of.Stored != nil {
		stored = sync.OnceFunc(of.Stored)
	}
	for {
		taken = store.Snapshot{ProjectID: of.ProjectID, EnvironmentID: of.EnvironmentID, EnvironmentName: of.EnvironmentName, ClusterID: of.ClusterID,
			ClusterName: of.ClusterName, Kind: of.Kind, Reason: of.Reason, Secrets: string(of.Secrets), Container: container, BackupID: of.Backup}
		if container != "" {
			taken.PieceKey = secret.NewKey()
		}
		if taken.ID, err = a.take(ctx, taken, stored, write); err == nil {
			break
		}
		var elsewhere *containerError
		if errors.As(err, &elsewhere) && ctx.Err() == nil && !of.Once {
			container = ""
			if of.Refused != nil {
				of.Refused(err)
			}
			continue
		}
		if fault.KindOf(err) != fault.Forbidden || of.Kind == store.Requested || of.Backup != "" {
			return taken, err
		}
		made, drop := a.makeRoom(ctx, of)
		if drop != nil || !made {
			return taken, errors.Join(err, drop)
		}
	}
	if err := a.retain(ctx, of); err != nil {
		return taken, err
	}
	return a.Snapshot(ctx, taken.ID)
}

// Try writes an object into a container, and removes it again: an error means that the container takes no snapshots.
func (a *Archive) Try(ctx context.Context, container string) error {
	if a.objects == nil {
		return errors.New("this Burano uses no object store")
	}
	name := "trial-" + store.NewID()
	if err := a.objects.PutObject(ctx, container, name, []byte("Burano looks whether it can write here.\n")); err != nil {
		return err
	}
	return a.objects.DeleteObject(ctx, container, name)
}

// compressors are kept because each takes most of a megabyte.
var compressors = sync.Pool{New: func() any {
	fast, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // an error is for unknown levels
	return fast
}}

func (a *Archive) take(ctx context.Context, begun store.Snapshot, stored func(), write func(ctx context.Context, to io.Writer) error) (id string, err error) {
	if err := a.BeginSnapshot(ctx, &begun); err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.DeleteSnapshot(context.WithoutCancel(ctx), begun.ID))
		}
	}()
	kept, err := a.placeOf(begun)
	if err != nil {
		return "", err
	}
	to := &pieces{place: kept, ctx: ctx}
	compressed := compressors.Get().(*gzip.Writer)
	compressed.Reset(to)
	defer func() {
		compressed.Reset(nil)
		compressors.Put(compressed)
	}()
	unpacked := &counter{to: a.bounded(compressed, begun)}
	if begun.Kind == store.ClaimFiles { // any other is opened to verify it
		unpacked.sum = sha256.New()
	}
	if err := write(ctx, unpacked); err != nil {
		if to.err != nil {
			return "", to.err // the cause
		}
		return "", err
	}
	if err := compressed.Close(); err != nil {
		return "", err
	}
	if err := to.flush(); err != nil {
		return "", err
	}
	stored()
	var checked Checked
	if begun.Kind == store.ClaimFiles {
		checked.Size, err = unpacked.bytes, a.compare(ctx, begun, unpacked)
	} else {
		checked, err = a.verify(ctx, begun, unpacked.bytes)
	}
	if err != nil {
		return "", fmt.Errorf("verify the snapshot: %w", err)
	}
	return begun.ID, a.KeepSnapshot(ctx, begun.ID, checked.Revision, checked.Size)
}

// mostFiles is how many bytes the archive of a claim's files has.
const mostFiles = 1 << 40

// bounded limits a snapshot to the room that its opening has: zeros take nothing when they are compressed. The files of claims are not opened here.
func (a *Archive) bounded(to io.Writer, of store.Snapshot) io.Writer {
	if of.Kind == store.ClaimFiles {
		return door.Writer(to, mostFiles, "the archive of a claim's files")
	}
	return door.Writer(to, max(0, a.scratch.Share()-roomOfAny)/roomPerByte, "the snapshot, for which a project has scratch space,")
}

// counter counts the written bytes.
type counter struct {
	to    io.Writer
	bytes int64
	sum   hash.Hash // of the bytes; nil where nobody asks for it
}

func (c *counter) Write(more []byte) (int, error) {
	n, err := c.to.Write(more)
	c.bytes += int64(n)
	if c.sum != nil {
		c.sum.Write(more[:n])
	}
	return n, err
}

// compare reads the stored snapshot, and compares it with the written bytes.
func (a *Archive) compare(ctx context.Context, of store.Snapshot, written *counter) error {
	content, err := a.Open(ctx, of.ID)
	if err != nil {
		return err
	}
	kept := &counter{to: io.Discard, sum: sha256.New()}
	_, err = io.Copy(kept, door.Reader(content, written.bytes, "what was kept of a claim's files"))
	if err = errors.Join(err, content.Close()); err != nil {
		return err
	}
	if !bytes.Equal(kept.sum.Sum(nil), written.sum.Sum(nil)) {
		return errors.New("what was kept of a claim's files is not what was written")
	}
	return nil
}

// verify opens a stored snapshot of so many bytes.
func (a *Archive) verify(ctx context.Context, of store.Snapshot, size int64) (checked Checked, err error) {
	room, err := a.scratch.Reserve(ctx, of.ProjectID, roomOfAny+roomPerByte*size)
	if err != nil {
		return checked, err
	}
	defer func() { err = errors.Join(err, room.Release()) }()
	select {
	case a.checks <- struct{}{}:
		defer func() { <-a.checks }()
	case <-ctx.Done():
		return checked, context.Cause(ctx)
	}
	file, err := room.File("snapshot-")
	if err != nil {
		return checked, err
	}
	content, err := a.Open(ctx, of.ID)
	if err == nil {
		_, err = io.Copy(file, door.Reader(content, size, "what was kept of the snapshot"))
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return checked, err
	}
	if checked, err = a.check(ctx, file.Name()); err != nil && ctx.Err() == nil {
		err = &Unusable{err}
	}
	return checked, err
}

// Unusable is the error of a snapshot that cannot be opened.
type Unusable struct{ error }

func (u *Unusable) Unwrap() error { return u.error }

// Open reads a snapshot in the form that etcdutl reads.
func (a *Archive) Open(ctx context.Context, id string) (io.ReadCloser, error) {
	row, err := a.SnapshotPieces(ctx, id)
	if err != nil {
		return nil, err
	}
	kept, err := a.placeOf(row)
	if err != nil {
		return nil, err
	}
	return gzip.NewReader(&reading{place: kept, ctx: ctx})
}

// DeleteSnapshot removes a snapshot with its pieces, whole or not; a missing one is no error. It is listed no more as soon as that begins.
// Where its container cannot be reached its row stays, hidden, so that it can be removed later.
func (a *Archive) DeleteSnapshot(ctx context.Context, id string) error {
	row, err := a.SnapshotPieces(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if row.Container != "" && a.objects != nil {
		if err := a.HideSnapshot(ctx, id); err != nil {
			return err
		}
		for number := range row.Pieces {
			if err := a.objects.DeleteObject(ctx, row.Container, objectName(id, number)); err != nil {
				return fmt.Errorf("%w. The snapshot is listed no more, and what is left of it is removed later", err)
			}
		}
	}
	return a.Rows.DeleteSnapshot(ctx, id)
}

// makeRoom removes the oldest of the cluster's snapshots that no user requested, but never the newest one.
func (a *Archive) makeRoom(ctx context.Context, of Subject) (made bool, err error) {
	list, err := a.Snapshots(ctx, store.SnapshotFilter{EnvironmentID: of.EnvironmentID, ClusterID: of.ClusterID})
	if err != nil {
		return false, err
	}
	for i := len(list) - 1; i > 0; i-- {
		if list[i].Kind != store.Requested && list[i].BackupID == "" {
			return true, a.DeleteSnapshot(ctx, list[i].ID)
		}
	}
	return false, nil
}

// retain removes the oldest snapshots of a kind if a cluster has too many of them.
func (a *Archive) retain(ctx context.Context, of Subject) error {
	if of.Keep <= 0 {
		return nil
	}
	list, err := a.Snapshots(ctx, store.SnapshotFilter{EnvironmentID: of.EnvironmentID, ClusterID: of.ClusterID})
	if err != nil {
		return err
	}
	kept := 0
	for _, one := range list {
		if one.Kind != of.Kind {
			continue
		}
		if kept++; kept > of.Keep {
			if err := a.DeleteSnapshot(ctx, one.ID); err != nil {
				return err
			}
		}
	}
	return nil
}
