// Package keeper looks after environments that are deployed: again and again it has duties look at each of them, keeps what they find, and
// submits the repairs that they ask for as ordinary tasks of the engine. One server at a time holds an environment, under a lease.
package keeper

import (
	"context"
	"errors"
	"time"

	"github.com/burano/burano/orchestrator/openstack"
)

// Duty is one thing that is looked after in every environment. Its methods are called on several goroutines at once, for different
// environments; of one environment one at a time.
type Duty interface {
	// Name stands in rows, metrics and logs: one word in small letters that never changes, such as "nodes".
	Name() string
	// Every is how often an environment is looked at. It is also looked at when one of its tasks has ended and when another server takes
	// it, so a duty with a schedule of its own keeps when something was done last.
	Every() time.Duration
	// Look says how an environment is. What the answer does not name any more is mended and closed. An error says that it could not be
	// found out: findings stay as they are, and one more says why.
	//
	// A look takes seconds. It may do what can happen beside a deployment, such as a snapshot; everything that changes a node or the cloud
	// is a Repair. While a task runs in the environment nobody looks, and what is found while one begins is not kept.
	Look(ctx context.Context, environment *Environment) (Result, error)
}

// Environment is an environment as a duty sees it during one look.
type Environment struct {
	ID, ProjectID, Name string
	// Clusters are those that were up, as the model has them.
	Clusters []Cluster
	// Servers are those that its objects have in the cloud, nodes of clusters among them.
	Servers []Server
	// Found are the duties of which findings stand that are more than worth knowing, as of the begin of the look.
	Found []string
	// Failed says that the newest deployment failed: then model and what runs may differ in more than what a duty finds, and what needs
	// the model to be true is not repaired.
	Failed bool
	// Fence goes with what is sent to a node: below that of every task that begins later (nodes.Config.Fence).
	Fence uint64
	// Alive returns an error once this server may no longer act for the environment (nodes.Config.Alive).
	Alive func() error
	// Project is the environment's project in a region, "" for the environment's own, reached through the standing delegation;
	// ErrNoDelegation where there is none.
	Project func(ctx context.Context, region string) (*openstack.Project, error)
}

// DeployAgain is the advice to deploy the environment again, which does something, and where its newest deployment failed what else helps: what has just
// failed is no advice.
func (e *Environment) DeployAgain(does, otherwise string) string {
	if !e.Failed {
		return "Deploy the environment again, which " + does
	}
	return "The environment's newest deployment failed: mend what its log names (burano deployment show " + e.Name + "), and deploy then. Until then " + otherwise
}

// ErrNoDelegation says that an environment has no standing delegation, without which nothing is asked of the cloud.
var ErrNoDelegation = errors.New("the environment has no standing delegation")

// Server is a server of an environment.
type Server struct {
	ObjectID string // of its io.murano.resources.Instance
	Name     string
	ID       string // in Nova
	Region   string // "" for the environment's own
}

// Cluster is a Kubernetes cluster of an environment.
type Cluster struct {
	ObjectID string
	// Properties are those of its object in the model, such as "autoRepair", as JSON's values. They are shared, and must not be changed.
	Properties map[string]any
}

// Name is what the cluster is called.
func (c Cluster) Name() string {
	name, _ := c.Properties["name"].(string)
	return name
}

// AutoRepair tells whether servers and nodes of the cluster may be repaired without being asked.
func (c Cluster) AutoRepair() bool {
	allowed, _ := c.Properties["autoRepair"].(bool)
	return allowed
}

// Result is what a duty finds.
type Result struct {
	Findings []Finding
	// Next is when to look again where that is sooner than Every; 0 for Every.
	Next time.Duration
}

// Severity says how bad a finding is.
type Severity string

// The severities.
const (
	Info     Severity = "info"     // worth knowing
	Warning  Severity = "warning"  // to be mended soon; what runs goes on
	Critical Severity = "critical" // something does not work, or the next failure stops it
)

// Finding is something that is not as it should be. Duty, environment, ObjectID, Kind and Subject tell whether it is the same as before.
type Finding struct {
	ObjectID string // of the model, such as a cluster's; "" for the environment
	Kind     string // words with dashes, which programs may compare: node-unreachable
	Subject  string // what it is about within the object: a node's name; "" for the object itself
	Severity Severity
	Text     string // what is wrong, for people: a sentence without its full stop
	Mends    string // what mends it, for people: what to do, or what Burano is about to do
	// Repair mends it without being asked; nil where that is not allowed, or not possible.
	Repair *Repair
}

// Repair is an action of an object. It runs as a task of the engine that changes neither the environment's version nor open drafts, makes
// way for a user's task when its present step is done, and is started again, less and less often, while the finding stands.
type Repair struct {
	ObjectID string
	Method   string // public, of the object's class
	Args     map[string]any
	Text     string // the first line of the task's log, which says why
	// Cloud says that the task needs the cloud: it works with the standing delegation, and is not started where there is none.
	Cloud bool
	// Routine says that nothing is broken, and what is done is everyday work, such as a change of size: it is begun at once, and never given up.
	Routine bool
	// AfterFailure says that it may also be started where the environment's newest deployment failed (Environment.Failed).
	AfterFailure bool
}
