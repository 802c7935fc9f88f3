package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"strings"
	"time"

	"github.com/burano/burano/internal/envelope"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/nodes/claimdata"
	"github.com/burano/burano/orchestrator/backup"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/preview"
	"github.com/burano/burano/orchestrator/store"
)

// Backups are the backups of the environments that callers see. They outlive their environments.
type Backups struct {
	service *Service
	keep    backup.Backups
	rows    store.Backups
	claims  ClaimsOf
	share   Share
	hour    time.Duration
}

// BackupsConfig configures Backups.
type BackupsConfig struct {
	Keep   backup.Backups
	Claims ClaimsOf
	Share  Share         // may be nil: uploads are in the database
	Hour   time.Duration // of schedules; an hour when 0
}

// Share makes a container for snapshots in a project, and returns its address; "" where snapshots are in the database.
type Share func(ctx context.Context, project *openstack.Project) (address string, err error)

// ClaimsOf lists the claims of a cluster that a backup has, and the others with the reasons (claimdata.Claims).
type ClaimsOf func(ctx context.Context, environmentID, clusterID string) (claims []claimdata.Claim, unable map[string]string, err error)

// NewBackups returns the backups that a Service's callers see.
func NewBackups(service *Service, config BackupsConfig) *Backups {
	return &Backups{service: service, keep: config.Keep, rows: service.store.Backups(), claims: config.Claims, share: config.Share, hour: cmp.Or(config.Hour, time.Hour)}
}

// containerOf is the address of the container for snapshots in the caller's project, "" for none.
func containerOf(ctx context.Context, b *Backups, caller identity.Caller) (address string, err error) {
	reach := b.service.taskProject(caller, store.Environment{ProjectID: caller.ProjectID})
	if b.share == nil || reach == nil {
		return "", nil
	}
	project, err := reach(ctx)
	if err != nil {
		return "", err
	}
	return b.share(ctx, project)
}

// Reach returns a fault unless the caller may see an environment.
func (b *Backups) Reach(ctx context.Context, caller identity.Caller, environmentID string) error {
	_, err := b.service.environmentHead(ctx, caller, environmentID)
	return err
}

// Order describes a requested backup.
type Order struct {
	Reason     string
	Incomplete bool // allows claims that cannot be backed up, and applications that do not take part
	Passing    bool // it is for a clone, and is removed when the clone has its files
}

// Make submits the task that makes a backup of an environment, and returns the task's id.
func (b *Backups) Make(ctx context.Context, caller identity.Caller, environmentID string, order Order) (taskID string, err error) {
	clusters, err := b.clusters(ctx, caller, environmentID)
	if err != nil {
		return "", err
	}
	return b.service.Actions().Call(ctx, caller, environmentID, clusters[0].ID+"_backUp", map[string]any{"reason": order.Reason, "incomplete": order.Incomplete, "passing": order.Passing})
}

// clusters are the clusters of an environment, of which there is at least one.
func (b *Backups) clusters(ctx context.Context, caller identity.Caller, environmentID string) ([]Object, error) {
	clusters, err := b.service.Models().Objects(ctx, caller, environmentID, "", preview.ClassCluster)
	if err == nil && len(clusters) == 0 {
		err = fault.New(fault.Invalid, "Environment %s has no cluster that was deployed: backups are of its clusters with their claims, and of the model with them. What is on disks of servers is not in them", environmentID)
	}
	return clusters, err
}

// PreviewOf lists the claims of a cluster that a backup would have, and the others with the reasons.
type PreviewOf struct {
	Cluster Object
	Claims  []claimdata.Claim
	Missing map[string]string
}

