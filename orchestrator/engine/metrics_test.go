package engine_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"
)

func TestTheEngineCountsItsWork(t *testing.T) {
	h := newHouse(t)
	h.stop()
	registry := prometheus.NewRegistry()
	h.metrics, h.workers = registry, 5
	dead := h.create("dead")
	h.deploy(dead, application("a1", "alpha", nil))
	h.die(1, false)
	release := h.world.Hold("deploy slow")
	h.start()
	require.Equal(t, "success", h.ended(dead).State)
	failing, slow := h.create("failing"), h.create("slow")
	h.deploy(failing, application("a1", "beta", map[string]any{"fail": true}))
	h.ended(failing)
	h.deploy(slow, application("a1", "slow", nil))
	h.begun("deploy slow", 1)
	scraped := func() string {
		recorder := httptest.NewRecorder()
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(recorder, httptest.NewRequest("GET", "/metrics", nil))
		return recorder.Body.String()
	}
	for _, line := range []string{"burano_workers 5", "burano_workers_busy 1", "burano_leases_lost_total 0", "burano_tasks_taken_over_total 1"} {
		require.Eventually(t, func() bool { return strings.Contains(scraped(), line+"\n") }, 20*time.Second, 5*time.Millisecond, line)
	}
	require.NoError(t, h.service.Deployments().Cancel(t.Context(), demo, h.newest(slow).ID))
	h.ended(slow)
	release()
	h.stop()
	for _, outcome := range []string{"success", "failure", "cancelled"} {
		require.Contains(t, scraped(), `burano_task_seconds_count{kind="deployment",outcome="`+outcome+`"} 1`)
	}
}
