package engine

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/burano/burano/orchestrator/lease"
	"github.com/burano/burano/orchestrator/store"
)

// metrics are an engine's counts of its own work.
type metrics struct {
	seconds   *prometheus.HistogramVec
	lost      prometheus.Counter
	takenOver prometheus.Counter
}

// newMetrics registers the metrics; registry may be nil.
func newMetrics(registry prometheus.Registerer, e *Engine) *metrics {
	factory := promauto.With(registry)
	factory.NewGauge(prometheus.GaugeOpts{Name: "burano_workers", Help: "Tasks that the server can run at the same time."}).Set(float64(e.Workers))
	factory.NewGaugeFunc(prometheus.GaugeOpts{Name: "burano_workers_busy", Help: "Tasks that the server runs."}, func() float64 {
		e.mutex.Lock()
		defer e.mutex.Unlock()
		return float64(e.pool.busy)
	})
	return &metrics{
		seconds: factory.NewHistogramVec(prometheus.HistogramOpts{Name: "burano_task_seconds",
			Help:    "Time that the server worked for a task, by kind (deployment, action, deletion) and outcome (success, failure, cancelled, given back, lost).",
			Buckets: []float64{0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 21600}}, []string{"kind", "outcome"}),
		lost:      factory.NewCounter(prometheus.CounterOpts{Name: "burano_leases_lost_total", Help: "Tasks whose lease the server could not renew in time, or that another one has taken over."}),
		takenOver: factory.NewCounter(prometheus.CounterOpts{Name: "burano_tasks_taken_over_total", Help: "Tasks that the server has taken over from one that is gone."}),
	}
}

// began counts a taken task; before is the task as it was.
func (m *metrics) began(before store.Task) {
	if before.Worker != "" {
		m.takenOver.Inc()
	}
}

// ended counts a task that the server no longer works on; cause is the cause of the end of its context.
func (m *metrics) ended(task store.Task, outcome string, cause error, took time.Duration) {
	if errors.Is(cause, lease.ErrLost) || errors.Is(cause, errTakenOver) {
		m.lost.Inc()
	}
	m.seconds.WithLabelValues(task.Kind(), outcome).Observe(took.Seconds())
}
