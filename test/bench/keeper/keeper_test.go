// Package keeper measures what it costs one server to look after many environments whose nodes are simulated: what is left is claims, models,
// findings and the rows of all that. What a look at real nodes costs on top of it the end-to-end test of repairs measures.
package keeper

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/database/databasetest"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

const (
	// environments is how many there are; BURANO_KEEPERS is another number.
	environments = 1000
	// interval is how often each is looked at by each of the duties.
	interval = time.Minute
	// span is for how long it is measured; BURANO_KEEPERS_TIME is another time.
	span = 2 * time.Minute
	// latency is how long a simulated node takes to answer.
	latency = 200 * time.Millisecond
	// ill is one of how many environments in which something is wrong at a time.
	ill = 50
)

// simulated is a duty that waits for nodes, of which some are bad at a time.
type simulated struct {
	name  string
	looks atomic.Int64
}

func (s *simulated) Name() string         { return s.name }
func (s *simulated) Every() time.Duration { return interval }

func (s *simulated) Look(ctx context.Context, environment *keeper.Environment) (keeper.Result, error) {
	s.looks.Add(1)
	select {
	case <-ctx.Done():
		return keeper.Result{}, ctx.Err()
	case <-time.After(latency):
	}
	if len(environment.Clusters) != 1 {
		return keeper.Result{}, fmt.Errorf("environment %s has %d clusters", environment.ID, len(environment.Clusters))
	}
	if rand.N(ill) != 0 {
		return keeper.Result{}, nil
	}
	return keeper.Result{Next: interval / 4, Findings: []keeper.Finding{{ObjectID: environment.Clusters[0].ID, Kind: "node-unreachable", Subject: "murano-kube-2",
		Severity: keeper.Warning, Text: "Node murano-kube-2 is not reached", Mends: "Start it"}}}, nil
}

// BenchmarkKeepers has one server look after 1,000 environments, over SQLite and over PostgreSQL.
func BenchmarkKeepers(b *testing.B) {
	b.Run("SQLite", func(b *testing.B) {
		db, err := database.Open(filepath.Join(b.TempDir(), "burano.db"))
		require.NoError(b, err)
		measure(b, db, store.Alone())
	})
	b.Run("PostgreSQL", func(b *testing.B) {
		db, err := database.OpenPostgres(b.Context(), databasetest.Start(b).URL, 10*time.Second)
		require.NoError(b, err)
		measure(b, db)
	})
}

func measure(b *testing.B, db *gorm.DB, options ...store.Option) {
	b.Cleanup(func() { require.NoError(b, database.Close(db)) })
	sealer, err := secret.Open(filepath.Join(b.TempDir(), "key"))
	require.NoError(b, err)
	rows, err := store.New(b.Context(), db, nil, append(options, store.Sealed(sealer))...)
	require.NoError(b, err)
	count, length := environments, span
	if text := os.Getenv("BURANO_KEEPERS"); text != "" {
		count, err = strconv.Atoi(text)
		require.NoError(b, err)
	}
	if text := os.Getenv("BURANO_KEEPERS_TIME"); text != "" {
		length, err = time.ParseDuration(text)
		require.NoError(b, err)
	}
	for i := range count {
		e := store.Environment{ID: fmt.Sprintf("%032x", i+1), ProjectID: fmt.Sprintf("p%d", i%100), Name: fmt.Sprintf("e%d", i)}
		e.Model = store.Model{Objects: map[string]any{"?": map[string]any{"id": e.ID}}, ObjectsCopy: cluster(b, e.ID)}
		require.NoError(b, rows.Environments().Create(b.Context(), &e))
	}
	duties := []*simulated{{name: "health"}, {name: "servers"}, {name: "certificates"}}
	kept := keeper.New(keeper.Config{Store: rows, Duties: []keeper.Duty{duties[0], duties[1], duties[2]}, Logger: slog.New(slog.DiscardHandler), Wake: func() {}, Sole: true,
		Clusters: func(_ context.Context, id string) ([]string, error) { return []string{"c" + id[1:]}, nil },
		Project: func(context.Context, string, string) (*openstack.Project, string, error) {
			return nil, "", store.ErrNotFound
		}})
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- kept.Run(ctx) }()
	// The first round comes at once; from then on chance has spread the looks.
	require.Eventually(b, func() bool { return duties[0].looks.Load() >= int64(count) }, 10*time.Minute, 100*time.Millisecond)
	b.ResetTimer()
	looks, began, before := duties[0].looks.Load(), time.Now(), processor(b)
	<-time.After(length)
	took := time.Since(began)
	spent := processor(b) - before
	late, err := rows.Keepers().Overdue(b.Context(), interval/4)
	require.NoError(b, err)
	stop()
	require.NoError(b, <-ended)
	b.ReportMetric(spent.Seconds()/took.Seconds(), "processors")
	b.ReportMetric(float64(duties[0].looks.Load()-looks)/took.Seconds(), "looks/s")
	b.ReportMetric(float64(late), "late")
	b.ReportMetric(0, "ns/op")
	require.Zero(b, late, "environments that were not looked at in time")
	require.Less(b, spent.Seconds()/took.Seconds(), 0.5)
}

// cluster is the model of an environment with a cluster of six nodes.
func cluster(b *testing.B, environmentID string) map[string]any {
	b.Helper()
	node := func(role, name string) map[string]any {
		return map[string]any{"?": map[string]any{"id": name + environmentID[:20], "type": "com.mirantis.docker.kubernetes.Kubernetes" + role + "Node/1.0.0"},
			"instance": map[string]any{"?": map[string]any{"id": "i" + name + environmentID[:20], "type": "io.murano.resources.LinuxMuranoInstance/1.0.0"}, "name": name,
				"flavor": "m1.medium", "image": "burano-node", "openstackId": "s" + name, "ipAddresses": []any{"10.20.0.5", "203.0.113.5"}, "assignFloatingIp": true}}
	}
	made := map[string]any{"?": map[string]any{"id": environmentID, "type": "io.murano.Environment/1.0.0"}, "name": "e", "applications": []any{map[string]any{
		"?": map[string]any{"id": "c" + environmentID[1:], "type": "com.mirantis.docker.kubernetes.KubernetesCluster/1.0.0"}, "name": "c", "autoRepair": true,
		"masterNode": node("Master", "m"), "minionNodes": []any{node("Minion", "a"), node("Minion", "b"), node("Minion", "c")},
		"gatewayNodes": []any{node("Gateway", "g"), node("Gateway", "h")}, "nodeCount": 3, "gatewayCount": 2}}}
	text, err := json.Marshal(made)
	require.NoError(b, err)
	var model map[string]any
	require.NoError(b, json.Unmarshal(text, &model))
	return model
}

// processor is what this process has used of the processors.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
