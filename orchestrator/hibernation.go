package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator/hibernation"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/store"
)

// Hibernations stop the servers of environments, and start them again.
type Hibernations struct{ *core }

// Hibernations are the hibernations of environments.
func (s *Service) Hibernations() Hibernations { return Hibernations{s.core} }

// Hibernation is a caller's view of whether an environment sleeps.
type Hibernation struct {
	// State is awake, hibernating, asleep or waking. Hibernating and waking remain after a task that failed.
	State        string
	Since        time.Time // zero for an environment that never slept
	DeploymentID string    // of the task that changed the state last; "" for none
	Servers      []store.StoppedServer
	Schedule     *HibernationSchedule // nil for none
}

// HibernationSchedule is when an environment sleeps and wakes by itself.
type HibernationSchedule struct {
	hibernation.Schedule
	UserName string // the user that has set it
	Set      time.Time
	// NextSleep and NextWake are in its zone; zero where it has no such times.
	NextSleep, NextWake time.Time
	// Delegated is true if the project's role or a standing delegation allows Burano to carry it out.
	Delegated bool
}

func seenHibernation(row store.Hibernation) Hibernation {
	seen := Hibernation{State: string(row.State), DeploymentID: row.TaskID}
	if row.Changed != 0 {
		seen.Since = row.Changed.Time()
	}
	if row.State == store.Awake {
		seen.State = "awake"
	} else {
		seen.Servers = row.Servers
	}
	return seen
}

// Get shows whether an environment sleeps.
func (s Hibernations) Get(ctx context.Context, caller identity.Caller, environmentID string) (Hibernation, error) {
	if _, err := s.environmentHead(ctx, caller, environmentID); err != nil {
		return Hibernation{}, err
	}
	row, err := s.store.Hibernations().Of(ctx, environmentID)
	if err != nil {
		return Hibernation{}, err
	}
	seen := seenHibernation(row)
	seen.Schedule, err = s.schedule(ctx, row, time.Now())
	return seen, err
}

// schedule is the caller's view of an environment's schedule; nil for none.
func (s Hibernations) schedule(ctx context.Context, row store.Hibernation, now time.Time) (*HibernationSchedule, error) {
	times, found, err := hibernation.Stored(row)
	if err != nil || !found {
		return nil, err
	}
	seen := &HibernationSchedule{Schedule: times.Schedule, UserName: row.UserName, Set: row.Scheduled.Time()}
	seen.NextSleep, _ = times.Next(now, false)
	seen.NextWake, _ = times.Next(now, true)
	settled, err := s.store.Hibernations().Settled(ctx, row)
	seen.Delegated = settled.Delegated
	return seen, err
}

// SetSchedule sets when an environment sleeps and wakes by itself. The first time after this counts.
func (s Hibernations) SetSchedule(ctx context.Context, caller identity.Caller, environmentID string, wanted hibernation.Schedule) (Hibernation, error) {
	environment, err := s.environmentHead(ctx, caller, environmentID)
	if err != nil {
		return Hibernation{}, err
	}
	if err := (Delegations(s)).ofProject(caller, environment); err != nil {
		return Hibernation{}, err
	}
	times, err := hibernation.Parse(wanted)
	if err != nil {
		return Hibernation{}, err
	}
	text, err := times.Text()
	if err != nil {
		return Hibernation{}, err
	}
	if err := s.writeSchedule(ctx, caller, environment, text); err != nil {
		return Hibernation{}, err
	}
	return s.Get(ctx, caller, environmentID)
}

// DropSchedule ends the schedule of an environment, which stays as it is.
func (s Hibernations) DropSchedule(ctx context.Context, caller identity.Caller, environmentID string) error {
	environment, err := s.environmentHead(ctx, caller, environmentID)
	if err != nil {
		return err
	}
	row, err := s.store.Hibernations().Of(ctx, environmentID)
	if err == nil && row.Schedule == "" {
		err = fault.New(fault.NotFound, "Environment %s has no schedule: it sleeps and wakes by hand", environment.Name)
	}
	if err != nil {
		return err
	}
	return s.writeSchedule(ctx, caller, environment, "")
}

func (s Hibernations) writeSchedule(ctx context.Context, caller identity.Caller, environment store.Environment, text string) error {
	err := s.store.Hibernations().SetSchedule(ctx, environment.ID, text, caller.UserName)
	if errors.Is(err, store.ErrNotFound) {
		return noEnvironment(environment.ID)
	}
	if err == nil {
		s.log.InfoContext(ctx, "the schedule of an environment was set", "environment", environment.ID, "user", caller.UserID, "schedule", text)
	}
	return err
}

