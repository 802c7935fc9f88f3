package server

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"gorm.io/gorm"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/version"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/store"
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

// countConnections registers the number of SSH connections, and returns the function to call for each change.
func countConnections(registry prometheus.Registerer) func(change int) {
	open := promauto.With(registry).NewGauge(prometheus.GaugeOpts{Name: "burano_ssh_connections",
		Help: "SSH connections to nodes that deployments, actions and looks at clusters hold."})
	return func(change int) { open.Add(float64(change)) }
}

// measureCertificates registers when certificates of clusters end, and returns the function to call for each cluster.
func measureCertificates(registry prometheus.Registerer) func(environmentID, clusterID string, end time.Time) {
	ends := promauto.With(registry).NewGaugeVec(prometheus.GaugeOpts{Name: "burano_cluster_certificate_expiry_timestamp_seconds",
		Help: "When the first certificate of a cluster ends, as Unix time."}, []string{"environment", "cluster"})
	return func(environmentID, clusterID string, end time.Time) {
		ends.WithLabelValues(environmentID, clusterID).Set(float64(end.Unix()))
	}
}

// countCalls registers the metrics of calls to the cloud, and returns the function to call for each.
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

// loadPatience is how long the database may take to count the waiting work.
const loadPatience = 5 * time.Second

// load shows the waiting work of all servers that share the database; each server shows the same.
type load struct {
	rows *store.Store
	log  *slog.Logger

	waiting, oldest, running, overdue, orphaned, unlooked, findings *prometheus.Desc
}

func newLoad(rows *store.Store, log *slog.Logger) *load {
	describe := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }
	return &load{rows: rows, log: log,
		waiting:  describe("burano_tasks_waiting", "Deployments, actions and deletions that no server runs, of all servers over the database."),
		oldest:   describe("burano_task_oldest_waiting_seconds", "How long the one of them has waited that waits longest; 0 for none."),
		running:  describe("burano_tasks_running", "Deployments, actions and deletions that servers run, of all servers over the database."),
		overdue:  describe("burano_tasks_overdue", "Of these, those whose lease has run out: their server is gone or cannot reach the database."),
		orphaned: describe("burano_trusts_orphaned", "Trusts that nothing needs any more and that Keystone may still have."),
		unlooked: describe("burano_keepers_overdue", "Environments that nobody has looked at although they were due more than a minute ago."),
		findings: prometheus.NewDesc("burano_findings", "What is not as it should be in environments, by what looked and severity.", []string{"duty", "severity"}, nil),
	}
}

// Describe is for prometheus.Collector.
func (l *load) Describe(to chan<- *prometheus.Desc) {
	for _, one := range []*prometheus.Desc{l.waiting, l.oldest, l.running, l.overdue, l.orphaned, l.unlooked, l.findings} {
		to <- one
	}
}

// Collect is for prometheus.Collector. While the database is away there are no values.
func (l *load) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), loadPatience)
	defer cancel()
	now, err := l.rows.Tasks().Load(ctx)
	if err != nil {
		l.log.Warn("metrics of tasks are missing", "error", err)
		return
	}
	for desc, value := range map[*prometheus.Desc]float64{l.waiting: float64(now.Waiting), l.oldest: now.Oldest.Seconds(), l.running: float64(now.Running),
		l.overdue: float64(now.Overdue), l.orphaned: float64(now.Orphaned)} {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value)
	}
	unlooked, err := l.rows.Keepers().Overdue(ctx, time.Minute)
	if err != nil {
		l.log.Warn("metrics of keepers are missing", "error", err)
		return
	}
	to <- prometheus.MustNewConstMetric(l.unlooked, prometheus.GaugeValue, float64(unlooked))
	found, err := l.rows.Findings().Counts(ctx)
	if err != nil {
		l.log.Warn("metrics of findings are missing", "error", err)
		return
	}
	for _, one := range found {
		to <- prometheus.MustNewConstMetric(l.findings, prometheus.GaugeValue, float64(one.Number), one.Duty, one.Severity)
	}
}
