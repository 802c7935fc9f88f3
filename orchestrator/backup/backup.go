// Package backup keeps whole environments as they were at one moment (their model, the state of their clusters, and the files of their claims), and fills claims of
// environments that are made anew with what they had.
package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes/claimdata"
	"github.com/burano/burano/orchestrator/snapshot"
	"github.com/burano/burano/orchestrator/store"
)

// uploads is how many claims of a cluster are kept at the same time.
const uploads = 3

// AttributeFilledFrom is the name of the attribute of a cluster whose claims are to have the files of a backup before pods use them: the backup's id, and none when they have.
const AttributeFilledFrom = "filled from backup"

// Rows are the records of backups (store.Backups).
type Rows interface {
	Begin(ctx context.Context, backup *store.Backup) error
	Keep(ctx context.Context, backup store.Backup) error
	List(ctx context.Context, filter store.BackupFilter) ([]store.Backup, error)
	Get(ctx context.Context, id string) (store.Backup, error)
	Parts(ctx context.Context, id string) ([]string, error)
	Remove(ctx context.Context, id string) error
	Kept(ctx context.Context, environmentID, prefix string) ([]store.Attribute, []string, error)
	Schedule(ctx context.Context, environmentID string) (store.BackupSchedule, bool, error)
	Drills(ctx context.Context, environmentID string, most int) ([]store.BackupDrill, error)
	Touch(ctx context.Context, id string) error
	Admit(ctx context.Context, projectID string, bytes int64) error
	Left(ctx context.Context, patience time.Duration) ([]store.LeftBackup, error)
	WaitedFor(ctx context.Context, attribute string) (map[string]string, error)
}

// Archive keeps the snapshots of clusters in a backup (snapshot.Archive).
type Archive interface {
	Take(ctx context.Context, of snapshot.Subject, write func(ctx context.Context, to io.Writer) error) (store.Snapshot, error)
	Open(ctx context.Context, id string) (io.ReadCloser, error)
	Snapshot(ctx context.Context, id string) (store.Snapshot, error)
	DeleteSnapshot(ctx context.Context, id string) error
	Try(ctx context.Context, container string) error
}

// Backups makes, lists and removes backups.
type Backups struct {
	Rows
	Archive Archive
}

// Cluster is a cluster of an environment.
type Cluster struct {
	ObjectID, Class, Name string // Class is that of the object
	Nodes                 claimdata.Nodes
	API                   kubernetes.Interface
	// Snapshot takes one of its etcd. of is completed there.
	Snapshot func(ctx context.Context, of snapshot.Subject) (store.Snapshot, error)
	// Container is where snapshots of it are kept, "" for the database, and Refused is told when they are not.
	Container string
	Refused   func(why error)
}

// Order is a backup that is to be made.
type Order struct {
	// Environment is the environment in the backup, with its deployed model.
	Environment store.Environment
	// Task makes it. Run again by another server, it begins anew.
	Task   string
	Kind   store.SnapshotKind
	Reason string
	// Incomplete allows claims that cannot be backed up, and applications for which Before fails.
	Incomplete bool
	// Contents are the attributes that code has kept with the objects.
	Contents store.BackupContents
	// Before lets applications write their memory to disk, and After ends the work that Before began. Each returns the failures.
	Before, After func(ctx context.Context) []string
	Report        func(ctx context.Context, text string)
	Step          claimdata.Step
	// Kept is how many scheduled backups of the environment stay; 0 for all.
	Kept int
}

// Contents are the attributes that code has kept with the objects of an environment: prefix begins the names of its attributes, and secret reads
// sealed values.
func (b Backups) Contents(ctx context.Context, environmentID, prefix string, secret func(ctx context.Context, name string) ([]byte, bool, error)) (contents store.BackupContents, err error) {
	attributes, names, err := b.Kept(ctx, environmentID, prefix)
	if err != nil {
		return contents, err
	}
	contents.Attributes, contents.Secrets = attributes, map[string][]byte{}
	for _, name := range names {
		value, found, err := secret(ctx, name)
		if err != nil {
			return contents, err
		}
		if found {
			contents.Secrets[name] = value
		}
	}
	return contents, nil
}