// HibernationPlan is the effect of hibernating an environment, or of waking one that sleeps.
type HibernationPlan struct {
	Wakes     bool                  // the environment sleeps: the plan is about waking it
	Servers   []store.StoppedServer // in the order in which they are stopped
	Obstacles []string              // the reasons to refuse it
	Notes     []string              // facts that are not known
}

// plannedSecrets are the secrets of environments, for plans.
type plannedSecrets struct{ Engine }

func (plannedSecrets) SetSecret(context.Context, string, string, []byte) error {
	return errors.New("a plan writes nothing")
}

// Preview computes the effect of hibernating an environment, or of waking one that sleeps. It changes nothing.
func (s Hibernations) Preview(ctx context.Context, caller identity.Caller, environmentID string) (HibernationPlan, error) {
	environment, sessions, err := s.withSessions(ctx, caller, environmentID)
	if err != nil {
		return HibernationPlan{}, err
	}
	row, err := s.store.Hibernations().Of(ctx, environmentID)
	if err != nil {
		return HibernationPlan{}, err
	}
	plan := HibernationPlan{Wakes: row.State != store.Awake, Servers: row.Servers}
	if !plan.Wakes {
		if plan, err = s.plan(ctx, caller, environment); err != nil {
			return plan, err
		}
	}
	if busy, _ := status(sessions); busy == string(store.Deploying) || busy == string(store.Deleting) {
		plan.Obstacles = append([]string{"a task runs in it: wait until it has ended, or cancel it"}, plan.Obstacles...)
	}
	return plan, nil
}

// plan is the effect of hibernating an environment that is awake.
func (s Hibernations) plan(ctx context.Context, caller identity.Caller, environment store.Environment) (HibernationPlan, error) {
	if environment.Model.ObjectsCopy == nil {
		return HibernationPlan{Obstacles: []string{"it was never deployed"}}, nil
	}
	found, err := hibernation.Of(ctx, environment.ID, environment.Model.Objects, plannedSecrets{s.engine})
	if err != nil {
		return HibernationPlan{}, err
	}
	plan := HibernationPlan{Servers: found.Servers}
	if reach := s.taskProject(caller, environment); reach != nil {
		own, _ := environment.Model.Objects["region"].(string)
		running, err := found.Running(ctx, func(ctx context.Context, region string) (*openstack.Project, error) {
			project, err := reach(ctx)
			if err != nil {
				return nil, err
			}
			if region == "" {
				region = own
			}
			return project.In(ctx, region)
		})
		if err == nil {
			plan.Servers = running
		} else {
			plan.Notes = append(plan.Notes, fmt.Sprintf("The states of the servers are not known: %s. The task asks again before its first change", err))
		}
	}
	plan.Obstacles = found.Obstacles
	return plan, nil
}

// Hibernate submits the task that stops the servers of an environment, and returns its id. Everything that stands in the way is refused before.
func (s Hibernations) Hibernate(ctx context.Context, caller identity.Caller, environmentID string) (taskID string, err error) {
	environment, err := s.environment(ctx, caller, environmentID)
	if err != nil {
		return "", err
	}
	row, err := s.store.Hibernations().Of(ctx, environmentID)
	if err != nil {
		return "", err
	}
	if row.State == store.Asleep {
		return "", fault.New(fault.Conflict, "Environment %s is asleep already, since %s", environment.Name, row.Changed.Time().Format(time.RFC3339))
	}
	if row.State == store.Awake {
		plan, err := s.plan(ctx, caller, environment)
		if err == nil {
			err = hibernation.Plan{Obstacles: plan.Obstacles}.Refusal(environment.Name)
		}
		if err != nil {
			return "", err
		}
	}
	return s.submit(ctx, caller, environment, store.MethodHibernate)
}

// Wake submits the task that starts the servers of an environment that sleeps, and returns its id.
func (s Hibernations) Wake(ctx context.Context, caller identity.Caller, environmentID string) (taskID string, err error) {
	environment, err := s.environment(ctx, caller, environmentID)
	if err != nil {
		return "", err
	}
	row, err := s.store.Hibernations().Of(ctx, environmentID)
	if err == nil && row.State == store.Awake {
		err = fault.New(fault.Conflict, "Environment %s is awake", environment.Name)
	}
	if err != nil {
		return "", err
	}
	return s.submit(ctx, caller, environment, store.MethodWake)
}

func (s Hibernations) submit(ctx context.Context, caller identity.Caller, environment store.Environment, method string) (taskID string, err error) {
	return Actions(s).submit(ctx, caller, environment, store.Action{ObjectID: environment.ID, Method: method, Args: map[string]any{}},
		fault.New(fault.Conflict, "A task runs in environment %s: wait until it has ended, or cancel it", environment.Name))
}