// Preview lists the claims that a backup of an environment would have now.
func (b *Backups) Preview(ctx context.Context, caller identity.Caller, environmentID string) (list []PreviewOf, err error) {
	clusters, err := b.clusters(ctx, caller, environmentID)
	for _, cluster := range clusters {
		one := PreviewOf{Cluster: cluster}
		if one.Claims, one.Missing, err = b.claims(ctx, environmentID, cluster.ID); err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, err
}

// List lists the whole backups of the caller's project, the newest first: all, or one environment's.
func (b *Backups) List(ctx context.Context, caller identity.Caller, environmentID string) ([]store.Backup, error) {
	if caller.ProjectID == "" {
		return nil, errNoProject()
	}
	return b.rows.List(ctx, store.BackupFilter{ProjectID: caller.ProjectID, EnvironmentID: environmentID, Whole: true})
}

// Show returns a backup of the caller's project.
func (b *Backups) Show(ctx context.Context, caller identity.Caller, id string) (store.Backup, error) {
	found, err := b.rows.Get(ctx, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && (found.ProjectID != caller.ProjectID || found.Whole == 0) {
		return found, fault.New(fault.NotFound, "There is no backup %s", id)
	}
	return found, err
}

// Delete deletes a backup of the caller's project with all its parts.
func (b *Backups) Delete(ctx context.Context, caller identity.Caller, id string) error {
	found, err := b.Show(ctx, caller, id)
	if err != nil {
		return err
	}
	waited, err := b.rows.WaitedFor(ctx, backup.AttributeFilledFrom)
	if err != nil {
		return err
	}
	if environmentID := waited[id]; environmentID != "" {
		return fault.New(fault.Conflict, "Environment %s waits for files of backup %s: deploy it until it is ready, or delete it. Then the backup can be deleted", environmentID, id)
	}
	return b.keep.Delete(ctx, found.ID)
}

// mostScheduled bounds the numbers of a schedule: hours between backups and drills, and stored backups.
const mostScheduled = 24 * 366

// Schedule shows the schedule of an environment's backups; a fault of kind NotFound without one.
func (b *Backups) Schedule(ctx context.Context, caller identity.Caller, environmentID string) (store.BackupSchedule, error) {
	if _, err := b.service.environmentHead(ctx, caller, environmentID); err != nil {
		return store.BackupSchedule{}, err
	}
	schedule, found, err := b.rows.Schedule(ctx, environmentID)
	if err == nil && !found {
		err = fault.New(fault.NotFound, "Backups of environment %s are made when they are asked for: it has no schedule", environmentID)
	}
	return schedule, err
}

// SetSchedule sets the schedule of an environment's backups. The first one is made at once.
func (b *Backups) SetSchedule(ctx context.Context, caller identity.Caller, wanted store.BackupSchedule) (store.BackupSchedule, error) {
	if _, err := b.service.environmentHead(ctx, caller, wanted.EnvironmentID); err != nil {
		return wanted, err
	}
	for name, value := range map[string]int64{"hours": wanted.Hours, "kept": wanted.Kept, "drill_hours": max(1, wanted.DrillHours)} {
		if value < 1 || value > mostScheduled {
			return wanted, fault.New(fault.Invalid, "%s is %d, and must be a number from 1 to %d", name, value, mostScheduled)
		}
	}
	if wanted.DrillHours > 0 {
		if by, err := b.byRole(ctx, caller.ProjectID); err != nil || !by {
			return wanted, cmp.Or(err, fault.New(fault.Invalid, "Drills by schedule make environments while nobody is signed in: let Burano work in the project with a role of its own first "+
				"(burano project enable), or begin drills yourself (burano backup drill)"))
		}
	}
	wanted.UserName = caller.UserName
	if err := b.rows.SetSchedule(ctx, wanted); err != nil {
		return wanted, err
	}
	if err := b.rows.LookNow(ctx, wanted.EnvironmentID); err != nil {
		return wanted, err
	}
	return b.Schedule(ctx, caller, wanted.EnvironmentID)
}

// DropSchedule ends the scheduled backups of an environment. Existing backups stay.
func (b *Backups) DropSchedule(ctx context.Context, caller identity.Caller, environmentID string) error {
	if _, err := b.Schedule(ctx, caller, environmentID); err != nil {
		return err
	}
	return b.rows.RemoveSchedule(ctx, environmentID)
}

// Restoration is an environment that is made of a backup.
type Restoration struct {
	Name   string
	Region string // of the cloud; "" for the backup's

	id      string                        // of the environment; "" for a new one
	prepare func(store.Environment) error // is called before it is deployed; may be nil
}

// Restore makes an environment of a backup, and deploys it. Its claims have their files before pods use them. Where its deployment would be refused, as in a region without its images or flavors, nothing
// is made, and the fault has all reasons.
func (b *Backups) Restore(ctx context.Context, caller identity.Caller, id string, as Restoration) (Environment, error) {
	from, err := b.Show(ctx, caller, id)
	if err != nil {
		return Environment{}, err
	}
	row, err := b.environment(ctx, caller, from, as)
	if err == nil {
		err = deployable(ctx, b.service, caller, row)
	}
	if err != nil {
		return Environment{}, err
	}
	imported := store.Imported{Environment: row, Secrets: map[string]string{}}
	for name, value := range from.Parts.Secrets {
		imported.Secrets[name] = b.service.sealer.Seal(store.SecretOwner(row.ID, name), value)
	}
	for _, one := range from.Parts.Attributes {
		one.EnvironmentID = row.ID
		imported.Attributes = append(imported.Attributes, one)
	}
	for _, cluster := range from.Parts.Clusters {
		value, err := json.Marshal(from.ID)
		if err != nil {
			return Environment{}, err
		}
		imported.Attributes = append(imported.Attributes, store.Attribute{EnvironmentID: row.ID, ObjectID: cluster.ObjectID, Class: cluster.Class, Name: backup.AttributeFilledFrom, Value: string(value)})
	}
	if err := b.service.store.Environments().Import(ctx, imported); err != nil {
		return Environment{}, taken(err)
	}
	if as.prepare != nil {
		err = as.prepare(row)
	}
	if err == nil {
		err = b.begin(ctx, caller, row.ID)
	}
	if err != nil {
		return Environment{}, errors.Join(err, b.forget(context.WithoutCancel(ctx), row.ID, caller.UserID))
	}
	return seen(row), nil
}

// deployable returns a fault with all reasons for which the first deployment of an environment would be refused.
func deployable(ctx context.Context, s *Service, caller identity.Caller, row store.Environment) error {
	if err := s.store.Environments().Try(ctx, row); err != nil {
		return taken(err)
	}
	plan, err := s.Previews().of(ctx, caller, row, row.Model)
	if err != nil {
		return err
	}
	return plan.Refusal(nil, "")
}

// forget removes an environment that was not begun, without the possibility to restore it.
func (b *Backups) forget(ctx context.Context, id, userID string) error {
	return errors.Join(b.service.store.Environments().Remove(ctx, id, userID), b.purge(ctx, id))
}

// unbegun is how long after it was made an environment of a backup is removed again, when no deployment of it was begun: its server died.
const unbegun = 5 * time.Minute

// sweepUnbegun removes environments of backups whose restoration was not begun.
func (b *Backups) sweepUnbegun(ctx context.Context) error {
	list, err := b.rows.Unbegun(ctx, backup.AttributeFilledFrom, b.now()-store.Time(unbegun.Microseconds()))
	for _, id := range list {
		removed, failed := b.service.store.Environments().RemoveUndeployed(ctx, id, "")
		if failed == nil && removed {
			failed = errors.Join(b.service.Environments().removed(id, nil), b.purge(ctx, id))
		}
		if !errors.Is(failed, store.ErrBusy) && !errors.Is(failed, store.ErrNotFound) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// purge removes a deleted environment for good, so that it cannot be restored, with the snapshots of its clusters: it was a copy of a backup that stays.
func (b *Backups) purge(ctx context.Context, id string) error {
	list, err := b.service.store.Snapshots().Snapshots(ctx, store.SnapshotFilter{EnvironmentID: id})
	if err != nil {
		return err
	}
	for _, one := range list {
		if one.BackupID != "" {
			continue
		}
		if err := b.keep.Archive.DeleteSnapshot(ctx, one.ID); err != nil {
			return err
		}
	}
	if err := b.service.store.Deleted().Purge(ctx, id); err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return nil
}

// environment is the row of an environment that is made of a backup.
func (b *Backups) environment(ctx context.Context, caller identity.Caller, from store.Backup, as Restoration) (store.Environment, error) {
	objects := store.Copy(from.Model.Objects)
	objects["name"] = as.Name
	if as.Region != "" {
		objects["region"] = as.Region
	}
	ownNetwork(objects, from.EnvironmentName, as.Name)
	row, err := newEnvironment(caller, objects)
	if err != nil {
		return row, err
	}
	row.ID, row.Model.Packages = cmp.Or(as.id, row.ID), from.Model.Packages
	// Computed properties belong to servers that are gone.
	_, computed, _ := b.service.engine.Check(ctx, caller.ProjectID, row.Model.Packages, store.ForClasses(row.ID, store.Copy(row.Model.Objects)))
	withoutComputed(row.Model.Objects, computed)
	row.Created = store.Time(b.service.now().UTC().UnixMicro())
	row.Updated = row.Created
	return row, nil
}

// ownNetwork resets the router and the range of addresses of the default network, so that the environment chooses its own: the former ones may still be in use.
func ownNetwork(value any, formerName, name string) {
	switch v := value.(type) {
	case map[string]any:
		header, _ := v["?"].(map[string]any)
		class, _ := header["type"].(string)
		if class, _, _ = strings.Cut(class, "/"); class == "io.murano.resources.NeutronNetwork" && v["name"] == formerName+"-network" {
			maps.DeleteFunc(v, func(property string, _ any) bool { return property != "?" })
			v["name"] = name + "-network"
		}
		for _, one := range v {
			ownNetwork(one, formerName, name)
		}
	case []any:
		for _, one := range v {
			ownNetwork(one, formerName, name)
		}
	}
}

// withoutComputed removes properties of objects, by their ids, and Burano's additions to their headers.
func withoutComputed(value any, computed map[string][]string) {
	switch v := value.(type) {
	case map[string]any:
		if header, is := v["?"].(map[string]any); is {
			id, _ := header["id"].(string)
			for _, name := range computed[id] {
				delete(v, name)
			}
			maps.DeleteFunc(header, func(key string, _ any) bool { return strings.HasPrefix(key, "_") })
		}
		for key, one := range v {
			if key != "?" {
				withoutComputed(one, computed)
			}
		}
	case []any:
		for _, one := range v {
			withoutComputed(one, computed)
		}
	}
}

// begin deploys an environment that is made of a backup.
func (b *Backups) begin(ctx context.Context, caller identity.Caller, environmentID string) error {
	session, err := b.service.Sessions().Open(ctx, caller, environmentID)
	if err != nil {
		return err
	}
	return b.service.Sessions().Deploy(ctx, caller, environmentID, session.ID)
}

// Sealed returns a function that writes a backup of the caller's project as a file, sealed for the recipient's public key.
func (b *Backups) Sealed(ctx context.Context, caller identity.Caller, id, recipient string) (write func(ctx context.Context, to io.Writer) error, err error) {
	if _, err := b.Show(ctx, caller, id); err != nil {
		return nil, err
	}
	parsed, err := envelope.ParseRecipient(recipient)
	if err != nil {
		return nil, fault.New(fault.Invalid, "A file of a backup has its secrets and the files of its claims, so that it is sealed: %w", err)
	}
	return func(ctx context.Context, to io.Writer) error {
		sealed, err := parsed.Writer(to)
		if err != nil {
			return err
		}
		if err := b.keep.Write(ctx, id, sealed); err != nil {
			return err
		}
		return sealed.Close()
	}, nil
}

// Upload stores the backup in an opened file as one of the caller's project. passing is as in Order. admit gets the file's description before that is read.
func (b *Backups) Upload(ctx context.Context, caller identity.Caller, from io.Reader, passing bool, admit func(head []byte) error) (store.Backup, error) {
	if caller.ProjectID == "" {
		return store.Backup{}, errNoProject()
	}
	kind := store.Uploaded
	if passing {
		kind = store.Passing
	}
	return b.keep.Read(ctx, backup.Upload{ProjectID: caller.ProjectID, Kind: kind, Now: b.service.now(), Admit: admit, Accept: b.accept,
		Container: func(ctx context.Context) (string, error) { return containerOf(ctx, b, caller) },
		Has:       func(ctx context.Context, id string) (bool, error) { return b.has(ctx, caller.ProjectID, id) }}, from)
}

// accept refuses a file that cannot be a backup of an environment here.
func (b *Backups) accept(file backup.File) error {
	if applications, is := file.Objects["services"]; file.Objects == nil || is && !isList(applications) {
		return fault.New(fault.Invalid, "The file of the backup is damaged: its model has no list of applications")
	}
	for _, one := range file.Attributes {
		if !store.IsCodes(store.Attribute{Class: one.Class, Name: one.Name}, engine.CodeAttribute("")) {
			return fault.New(fault.Invalid, "The file of the backup is damaged: the attribute %s of %s is none that an application stores", one.Name, one.ObjectID)
		}
	}
	for name := range file.Secrets {
		if !store.IsAttributeSecret(name) {
			return fault.New(fault.Invalid, "The file of the backup is damaged: %s is no secret of an application", name)
		}
	}
	if err := checkLength(file.EnvironmentName); err != nil {
		return err
	}
	return b.service.bounded(size{}, file.Objects)
}

func isList(value any) bool {
	_, is := value.([]any)
	return is
}

// has reports whether a project has an environment, or had it and can restore it.
func (b *Backups) has(ctx context.Context, projectID, id string) (bool, error) {
	there, err := b.service.store.Environments().Head(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		var gone store.DeletedEnvironment
		gone, err = b.service.store.Deleted().Environment(ctx, id)
		there.ProjectID = gone.ProjectID
	}
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil && there.ProjectID == projectID, err
}