// Make makes a backup, and returns it after it was read back whole. It first removes the remains of a former run of the task, or of a former task.
func (b Backups) Make(ctx context.Context, order Order, clusters []Cluster) (made store.Backup, err error) {
	former, err := b.List(ctx, store.BackupFilter{TaskID: order.Task})
	if err != nil {
		return made, err
	}
	if len(former) > 0 && former[0].Whole != 0 {
		return former[0], nil
	}
	if err := b.EndFormer(ctx, order, clusters); err != nil {
		return made, err
	}
	claims := map[string][]claimdata.Claim{}
	err = order.Step(ctx, "look for claims", func(ctx context.Context) (err error) {
		claims, order.Contents.Missing, err = lookForClaims(ctx, clusters)
		return err
	})
	if err == nil {
		err = incomplete(order)
	}
	if err != nil {
		return made, err
	}
	model := store.Model{Objects: order.Environment.Model.Objects, Packages: order.Environment.Model.Packages}
	made = store.Backup{ProjectID: order.Environment.ProjectID, EnvironmentID: order.Environment.ID, EnvironmentName: order.Environment.Name, TaskID: order.Task,
		Kind: order.Kind, Reason: order.Reason, Model: model, Parts: order.Contents}
	if err := b.Begin(ctx, &made); err != nil {
		return made, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Delete(context.WithoutCancel(ctx), made.ID))
		}
	}()
	for _, cluster := range clusters {
		kept, held, err := b.cluster(ctx, order, made.ID, cluster, claims[cluster.ObjectID])
		if err != nil {
			return made, fmt.Errorf("back up cluster %s: %w", cluster.Name, err)
		}
		made.Parts.Clusters = append(made.Parts.Clusters, kept.BackupCluster)
		made.Parts.Warnings = append(made.Parts.Warnings, kept.warnings...)
		made.Held = max(made.Held, held.Milliseconds())
	}
	if err := order.Step(ctx, "keep the backup", func(ctx context.Context) error { return b.Rows.Keep(ctx, made) }); err != nil {
		return made, err
	}
	if err := b.retain(ctx, order); err != nil {
		order.Report(ctx, "Former backups that are not to be kept any more are still there: "+err.Error())
	}
	return b.Get(ctx, made.ID)
}

// EndFormer ends the backups of an environment that were not finished: its applications go on, and their remains in the clusters and here are removed. A node that cannot be reached is
// reported.
func (b Backups) EndFormer(ctx context.Context, order Order, clusters []Cluster) error {
	list, err := b.List(ctx, store.BackupFilter{EnvironmentID: order.Environment.ID})
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(one store.Backup) bool { return one.Whole != 0 || one.TaskID == "" })
	if len(list) == 0 {
		return nil
	}
	for _, warning := range order.After(ctx) {
		order.Report(ctx, warning)
	}
	for _, cluster := range clusters {
		if err := claimdata.Clean(ctx, cluster.API, cluster.Nodes); err != nil {
			order.Report(ctx, fmt.Sprintf("The remains of a backup that was not finished are still in cluster %s: %v", cluster.Name, err))
		}
	}
	for _, one := range list {
		if err := b.Delete(ctx, one.ID); err != nil {
			return err
		}
	}
	return nil
}

// lookForClaims lists the claims of clusters, by the clusters' objects, and the claims that cannot be backed up, with the reasons.
func lookForClaims(ctx context.Context, clusters []Cluster) (claims map[string][]claimdata.Claim, missing map[string]string, err error) {
	claims, missing = map[string][]claimdata.Claim{}, map[string]string{}
	for _, cluster := range clusters {
		found, unable, err := claimdata.Claims(ctx, cluster.API)
		if err != nil {
			return nil, nil, err
		}
		claims[cluster.ObjectID] = found
		for name, reason := range unable {
			missing[cluster.Name+": "+name] = reason
		}
	}
	return claims, missing, nil
}

// incomplete names the claims that a backup would not have, where that is not allowed.
func incomplete(order Order) error {
	if order.Incomplete || len(order.Contents.Missing) == 0 {
		return nil
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(order.Contents.Missing)) {
		list = append(list, name+" ("+order.Contents.Missing[name]+")")
	}
	return fault.New(fault.Invalid, "These claims cannot be backed up: %s. Allow a backup without them (incomplete: true, --incomplete), or move what they have into others. Nothing was done", strings.Join(list, ", "))
}

type keptCluster struct {
	store.BackupCluster
	warnings []string
}

