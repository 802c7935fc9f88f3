package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"gorm.io/gorm"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/version"
	"github.com/burano/burano/orchestrator/openstack"
)

// measure registers the metrics of the process and of the database.
func measure(registry prometheus.Registerer, db *gorm.DB) error {
	handle, err := db.DB()
	if err != nil {
		return fmt.Errorf("measure the database: %w", err)
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
	return database.Observe(db, func(operation string, took time.Duration, failed bool) {
		seconds.WithLabelValues(operation).Observe(took.Seconds())
		if failed {
			failures.WithLabelValues(operation).Inc()
		}
	})
}

// countCalls registers the metrics of calls of the cloud, and returns what is to be told of each.
func countCalls(registry prometheus.Registerer) func(openstack.Call) {
	factory := promauto.With(registry)
	calls := factory.NewCounterVec(prometheus.CounterOpts{Name: "burano_cloud_calls_total",
		Help: "Calls of the cloud by service, method and status, each try for itself; the status is 0 when there was no answer."}, []string{"service", "method", "status"})
	seconds := factory.NewHistogramVec(prometheus.HistogramOpts{Name: "burano_cloud_call_seconds", Help: "Time until a service of the cloud has answered.",
		Buckets: []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120}}, []string{"service", "method"})
	return func(call openstack.Call) {
		calls.WithLabelValues(call.Service, call.Method, strconv.Itoa(call.Status)).Inc()
		seconds.WithLabelValues(call.Service, call.Method).Observe(call.Took.Seconds())
	}
}
