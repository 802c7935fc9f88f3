package keeper

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/burano/burano/internal/blackbox"
	"github.com/burano/burano/internal/memory"
	"github.com/burano/burano/internal/panics"
	"github.com/burano/burano/orchestrator/lease"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/store"
)

// Config configures a Keeper. Fields with a default may be left out.
type Config struct {
	Store  *store.Store
	Duties []Duty
	// Clusters are the ids of the objects of an environment's clusters that were ever up.
	Clusters func(ctx context.Context, environmentID string) ([]string, error)
	// Project reaches an environment's project through its standing delegation, and returns the delegation's id. If that is the known id,
	// project is nil; without a delegation the error is store.ErrNotFound.
	Project func(ctx context.Context, environmentID, known string) (project *openstack.Project, delegationID string, err error)
	// Waits reports that no check may begin now, because a task runs alone that servers may have died over; nil: none ever does.
	Waits func() bool
	// Memory accounts for answers of machines; nil: nothing does.
	Memory *memory.Budget
	// Running records the checks in progress, for the server's next start; nil: nothing is recorded.
	Running *blackbox.Box
	// Wake notifies the engine of a task.
	Wake func()

	Logger *slog.Logger
	// Metrics is the registry of its metrics; nil: none.
	Metrics prometheus.Registerer

	// Lease is how long an environment waits for a silent server (default lease.Default).
	Lease time.Duration
	// Looks is how many environments a server checks at the same time (default DefaultLooks).
	Looks int
	// Repairs is how many repairs all servers run at the same time; with 0 nothing is repaired.
	Repairs int
	// Hibernations is how many environments all servers hibernate and wake at the same time, by their schedules; with 0 none does.
	Hibernations int
	// Tries is how often a finding is repaired, with growing pauses, before it is left to people (default
	// DefaultTries).
	Tries int
	// Poll is the interval between searches for due environments (default 1 s).
	Poll time.Duration
	// RepairAfter is how long a finding is open before it is repaired: most pass by themselves, such as a node that starts again (default 30 s).
	RepairAfter time.Duration
	// Pause is the pause between the first and the second repair of a finding; each further pause is twice as long, an hour at most
	// (default 1 min).
	Pause time.Duration
	// Sole is set if no other process uses the database: then a former process's environments are checked at once.
	Sole bool
}

// Defaults of Config.
const (
	DefaultLooks        = 64
	DefaultRepairs      = 4
	DefaultHibernations = 6
	DefaultTries        = 5
)

const (
	defaultPoll        = time.Second
	defaultRepairAfter = 30 * time.Second
	defaultPause       = time.Minute
	// longestPause is the longest pause between two repairs of a finding.
	longestPause = time.Hour
	// again is how long after its closing a finding counts as the same one when it is found again.
	again = time.Hour
	// keptClosed is how long a closed finding stays, and forgetPause the pause between searches for older ones.
	keptClosed  = 30 * 24 * time.Hour
	forgetPause = time.Hour
	// addPause is the interval between searches for environments without a keeper.
	addPause = 30 * time.Second
	// lookTimeout is how long the check of a duty may take.
	lookTimeout = 5 * time.Minute
	// endTimeout is how long the keeper waits for the database after the process was asked to stop.
	endTimeout = 10 * time.Second
)

// Keeper checks the environments that this server claims.
type Keeper struct {
	Config
	metrics  *metrics
	projects projects
}

// New makes a Keeper; no check runs before Run.
func New(config Config) *Keeper {
	config.Lease = cmp.Or(config.Lease, lease.Default)
	config.Looks = cmp.Or(config.Looks, DefaultLooks)
	config.Tries = cmp.Or(config.Tries, DefaultTries)
	config.Poll = cmp.Or(config.Poll, defaultPoll)
	config.RepairAfter = cmp.Or(config.RepairAfter, defaultRepairAfter)
	config.Pause = cmp.Or(config.Pause, defaultPause)
	return &Keeper{Config: config, metrics: newMetrics(config.Metrics), projects: projects{reach: config.Project, known: map[string]reached{}}}
}

