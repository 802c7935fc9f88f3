package upkeep

import (
	"context"
	"fmt"
	"time"

	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/store"
)

// hibernationDuty looks at environments that sleep, as no other duty does. It asks neither the cloud nor a node.
type hibernationDuty struct{ Config }

func newHibernationDuty(config Config) hibernationDuty { return hibernationDuty{config} }

func (hibernationDuty) Name() string { return "hibernation" }

func (h hibernationDuty) Every() time.Duration { return h.Interval }

// LooksAsleep implements keeper.Sleeper.
func (hibernationDuty) LooksAsleep() {}

func (h hibernationDuty) Look(_ context.Context, environment *keeper.Environment) (result keeper.Result, err error) {
	if state := environment.Sleeps.State; state == store.Hibernating || state == store.Waking {
		result.Findings = append(result.Findings, keeper.Finding{Kind: "hibernation-unfinished", Severity: keeper.Warning,
			Text:  fmt.Sprintf("Environment %s is %s since %s, and the task for it has ended without success: some of its servers may be off", environment.Name, state, environment.Sleeps.Changed.Time().Format("2006-01-02 15:04 MST")),
			Mends: "Wake it: burano environment wake " + environment.Name + "; or hibernate it again"})
	}
	return result, nil
}
