package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/burano/burano/orchestrator/snapshot"
	"github.com/burano/burano/orchestrator/store"
)

const (
	// uploadLook is how often an upload notes that it goes on, and uploadPatience is how long after its last note its remains are removed: its server died.
	uploadLook     = 30 * time.Second
	uploadPatience = 5 * time.Minute
)

// Upload is a backup that comes as a file, which is opened.
type Upload struct {
	ProjectID string
	Kind      store.SnapshotKind
	// Has reports whether the project has an environment of this id, which the backup then belongs to.
	Has func(ctx context.Context, environmentID string) (bool, error)
	// Admit is told the file's description before that is read, and Accept when it was.
	Admit  func(head []byte) error
	Accept func(File) error
	Now    time.Time
	// Container is the address of the project's container for snapshots, "" for the database; nil for the database, too. Its error is a warning of the backup.
	Container func(ctx context.Context) (address string, err error)
}

// inDatabase is the warning of a backup that is not in its project's object store.
const inDatabase = "The project's object store cannot be used: the backup is kept in the database"

// container is where the parts are kept, "" for the database. An upload is read once, so that its container is tried before.
func (b Backups) container(ctx context.Context, upload Upload) (address string, warnings []string) {
	if upload.Container == nil {
		return "", nil
	}
	address, err := upload.Container(ctx)
	if err == nil && address != "" {
		err = b.Archive.Try(ctx, address)
	}
	if err != nil {
		return "", []string{inDatabase + ": " + err.Error()}
	}
	return address, nil
}

// Read stores the backup that a file has, and returns it when all of it was read back. Whatever is wrong with the file, nothing of it stays.
func (b Backups) Read(ctx context.Context, upload Upload, from io.Reader) (made store.Backup, err error) {
	file, err := openFile(from, upload.Admit)
	if err == nil {
		err = upload.Accept(file.File)
	}
	if err == nil {
		err = b.Admit(ctx, upload.ProjectID, file.Stored)
	}
	if err != nil {
		return made, err
	}
	moment := min(file.Created.UnixMicro(), upload.Now.UnixMicro())
	made = store.Backup{ProjectID: upload.ProjectID, EnvironmentName: file.EnvironmentName, Kind: upload.Kind, Reason: file.Reason, Held: file.Held, Model: store.Model{Objects: file.Objects, Packages: file.Packages},
		Parts: store.BackupContents{Secrets: file.Secrets, Missing: file.Missing, Warnings: file.Warnings}}
	for _, one := range file.Attributes {
		made.Parts.Attributes = append(made.Parts.Attributes, store.Attribute{ObjectID: one.ObjectID, Class: one.Class, Name: one.Name, Value: string(one.Value)})
	}
	if has, err := upload.Has(ctx, file.EnvironmentID); err != nil {
		return made, err
	} else if has {
		made.EnvironmentID = file.EnvironmentID
	}
	container, warnings := b.container(ctx, upload)
	made.Parts.Warnings = append(made.Parts.Warnings, warnings...)
	if err := b.Begin(ctx, &made); err != nil {
		return made, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Delete(context.WithoutCancel(ctx), made.ID))
		}
	}()
	ctx, end := b.goesOn(ctx, made.ID)
	defer end()
	for _, cluster := range file.Clusters {
		kept, err := b.readCluster(ctx, made, file, cluster, container)
		if err != nil {
			return made, err
		}
		made.Parts.Clusters = append(made.Parts.Clusters, kept)
	}
	if err := file.end(); err != nil {
		return made, err
	}
	made.Created = store.Time(moment)
	if err := b.Rows.Keep(ctx, made); err != nil {
		return made, err
	}
	return b.Get(ctx, made.ID)
}

// goesOn notes that an upload goes on until its end is called. The context ends when that cannot be noted: its remains may be removed.
func (b Backups) goesOn(ctx context.Context, id string) (noted context.Context, end func()) {
	noted, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(uploadLook)
		defer ticker.Stop()
		for {
			select {
			case <-noted.Done():
				return
			case <-ticker.C:
				if err := b.Touch(noted, id); err != nil {
					cancel(fmt.Errorf("note that the upload of backup %s goes on: %w", id, err))
				}
			}
		}
	}()
	return noted, func() { cancel(nil); <-done }
}

// readCluster stores the parts of a cluster, which come next in the file.
func (b Backups) readCluster(ctx context.Context, of store.Backup, file *openedFile, cluster FileCluster, container string) (store.BackupCluster, error) {
	kept := store.BackupCluster{ObjectID: cluster.ObjectID, Class: cluster.Class, Name: cluster.Name}
	subject := snapshot.Subject{ProjectID: of.ProjectID, EnvironmentID: of.EnvironmentID, EnvironmentName: of.EnvironmentName, ClusterID: cluster.ObjectID, ClusterName: cluster.Name, Kind: store.OfBackup,
		Reason: "of backup " + of.ID, Backup: of.ID, Secrets: cluster.Keys, Container: container, Once: true}
	var checksum string
	write := func(_ context.Context, to io.Writer) (err error) {
		checksum, err = file.part(to)
		return err
	}
	taken, err := b.Archive.Take(ctx, subject, write)
	var unusable *snapshot.Unusable
	if errors.As(err, &unusable) {
		return kept, damaged("the snapshot of cluster %s cannot be opened: %w", cluster.Name, unusable)
	}
	if err != nil {
		return kept, err
	}
	kept.Snapshot = taken.ID
	subject.Kind, subject.Secrets = store.ClaimFiles, nil
	for _, claim := range cluster.Claims {
		taken, err := b.Archive.Take(ctx, subject, write)
		if err != nil {
			return kept, err
		}
		if checksum != claim.Checksum {
			return kept, damaged("the files of claim %s/%s are others than it says", claim.Namespace, claim.Name)
		}
		claim.Content = taken.ID
		kept.Claims = append(kept.Claims, claim)
	}
	return kept, nil
}