// cluster keeps the state and the claims of a cluster.
func (b Backups) cluster(ctx context.Context, order Order, id string, of Cluster, claims []claimdata.Claim) (kept keptCluster, held time.Duration, err error) {
	kept.ObjectID, kept.Class, kept.Name = of.ObjectID, of.Class, of.Name
	var copies *claimdata.Copies
	if len(claims) > 0 {
		defer func() {
			err = errors.Join(err, claimdata.RemoveHolders(context.WithoutCancel(ctx), of.API))
		}()
		copies, kept.warnings, err = b.copy(ctx, order, of, claims)
		if err != nil {
			return kept, 0, err
		}
		held = copies.Held
		order.Report(ctx, fmt.Sprintf("The files of %d claims of cluster %s were copied while their pods were frozen for %.1f s", len(claims), of.Name, held.Seconds()))
		defer func() { err = errors.Join(err, copies.Drop(context.WithoutCancel(ctx))) }()
	}
	subject := snapshot.Subject{EnvironmentID: order.Environment.ID, ClusterID: of.ObjectID, ClusterName: of.Name, Kind: store.OfBackup, Reason: "of backup " + id, Backup: id,
		Container: of.Container, Refused: of.Refused}
	step := order.stepOf(of)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(uploads)
	group.Go(func() error {
		return step(ctx, "store the state", func(ctx context.Context) error {
			taken, err := of.Snapshot(ctx, subject)
			kept.Snapshot = taken.ID
			return err
		})
	})
	var mutex sync.Mutex
	for _, claim := range claims {
		group.Go(func() error {
			return step(ctx, "store claim "+claim.String(), func(ctx context.Context) error {
				one, err := b.claim(ctx, subject, copies, claim)
				if err != nil {
					return fmt.Errorf("claim %s: %w", claim, err)
				}
				mutex.Lock()
				defer mutex.Unlock()
				kept.Claims = append(kept.Claims, one)
				return nil
			})
		})
	}
	err = group.Wait()
	slices.SortFunc(kept.Claims, func(a, b store.BackupClaim) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return kept, held, err
}

// copy copies the files of claims at one moment, after their applications have written their memory to disk.
func (b Backups) copy(ctx context.Context, order Order, of Cluster, claims []claimdata.Claim) (copies *claimdata.Copies, warnings []string, err error) {
	step := order.stepOf(of)
	var volumes []claimdata.Volume
	var pods []claimdata.Pod
	err = step(ctx, "mount volumes", func(ctx context.Context) (err error) {
		volumes, pods, err = claimdata.Mounted(ctx, of.API, claims, order.Task)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	defer func() { warnings = append(warnings, order.After(context.WithoutCancel(ctx))...) }()
	err = step(ctx, "prepare applications", func(ctx context.Context) error {
		failed := order.Before(ctx)
		if len(failed) > 0 && !order.Incomplete {
			return fault.New(fault.Invalid, "These applications could not write what they have in memory: %s. Nothing was copied, and no pod was frozen. Repair them, or allow a backup that has the content of their disks (incomplete: true, --incomplete)",
				strings.Join(failed, "; "))
		}
		for _, one := range failed {
			warnings = append(warnings, one+". The backup has what was on its disk, as after a power cut")
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	copies, err = claimdata.Copy(ctx, of.Nodes, order.Task, volumes, pods, step)
	return copies, warnings, err
}

// stepOf is Step for a part of the work on a cluster.
func (o Order) stepOf(of Cluster) claimdata.Step {
	return func(ctx context.Context, name string, do func(ctx context.Context) error) error {
		return o.Step(ctx, name+" of "+of.Name, do)
	}
}

// claim keeps the files of a claim.
func (b Backups) claim(ctx context.Context, subject snapshot.Subject, copies *claimdata.Copies, claim claimdata.Claim) (store.BackupClaim, error) {
	subject.Kind = store.ClaimFiles
	sum := sha256.New()
	taken, err := b.Archive.Take(ctx, subject, func(ctx context.Context, to io.Writer) error {
		sum.Reset()
		return copies.Read(ctx, claim.Volume, io.MultiWriter(to, sum))
	})
	if err != nil {
		return store.BackupClaim{}, err
	}
	return store.BackupClaim{Namespace: claim.Namespace, Name: claim.Name, Class: claim.Class, Size: claim.Size, Volume: claim.Volume, Node: claim.Node, Bytes: copies.Bytes[claim.Volume],
		Content: taken.ID, Checksum: hex.EncodeToString(sum.Sum(nil)), Object: claim.Object}, nil
}

// Delete removes a backup with all that it has. One whose parts cannot be reached stays, so that it can be removed later.
func (b Backups) Delete(ctx context.Context, id string) error {
	if err := b.deleteParts(ctx, id); err != nil {
		return err
	}
	return b.Remove(ctx, id)
}

func (b Backups) deleteParts(ctx context.Context, id string) error {
	parts, err := b.Parts(ctx, id)
	for _, part := range parts {
		if err := b.Archive.DeleteSnapshot(ctx, part); err != nil {
			return fmt.Errorf("remove a part of backup %s: %w", id, err)
		}
	}
	return err
}

// retain removes the oldest scheduled backups of an environment that has too many, but for the ones whose files an environment waits for.
func (b Backups) retain(ctx context.Context, order Order) error {
	if order.Kind != store.Scheduled || order.Kept == 0 {
		return nil
	}
	list, err := b.List(ctx, store.BackupFilter{EnvironmentID: order.Environment.ID, Whole: true})
	if err != nil {
		return err
	}
	waited, err := b.WaitedFor(ctx, AttributeFilledFrom)
	if err != nil {
		return err
	}
	kept := 0
	for _, one := range list {
		if one.Kind != store.Scheduled {
			continue
		}
		if kept++; kept > order.Kept && waited[one.ID] == "" {
			if err := b.Delete(ctx, one.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// passing is how long a backup of a clone stays at least: its environment is made meanwhile.
const passing = time.Hour

// Sweep removes the remains of backups that were not finished, when the task or the upload that made them has ended, and backups of clones whose files no environment waits for. The row
// of a task's backup stays while its environment is there: it has EndFormer called.
func (b Backups) Sweep(ctx context.Context, now time.Time) error {
	left, err := b.Left(ctx, uploadPatience)
	if err != nil {
		return err
	}
	passed, err := b.List(ctx, store.BackupFilter{Kind: store.Passing, Whole: true})
	if err != nil {
		return err
	}
	waited, err := b.WaitedFor(ctx, AttributeFilledFrom)
	if err != nil {
		return err
	}
	var failures []error
	for _, one := range passed {
		if waited[one.ID] == "" && now.Sub(one.Whole.Time()) > passing {
			failures = append(failures, b.Delete(ctx, one.ID))
		}
	}
	for _, one := range left {
		if one.InCluster {
			failures = append(failures, b.deleteParts(ctx, one.ID))
		} else {
			failures = append(failures, b.Delete(ctx, one.ID))
		}
	}
	return errors.Join(failures...)
}

// Fill makes the claims that a cluster had when a backup was made, with their files, before pods use them. It goes on where an earlier call has ended early.
func (b Backups) Fill(ctx context.Context, id string, cluster Cluster, step claimdata.Step, report func(ctx context.Context, text string)) (err error) {
	from, err := b.Get(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return fault.New(fault.Invalid, "Backup %s, of which cluster %s was to get the files of its claims, was deleted. Delete this environment, and make another one of another backup", id, cluster.Name)
	}
	if err != nil {
		return fmt.Errorf("read backup %s: %w", id, err)
	}
	i := slices.IndexFunc(from.Parts.Clusters, func(one store.BackupCluster) bool { return one.ObjectID == cluster.ObjectID })
	if i < 0 || len(from.Parts.Clusters[i].Claims) == 0 {
		return nil
	}
	defer func() { err = errors.Join(err, claimdata.RemoveHolders(context.WithoutCancel(ctx), cluster.API)) }()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(uploads)
	for _, one := range from.Parts.Clusters[i].Claims {
		group.Go(func() error {
			claim := claimdata.Claim{Namespace: one.Namespace, Name: one.Name, Node: one.Node, Object: one.Object}
			err := claimdata.Restore(ctx, cluster.API, cluster.Nodes, claim, id, func(ctx context.Context) (io.ReadCloser, error) { return b.Archive.Open(ctx, one.Content) }, step)
			var foreign *claimdata.ForeignClaim
			if errors.As(err, &foreign) { // such as that of the cluster's own registry
				report(ctx, capital(foreign.Error()))
				return nil
			}
			if err == nil {
				report(ctx, fmt.Sprintf("Claim %s has the files that it had on %s", claim, from.Created.Time().Format(time.RFC1123)))
			}
			return err
		})
	}
	return group.Wait()
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
