package engine

import (
	"context"
	"fmt"
	"sync"

	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/store"
)

// withOutages gives a task the patience for outages of the cloud, which its log reports: once for each service that is away, and once
// when it is back.
func (e *Engine) withOutages(ctx context.Context, h *held) context.Context {
	var mutex sync.Mutex
	away := map[string]int{} // calls that wait, by service
	return openstack.WithOutages(ctx, openstack.Outages{Patience: e.OutagePatience, Notice: func(ctx context.Context, service string, why error) {
		mutex.Lock()
		defer mutex.Unlock()
		text := ""
		if why != nil {
			if away[service]++; away[service] == 1 {
				text = fmt.Sprintf("The service %s of the cloud cannot be used: %v. It is asked again for up to %s (burano serve --outage-patience).",
					service, why, e.OutagePatience)
			}
		} else if away[service]--; away[service] == 0 {
			text = fmt.Sprintf("The service %s of the cloud can be used again.", service)
		}
		if text == "" {
			return
		}
		h.log.WarnContext(ctx, text)
		// The log is for people: the task goes on without it.
		if err := h.AddReport(ctx, store.Report{Level: string(LevelInfo), Text: text}); err != nil {
			h.log.WarnContext(ctx, "a report could not be written", "error", err)
		}
	}})
}
