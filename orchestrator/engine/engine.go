// Package engine runs deployments: it takes tasks from their rows, runs the classes' methods, and writes the results. No
// part of a task is only in memory.
//
// A task is held under a lease. When the process that holds it dies or is cut off, another process, or its own next start, takes
// the task over. It runs the task's method again from the beginning: attributes are durable, and native steps adopt existing
// resources. A process that is stopped gives its tasks back, with the same effect. A former holder can write nothing more: every
// write carries the fencing number of its lease.
package engine

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/blackbox"
	"github.com/burano/burano/internal/memory"
	"github.com/burano/burano/orchestrator/lease"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

// Cloud gives the cloud projects in which Burano acts through delegations, and ends these (openstack.Service).
type Cloud interface {
	Project(ctx context.Context, trustID string) (*openstack.Project, error)
	ProjectByCredential(ctx context.Context, id, secret string) (*openstack.Project, error)
	Changing(ctx context.Context, trustID string, stacks []string) (bool, error)
	HasTrust(ctx context.Context, trustID string) (bool, error)
	PassedOn(ctx context.Context, trustID string) (bool, error)
	DeleteTrust(ctx context.Context, trustID string) error
}

// Config configures an Engine. Workers, Poll and Name have defaults.
type Config struct {
	Store  *store.Store
	Sealer *secret.Sealer
	Cloud  Cloud
	// Source gives the packages that a project may use.
	Source func(projectID string) muranopl.Source
	// Natives gives the Go bodies for one task; they may use the Runtime until the task ends.
	Natives func(*Runtime) muranopl.Natives
	// Rehearsal gives Go bodies that change nothing, and a function that finds out with them which servers a deployment would destroy
	// (openstack.ServerChanges). nil: the deployment finds it out itself.
	Rehearsal func(*Stage) (muranopl.Natives, Rehearsed)
	// ClassConfigs are the operator's values of properties of usage Config (muranopl.WithConfigs); nil: there are none.
	ClassConfigs fs.FS
	Logger       *slog.Logger

	// Metrics is the registry of the engine's metrics; nil: none.
	Metrics prometheus.Registerer

	// Workers is the number of tasks that run at the same time (default DefaultWorkers). An environment has one running task at a
	// time, and a project at most as many as there are free workers.
	Workers int
	// Code bounds the cost of the MuranoPL code of one task, or of one static action (default DefaultCode).
	Code muranopl.Limits
	// TaskTime is how long a task may run in one go (default DefaultTaskTime).
	TaskTime time.Duration
	// Poll is the interval between reads of the rows without a wake-up (default 5 s): for tasks that another process has
	// written or can no longer do.
	Poll time.Duration
	// Lease is how long a task waits for a silent worker before another one takes it over (default lease.Default). A worker
	// stops by itself after two thirds of it.
	Lease time.Duration
	// OutagePatience is how long a service of the cloud may be away while a task needs it (default openstack.DefaultOutagePatience).
	OutagePatience time.Duration
	// Sweep is the interval between searches for orphaned delegations (default 1 min).
	Sweep time.Duration
	// Looked are the duties of the keeper that a deployment does itself, and when they are due again after it (store.Outcome).
	Looked map[string]time.Duration
	// MaxDeaths is how many workers may die over a task while it runs alone, without a new step being done (default
	// DefaultMaxDeaths): then the task kills them.
	MaxDeaths int
	// AloneTime is how long a task over which workers died runs alone, at first, before others may run beside it again. MakeWay is how
	// long it waits for running tasks, before they are given back. Defaults: DefaultAloneTime, DefaultMakeWay.
	AloneTime, MakeWay time.Duration
	// Sole is set if no other process uses the database: then the tasks of a former process are taken over at once.
	Sole bool
	// Memory accounts for models that tasks hold, and for answers of machines; nil: nothing does.
	Memory *memory.Budget
	// Running records the running tasks, for the server's next start; nil: nothing is recorded.
	Running *blackbox.Box
	// AtStep, when it is set, is called when a native step has begun and when it is done, before its end is written: tests interrupt
	// the server there.
	AtStep func(name string, done bool)
	// Name is this process's name among the users of the database (default a new id).
	Name string
}

// Defaults of Config.
const (
	DefaultWorkers   = 16
	DefaultTaskTime  = 6 * time.Hour
	DefaultMaxDeaths = 3
	DefaultAloneTime = 2 * time.Minute
	DefaultMakeWay   = 2 * time.Minute
)

