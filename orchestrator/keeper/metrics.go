package keeper

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are a keeper's counts.
type metrics struct {
	looks   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
	repairs *prometheus.CounterVec
}

// newMetrics registers them, unless where is nil.
func newMetrics(where prometheus.Registerer) *metrics {
	factory := promauto.With(where)
	return &metrics{
		looks: factory.NewCounterVec(prometheus.CounterOpts{Name: "burano_keeper_looks_total",
			Help: "Looks at environments by duty and outcome (done, failed)."}, []string{"duty", "outcome"}),
		seconds: factory.NewHistogramVec(prometheus.HistogramOpts{Name: "burano_keeper_look_seconds", Help: "Time of a look at an environment, by duty.",
			Buckets: []float64{0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120}}, []string{"duty"}),
		repairs: factory.NewCounterVec(prometheus.CounterOpts{Name: "burano_keeper_repairs_total",
			Help: "Repairs that this server has started, by duty and kind of finding."}, []string{"duty", "kind"}),
	}
}

func (m *metrics) looked(duty string, err error, took time.Duration) {
	outcome := "done"
	if err != nil {
		outcome = "failed"
	}
	m.looks.WithLabelValues(duty, outcome).Inc()
	m.seconds.WithLabelValues(duty).Observe(took.Seconds())
}
