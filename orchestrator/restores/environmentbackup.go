package restores

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/backup"
	"github.com/burano/burano/orchestrator/clusters"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/snapshot"
	"github.com/burano/burano/orchestrator/store"
	"github.com/burano/burano/orchestrator/task"
)

const (
	methodBeforeBackup = "beforeBackup"
	methodAfterBackup  = "afterBackup"
	argumentPassing    = "passing"
)

// Backups are the backups of an environment's clusters.
type Backups struct{ *clusters.Clusters }

// BackupsOf returns the backups of an environment with these clusters.
func BackupsOf(c *clusters.Clusters) Backups { return Backups{c} }

// Actions are the actions of clusters that save their whole environment.
func (c Backups) Actions() map[string]muranopl.NativeMethod {
	return map[string]muranopl.NativeMethod{known.BackUp: c.backUp, known.EndBackup: c.end}
}

// backUp is the action that makes a backup of the whole environment, with all its clusters, and returns its id.
func (c Backups) backUp(ctx context.Context, call muranopl.Call) (any, error) {
	defer c.Close()
	environment, err := c.environment(ctx)
	if err != nil {
		return nil, err
	}
	contents, err := c.Settings.Backups.Contents(ctx, environment.ID, engine.CodeAttribute(""), c.Runtime.Secret)
	if err != nil {
		return nil, err
	}
	order := c.order(call, environment)
	order.Contents = contents
	order.Reason, _ = call.Args[known.ArgumentReason].(string)
	order.Incomplete, _ = call.Args[known.ArgumentIncomplete].(bool)
	if passing, _ := call.Args[argumentPassing].(bool); passing {
		order.Kind = store.Passing
	}
	if scheduled, _ := call.Args[known.ArgumentScheduled].(bool); scheduled {
		order.Kind = store.Scheduled
		kept, _ := call.Args[known.ArgumentKept].(int64)
		order.Kept = int(kept)
	}
	clusters, err := c.all(ctx)
	if err != nil {
		return nil, err
	}
	made, err := c.Settings.Backups.Make(ctx, order, clusters)
	if err != nil {
		return nil, err
	}
	for _, warning := range made.Parts.Warnings {
		c.Reports.Warn(ctx, call.Object, warning, "")
	}
	c.Reports.Inform(ctx, call.Object, "Backup %s of environment %s is whole", made.ID, environment.Name)
	return made.ID, nil
}

// environment is the environment of the task; an error if this Burano keeps no backups.
func (c Backups) environment(ctx context.Context) (store.Environment, error) {
	if c.Settings.Backups == nil || c.Settings.Snapshots == nil {
		return store.Environment{}, errors.New("this Burano keeps no backups")
	}
	return c.Settings.Snapshots.Environment(ctx, c.Runtime.EnvironmentID())
}

// order has the parts that each work on a backup of the environment needs.
func (c Backups) order(call muranopl.Call, environment store.Environment) backup.Order {
	return backup.Order{Environment: environment, Task: c.Runtime.TaskID(), Kind: store.Requested, Before: c.hooks(call, methodBeforeBackup), After: c.hooks(call, methodAfterBackup),
		Report: func(ctx context.Context, text string) { c.Reports.Inform(ctx, call.Object, "%s", text) },
		Step: func(ctx context.Context, name string, do func(ctx context.Context) error) error {
			return c.Runtime.Step(ctx, call.Object, name, do)
		}}
}

func (c Backups) all(ctx context.Context) (clusters []backup.Cluster, err error) {
	for _, object := range c.Objects.All(task.ClassCluster) {
		one, err := AccessOf(c.Clusters).forBackup(ctx, object)
		if err != nil {
			return nil, err
		}
		clusters = append(clusters, one)
	}
	return clusters, nil
}

// end is the action that ends the backups of the environment that were not finished.
func (c Backups) end(ctx context.Context, call muranopl.Call) (any, error) {
	defer c.Close()
	environment, err := c.environment(ctx)
	if err != nil {
		return nil, err
	}
	clusters, err := c.all(ctx)
	if err != nil {
		return nil, err
	}
	return nil, c.Settings.Backups.EndFormer(ctx, c.order(call, environment), clusters)
}

// Access opens clusters for backups.
type Access struct{ *clusters.Clusters }

// AccessOf opens clusters for backups.
func AccessOf(c *clusters.Clusters) Access { return Access{c} }

// forBackup is a cluster, as it was deployed last, for its backup.
func (c Access) forBackup(ctx context.Context, object *muranopl.Object) (backup.Cluster, error) {
	if err := c.EnsureOpen(ctx, object); err != nil {
		return backup.Cluster{}, err
	}
	live, err := c.Live(object)
	if err != nil {
		return backup.Cluster{}, fault.New(fault.Invalid, "Cluster %s was never up: deploy it first", object.Text("name"))
	}
	facts, err := c.Facts(ctx, object)
	if err != nil {
		return backup.Cluster{}, err
	}
	api, err := live.Kubernetes(ctx)
	if err != nil {
		return backup.Cluster{}, err
	}
	client, err := kubernetes.NewForConfig(api)
	return backup.Cluster{ObjectID: object.ID(), Class: object.Class().Name, Name: object.Text("name"), Nodes: live, API: client, Container: c.Settings.ContainerOf(facts),
		Refused: func(why error) { c.Reports.Warn(ctx, object, "T"+known.InDatabaseInstead[1:], why.Error()) },
		Snapshot: func(ctx context.Context, of snapshot.Subject) (store.Snapshot, error) {
			return known.SnapshotOf(ctx, c.Settings.Snapshots, live, of, live.Snapshot)
		}}, err
}

// hookTime is how long an application may take for its part in a backup.
const hookTime = 2 * time.Minute

// hooks calls a method of all applications, by which they take part in a backup, and returns why some of them could not.
func (c Backups) hooks(call muranopl.Call, method string) func(ctx context.Context) []string {
	return func(ctx context.Context) (failures []string) {
		for _, application := range c.Objects.All(task.ClassApplication) {
			asked, cancel := context.WithTimeoutCause(ctx, hookTime, fmt.Errorf("it took longer than %s", hookTime))
			if _, err := call.Interpreter.Invoke(asked, application, method, nil); err != nil {
				failures = append(failures, fmt.Sprintf("%s (%s): %v", application.Text("name"), method, err))
			}
			cancel()
		}
		return failures
	}
}

// FillClaims makes the claims of a cluster that is made from a backup, with their files. No pod of an application was there yet.
func (c Access) FillClaims(ctx context.Context, object *muranopl.Object) error {
	value, _, err := c.Runtime.Attribute(ctx, object, backup.AttributeFilledFrom)
	id, _ := value.(string)
	if err != nil || id == "" {
		return err
	}
	if c.Settings.Backups == nil {
		return errors.New("this Burano keeps no backups")
	}
	one, err := c.forBackup(ctx, object)
	if err != nil {
		return err
	}
	step := func(ctx context.Context, name string, do func(ctx context.Context) error) error {
		return c.Runtime.Step(ctx, object, name, do)
	}
	if err := c.Settings.Backups.Fill(ctx, id, one, step, func(ctx context.Context, text string) { c.Reports.Inform(ctx, object, "%s", text) }); err != nil {
		return err
	}
	return c.Runtime.SetAttribute(ctx, object, backup.AttributeFilledFrom, nil)
}
