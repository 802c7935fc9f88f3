package upkeep

import (
	"context"
	"fmt"
	"time"

	"github.com/burano/burano/orchestrator/hibernation"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/store"
)

// Schedules are the rows about when environments sleep by themselves (store.Hibernations).
type Schedules interface {
	Settled(ctx context.Context, row store.Hibernation) (store.Settled, error)
}

// hibernationDuty looks at environments that sleep, as no other duty does, and hibernates and wakes environments by their schedules. It asks neither the cloud nor a node.
type hibernationDuty struct {
	Config
	now func() time.Time
}

func newHibernationDuty(config Config) hibernationDuty { return hibernationDuty{config, time.Now} }

func (hibernationDuty) Name() string { return "hibernation" }

func (h hibernationDuty) Every() time.Duration { return h.Interval }

// LooksAsleep implements keeper.Sleeper.
func (hibernationDuty) LooksAsleep() {}

const (
	// soonest is the shortest pause before a look.
	soonest = time.Second
	// turnPause is the pause between two looks at an environment that waits for its turn to sleep or to wake.
	turnPause = 30 * time.Second
)

func (h hibernationDuty) Look(ctx context.Context, environment *keeper.Environment) (result keeper.Result, err error) {
	if state := environment.Sleeps.State; state == store.Hibernating || state == store.Waking {
		result.Findings = append(result.Findings, keeper.Finding{Kind: "hibernation-unfinished", Severity: keeper.Warning,
			Text:  fmt.Sprintf("Environment %s is %s since %s, and the task for it has ended without success: some of its servers may be off", environment.Name, state, environment.Sleeps.Changed.Time().Format("2006-01-02 15:04 MST")),
			Mends: "Wake it: burano environment wake " + environment.Name + "; or hibernate it again"})
	}
	times, found, err := hibernation.Stored(environment.Sleeps)
	if err != nil || !found {
		return result, err
	}
	now := h.now()
	result.Next = max(soonest, times.NextOf(now).At.Sub(now)*9/10) // pauses may be a tenth longer
	settled, err := h.Schedules.Settled(ctx, environment.Sleeps)
	if err != nil {
		return result, err
	}
	if !settled.Delegated {
		result.Findings = append(result.Findings, keeper.Finding{Kind: "schedule-undelegated", Severity: keeper.Warning,
			Text:  fmt.Sprintf("Environment %s has a schedule, and neither sleeps nor wakes by it: it has no standing delegation", environment.Name),
			Mends: "Give it one: burano environment delegation set " + environment.Name + "; or end the schedule: burano environment hibernation unset " + environment.Name})
		return result, nil
	}
	last, due := times.Due(now, environment.Sleeps.State, settled.At.Time())
	if due == hibernation.NotDue {
		return result, nil
	}
	if due != hibernation.Missed {
		result.Next = min(result.Next, turnPause)
	}
	finding, err := h.due(ctx, environment, last, due, settled)
	result.Findings = append(result.Findings, finding)
	return result, err
}

// due is the finding that an environment is to sleep, or to wake. Its repair does that.
func (h hibernationDuty) due(ctx context.Context, environment *keeper.Environment, last hibernation.Transition, due hibernation.Due, settled store.Settled) (keeper.Finding, error) {
	at := last.At.Format("2006-01-02 15:04 MST")
	kind, does, method := "sleep-due", "sleeps", store.MethodHibernate
	if last.Wakes {
		kind, does, method = "wake-due", "wakes", store.MethodWake
	}
	finding := keeper.Finding{Kind: kind, Severity: keeper.Info, Text: fmt.Sprintf("By its schedule environment %s %s since %s", environment.Name, does, at),
		Mends: "Burano does it by itself. Few environments sleep or wake at the same time: it waits for its turn",
		Repair: &keeper.Repair{ObjectID: environment.ID, Method: method, Cloud: true, Routine: true, AfterFailure: true,
			Text: fmt.Sprintf("By its schedule the environment %s since %s", does, at)}}
	if due == hibernation.Late {
		finding.Severity = keeper.Warning
	}
	if settled.Failed != "" && !settled.Tried.Time().Before(last.At) {
		finding.Severity = keeper.Warning
		finding.Text += ". The last try failed, in task " + settled.Failed
		finding.Mends = fmt.Sprintf("It is tried again by itself. The log of the last try names the reason: burano deployment show %s", settled.Failed)
	}
	if due == hibernation.Missed {
		finding.Kind, finding.Repair = "sleep-missed", nil
		finding.Text = fmt.Sprintf("Environment %s is awake, and was to sleep at %s. That was not possible for %.0f hours", environment.Name, at, hibernation.LateSleep.Hours())
		finding.Mends = "The next time of the schedule counts again. To let it sleep now: burano environment hibernate " + environment.Name
	}
	if last.Wakes {
		return finding, nil
	}
	plan, err := hibernation.Of(ctx, environment.ID, environment.Model, h.Secrets)
	if err != nil {
		return finding, err
	}
	if len(plan.Obstacles) > 0 {
		finding.Severity, finding.Repair = keeper.Warning, nil
		finding.Text += ": " + plan.Obstacles[0]
		finding.Mends = "Remove the obstacle, or end the schedule. All obstacles: burano environment hibernate " + environment.Name + " --dry-run"
		if due != hibernation.Missed {
			finding.Mends += ". Burano tries it again by itself"
		}
	}
	return finding, nil
}