// DefaultCode is some minutes of computing, and many times the memory of an application.
var DefaultCode = muranopl.Limits{Steps: 1_000_000_000, Memory: 128 << 20}

const (
	defaultPoll  = 5 * time.Second
	defaultSweep = time.Minute
	// endTimeout is how long the end of a task may take to be written after the process was asked to stop.
	endTimeout = 15 * time.Second
)

// Causes of a task's cancellation.
var (
	errStopped   = errors.New("Burano was stopped")
	errAbandoned = errors.New("the environment was abandoned")
	errTakenOver = errors.New("another worker has taken the task over")
	errCancelled = errors.New("it was cancelled")
	errTime      = errors.New("its time was up")
	errMadeWay   = errors.New("a task over which Burano servers had died was to run alone on the server")
)

// GoesOn reports by the cause of a task's cancellation whether the task goes on, on this server or another. Then the task leaves
// its work elsewhere alone, and finds it again.
func GoesOn(cause error) bool {
	return errors.Is(cause, errStopped) || errors.Is(cause, errTakenOver) || errors.Is(cause, errMadeWay) || errors.Is(cause, lease.ErrLost)
}

// errMadeWayForUser is the error of a repair that begins no further step.
var errMadeWayForUser = errors.New("the repair made way for what a user has asked for; it is begun again when it is still needed")

// Engine takes and runs tasks. It is safe for concurrent use.
type Engine struct {
	*Config
	rights
	library
	wake chan struct{}

	mutex   sync.Mutex
	running map[string]*held // by environment
	pool    pool
	metrics *metrics
	statics map[string]int // static actions that run, by project
}

// New makes an Engine; nothing runs before Run.
func New(ctx context.Context, config Config) (*Engine, error) {
	config.Workers = cmp.Or(config.Workers, DefaultWorkers)
	config.Code = cmp.Or(config.Code, DefaultCode)
	config.TaskTime = cmp.Or(config.TaskTime, DefaultTaskTime)
	config.Poll = cmp.Or(config.Poll, defaultPoll)
	config.Lease = cmp.Or(config.Lease, lease.Default)
	config.MaxDeaths = cmp.Or(config.MaxDeaths, DefaultMaxDeaths)
	config.AloneTime = cmp.Or(config.AloneTime, DefaultAloneTime)
	config.MakeWay = cmp.Or(config.MakeWay, DefaultMakeWay)
	config.OutagePatience = cmp.Or(config.OutagePatience, openstack.DefaultOutagePatience)
	if config.Name == "" {
		config.Name = store.NewID()
	}
	config.Sweep = cmp.Or(config.Sweep, defaultSweep)
	e := &Engine{Config: &config, rights: rights{&config, make(chan struct{}, 1)}, library: library{&config, muranopl.NewParsed()}, wake: make(chan struct{}, 1),
		running: map[string]*held{}, pool: pool{changed: make(chan struct{})}, statics: map[string]int{}}
	e.metrics = newMetrics(config.Metrics, e)
	if config.Sole {
		return e, e.Store.Tasks().EndLeases(ctx)
	}
	return e, nil
}

// again is the advice to the user after a task that was cut off.
func again(task store.Task) string {
	switch task.Kind() {
	case "action":
		if task.Sleeps() {
			return "Wake the environment, or hibernate it again: servers that are on or off already stay so."
		}
		return "Run the action again to go on, or deploy the environment again to have it as it was."
	case "deletion":
		return "Delete the environment again to go on."
	case "repair":
		return "It is begun again while it is needed."
	}
	return "Deploy the environment again to go on: what is there is taken over, not made twice."
}

// Wake has a worker look for a new task. It never blocks.
func (e *Engine) Wake() {
	signal(e.wake)
	e.mutex.Lock()
	defer e.mutex.Unlock()
	for _, h := range e.running {
		if h.Task().Repair {
			h.lease.Look() // the new task may be a user's for the environment of a repair
		}
	}
}

func signal(channel chan<- struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}

// Cancel ends the task that runs in an environment, if it was cancelled in the store and this process runs it; other processes
// learn of it when they renew their lease.
func (e *Engine) Cancel(environmentID string) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if h := e.running[environmentID]; h != nil {
		h.lease.Look()
	}
	signal(e.wake) // perhaps no process has it yet
}

// Abandon stops the task in an environment whose rows are gone, and revokes its delegations soon.
func (e *Engine) Abandon(environmentID string) {
	e.mutex.Lock()
	if h := e.running[environmentID]; h != nil {
		h.lease.Lose(errAbandoned)
	}
	e.mutex.Unlock()
	e.Revoke()
}
