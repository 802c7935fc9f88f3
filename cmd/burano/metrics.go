package main

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"gorm.io/gorm"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/version"
)

// newRegistry makes the registry of the server's metrics, with those of the process and of the database in it.
func newRegistry(db *gorm.DB) (*prometheus.Registry, error) {
	registry := prometheus.NewRegistry()
	handle, err := db.DB()
	if err != nil {
		return nil, fmt.Errorf("measure the database: %w", err)
	}
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewDBStatsCollector(handle, "burano"))
	factory := promauto.With(registry)
	factory.NewGaugeVec(prometheus.GaugeOpts{Name: "burano_build_info", Help: "Which Burano this is; always 1."}, []string{"version"}).
		WithLabelValues(version.Version).Set(1)
	seconds := factory.NewHistogramVec(prometheus.HistogramOpts{Name: "burano_database_seconds", Help: "Time of the database's statements, by kind.",
		Buckets: []float64{0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10}}, []string{"operation"})
	failures := factory.NewCounterVec(prometheus.CounterOpts{Name: "burano_database_errors_total", Help: "Statements of the database that failed, by kind."},
		[]string{"operation"})
	return registry, database.Observe(db, func(operation string, took time.Duration, failed bool) {
		seconds.WithLabelValues(operation).Observe(took.Seconds())
		if failed {
			failures.WithLabelValues(operation).Inc()
		}
	})
}
