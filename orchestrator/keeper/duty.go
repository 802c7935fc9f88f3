// Package keeper watches deployed environments: again and again, its duties check each of them. It stores their findings, and submits the repairs that
// they ask for as ordinary tasks of the engine. One server at a time holds an environment, under a lease.
package keeper

import (
	"context"
	"errors"
	"time"

	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/store"
)

// Duty is one kind of regular check of every environment. Its methods are called on several goroutines at once, for different
// environments; of one environment one at a time.
type Duty interface {
	// Name is used in rows, metrics and logs: one word in small letters that never changes, such as "nodes".
	Name() string
	// Every is the interval between checks of an environment. It is also checked when one of its tasks has ended and when another server
	// takes it, so a duty with a schedule of its own records its last time.
	Every() time.Duration
	// Look checks an environment. Findings that are missing in the result are mended and closed. After an error the check is incomplete: findings stay
	// as they are, and one more gives the reason.
	//
	// A check takes seconds. It may do work that can happen beside a deployment, such as a snapshot; every change of a node or the cloud is a Repair.
	// While a task runs in the environment there is no check, and findings are dropped when a task begins meanwhile.
	Look(ctx context.Context, environment *Environment) (Result, error)
}

// Sleeper is a duty that also looks at environments that sleep.
type Sleeper interface {
	Duty
	// LooksAsleep is for the type only.
	LooksAsleep()
}

// Environment is a duty's view of an environment during one check.
type Environment struct {
	ID, ProjectID, Name string
	// Clusters are the deployed clusters, in the model's form.
	Clusters []*desired.Cluster
	// Servers are the servers of its objects in the cloud, nodes of clusters among them.
	Servers []Server
	// Found are the duties with open findings above severity Info, as of the begin of the check.
	Found []string
	// Failed is true if the newest deployment failed. Then model and cloud may differ in more than a duty finds, and repairs that need a true model are
	// not made.
	Failed bool
	// Sleeps is the environment's hibernation. While it is not awake, only duties that are a Sleeper look, and no other duty has findings.
	Sleeps store.Hibernation
	// Model is the deployed model in the API's form. It is shared, and must not be changed.
	Model map[string]any
	// Fence is sent with commands to a node: it is below the number of every task that begins later (nodes.Config.Fence).
	Fence uint64
	// Alive returns an error once this server may no longer act for the environment (nodes.Config.Alive).
	Alive func() error
	// Project is the environment's project in a region, "" for the environment's own, reached through the standing delegation;
	// ErrNoDelegation where there is none.
	Project func(ctx context.Context, region string) (*openstack.Project, error)

	shared shared
}

// DeployAgain is the advice to deploy the environment again, with the effect of that, and the alternative where its newest deployment failed: a failed
// deployment is no advice.
func (e *Environment) DeployAgain(does, otherwise string) string {
	if !e.Failed {
		return "Deploy the environment again, which " + does
	}
	return "The environment's newest deployment failed: mend what its log names (burano deployment show " + e.Name + "), and deploy then. Until then " + otherwise
}

// ErrNoDelegation is the error for an environment without a standing delegation: no request goes to the cloud without one.
var ErrNoDelegation = errors.New("the environment has no standing delegation")

// Server is a server of an environment.
type Server struct {
	ObjectID string // of its io.murano.resources.Instance
	Name     string
	ID       string // in Nova
	Region   string // "" for the environment's own
}

// Result has a duty's findings.
type Result struct {
	Findings []Finding
	// Next is the pause before the next check where that is shorter than Every; 0 for Every.
	Next time.Duration
}

// Severity is the severity of a finding.
type Severity string

// The severities.
const (
	Info     Severity = "info"     // worth knowing
	Warning  Severity = "warning"  // to be mended soon; the workload goes on
	Critical Severity = "critical" // something does not work, or the next failure stops it
)

// Finding is a problem. Duty, environment, ObjectID, Kind and Subject identify it.
type Finding struct {
	ObjectID string // of the model, such as a cluster's; "" for the environment
	Kind     string // words with dashes, which programs may compare: node-unreachable
	Subject  string // its subject within the object: a node's name; "" for the object itself
	Severity Severity
	Text     string // the problem, for people: a sentence without its full stop
	Mends    string // the remedy, for people: their next step, or Burano's
	// Repair is the repair that Burano starts by itself; nil where that is not allowed, or not possible.
	Repair *Repair
}

// Repair is an action of an object. It runs as a task of the engine that changes neither the environment's version nor open drafts. It ends early for
// a user's task when its present step is done, and is started again, less and less often, while the finding is open.
type Repair struct {
	ObjectID string
	Method   string // public, of the object's class
	Args     map[string]any
	Text     string // the first line of the task's log, with the reason
	// Cloud is true if the task needs the cloud: it works with the standing delegation, and is not started where there is none.
	Cloud bool
	// Routine is true if nothing is broken, and the task is everyday work, such as a change of size: it is begun at once, and never given up.
	Routine bool
	// AfterFailure is true if it may also be started where the environment's newest deployment failed (Environment.Failed).
	AfterFailure bool
}