// Run checks environments until ctx ends; then other servers may claim them.
func (k *Keeper) Run(ctx context.Context) error {
	if k.Sole {
		if err := k.Store.Keepers().EndLeases(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	for ctx.Err() == nil {
		k.hold(ctx) // begins anew when the database was away for too long
	}
	return nil
}

// hold checks environments under one lease, which covers all that this server claims: one statement renews it for all of them.
func (k *Keeper) hold(ctx context.Context) {
	looking, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	h := &holding{Keeper: k, worker: store.NewID(), lease: lease.New(k.Lease, time.Now(), cancel), ended: make(chan struct{}, 1), claimed: map[string]bool{}}
	keepCtx, release := context.WithCancel(context.WithoutCancel(ctx))
	var renewing, looks sync.WaitGroup
	renewing.Go(func() { h.lease.Keep(keepCtx, h.renew) })
	defer renewing.Wait()
	defer release()
	h.run(openstack.Guarded(looking, h.lease.Check), &looks)
	looks.Wait()
	giving, done := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer done()
	if err := k.Store.Keepers().GiveBack(giving, h.worker); err != nil {
		k.Logger.WarnContext(ctx, "environments that were looked at wait for a lease to run out", "error", err)
	}
}

// holding is a server's work under one lease.
type holding struct {
	*Keeper
	worker string
	lease  *lease.Lease
	ended  chan struct{} // a look has

	mutex   sync.Mutex
	claimed map[string]bool // environments with a check in progress
}

func (h *holding) renew(ctx context.Context, length time.Duration) error {
	h.mutex.Lock()
	ids := slices.Collect(maps.Keys(h.claimed))
	h.mutex.Unlock()
	if len(ids) == 0 {
		return nil // there is no claim whose lease could end
	}
	return h.Store.Keepers().Renew(ctx, h.worker, ids, length)
}

// run claims due environments, and checks them, until ctx or the lease ends.
func (h *holding) run(ctx context.Context, looks *sync.WaitGroup) {
	poll, add, forget := time.NewTicker(h.Poll), time.NewTicker(addPause), time.NewTicker(forgetPause)
	defer poll.Stop()
	defer add.Stop()
	defer forget.Stop()
	for adding := true; h.lease.Check() == nil; {
		if adding {
			if err := h.Store.Keepers().Add(ctx); err != nil && ctx.Err() == nil {
				h.Logger.WarnContext(ctx, "environments that have no keeper yet could not be found", "error", err)
			}
			adding = false
		}
		full := h.claim(ctx, looks)
		var ended <-chan struct{}
		if full {
			ended = h.ended // there may be more
		}
		select {
		case <-ctx.Done():
			return
		case <-ended:
		case <-poll.C:
		case <-add.C:
			adding = true
		case <-forget.C:
			if err := h.Store.Findings().Forget(ctx, keptClosed); err != nil && ctx.Err() == nil {
				h.Logger.WarnContext(ctx, "findings that were closed long ago could not be removed; trying again", "after", forgetPause, "error", err)
			}
		}
	}
}

// claim begins to check due environments. It reports whether there may be more of them than this server can check.
func (h *holding) claim(ctx context.Context, looks *sync.WaitGroup) (full bool) {
	if h.Waits != nil && h.Waits() {
		return false
	}
	h.mutex.Lock()
	free := h.Looks - len(h.claimed)
	h.mutex.Unlock()
	if free <= 0 {
		return true
	}
	began := time.Now()
	claims, err := h.Store.Keepers().Claim(ctx, h.worker, h.Lease, free)
	if err != nil {
		if ctx.Err() == nil {
			h.Logger.WarnContext(ctx, "no environments could be claimed to be looked at; trying again", "after", h.Poll, "error", err)
		}
		return false
	}
	h.mutex.Lock()
	for _, claim := range claims {
		h.claimed[claim.EnvironmentID] = true
	}
	h.mutex.Unlock()
	for _, claim := range claims {
		looks.Go(func() {
			defer func() {
				h.mutex.Lock()
				delete(h.claimed, claim.EnvironmentID)
				h.mutex.Unlock()
				select {
				case h.ended <- struct{}{}:
				default:
				}
			}()
			if err := panics.Run(func() error { h.look(ctx, claim, began); return nil }); err != nil {
				h.Logger.ErrorContext(ctx, "looking at an environment met a defect of Burano", "environment", claim.EnvironmentID, "error", err)
			}
		})
	}
	return len(claims) == free
}

// projects is a cache of environments' projects.
type projects struct {
	reach func(ctx context.Context, environmentID, known string) (*openstack.Project, string, error)

	mutex sync.Mutex
	known map[string]reached // by environment
}

type reached struct {
	project    *openstack.Project
	delegation string
	used       time.Time
}

// projectsKept is how long an unused project stays.
const projectsKept = time.Hour

// of returns an environment's project; ErrNoDelegation when there is no standing delegation.
func (p *projects) of(ctx context.Context, environmentID string) (*openstack.Project, error) {
	p.mutex.Lock()
	known := p.known[environmentID]
	p.mutex.Unlock()
	project, delegation, err := p.reach(ctx, environmentID, known.delegation)
	if errors.Is(err, store.ErrNotFound) {
		err = ErrNoDelegation
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if err != nil {
		delete(p.known, environmentID)
		return nil, err
	}
	if project == nil {
		project = known.project
	} else {
		for id, other := range p.known {
			if time.Since(other.used) > projectsKept {
				delete(p.known, id)
			}
		}
	}
	p.known[environmentID] = reached{project, delegation, time.Now()}
	return project, nil
}
