// Package load checks a server's promises while many projects use it at once and Keystone and Heat fail now and then: acknowledged
// changes are there afterwards, no project starves, and memory stays bounded.
package load

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/burano/burano/internal/database/databasetest"
	"github.com/burano/burano/test/bench/server"
	"github.com/burano/burano/test/localcloud"
	"github.com/burano/burano/test/localcloud/fault"
	"github.com/burano/burano/test/localcloud/localcloudtest"
)

// The size of the load; BURANO_LOAD_TIME and BURANO_LOAD_PROJECTS change the first two for a shorter run.
const (
	defaultTime     = 10 * time.Minute
	defaultProjects = 500
	// greedy projects deploy this many environments at once, again and again; other projects one.
	greedy, atOnce = 5, 10
	// think is the longest time for which a user looks at an answer.
	think = 60 * time.Second
	// patience is how long one deployment may take before it counts as lost.
	patience = 5 * time.Minute
	// enough is the number of deployments from which a project's median is meaningful: a single one may just have met a
	// fault.
	enough = 5
	// fairness is how much longer than the median project the slowest may wait.
	fairness = 3
)

// BenchmarkProjects runs the same traffic against a server over SQLite and over PostgreSQL.
func BenchmarkProjects(b *testing.B) {
	b.Run("SQLite", func(b *testing.B) { measure(b, "") })
	b.Run("PostgreSQL", func(b *testing.B) { measure(b, databasetest.Start(b).URL) })
}

func measure(b *testing.B, database string) {
	span, count := duration(b, "BURANO_LOAD_TIME", defaultTime), number(b, "BURANO_LOAD_PROJECTS", defaultProjects)
	faults := &fault.Faults{}
	cloud := localcloudtest.Start(b, localcloud.Config{
		ExternalCIDR: netip.MustParsePrefix("10.86.90.0/24"), Prefix: "bld-", Logger: slog.New(slog.DiscardHandler), Faults: faults,
	})
	s := startServer(b, cloud, database)
	users := usersOf(b, s, count)
	importWords(b, s)

	var together tally
	ctx, cancel := context.WithTimeout(b.Context(), span)
	defer cancel()
	orderFaults(ctx, b, faults)
	group, working := errgroup.WithContext(context.WithoutCancel(ctx))
	b.ResetTimer()
	for i, u := range users {
		work := u.work
		if i < greedy {
			work = u.greed
		}
		group.Go(func() error {
			// Users come one after another, not all in one instant.
			if !pause(ctx, rand.N(think)) {
				return nil
			}
			for ctx.Err() == nil {
				if err := work(working, &together); err != nil {
					return fmt.Errorf("project %s: %w", u.name, err)
				}
				if !pause(ctx, rand.N(think)) {
					break
				}
			}
			return nil
		})
	}
	require.NoError(b, group.Wait())
	b.StopTimer()
	for _, u := range users {
		require.NoError(b, u.check(b.Context()), "what was acknowledged is there at the end")
	}
	together.report(b, users[greedy:], s)
}

// tally collects the durations of calls, for all projects.
type tally struct {
	mutex sync.Mutex
	calls map[string][]time.Duration // by kind
}

func (t *tally) note(kind string, took time.Duration) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.calls == nil {
		t.calls = map[string][]time.Duration{}
	}
	t.calls[kind] = append(t.calls[kind], took)
}

// report prints the figures, and fails when a project waited much longer than the others.
func (t *tally) report(b *testing.B, ordinary []*user, s *server.Server) {
	kinds := make([]string, 0, len(t.calls))
	for kind := range t.calls {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	var table strings.Builder
	fmt.Fprintf(&table, "\n| what | times | median ms | 99 %% ms | longest ms |\n|---|--:|--:|--:|--:|\n")
	for _, kind := range kinds {
		times := t.calls[kind]
		slices.Sort(times)
		fmt.Fprintf(&table, "| %s | %d | %d | %d | %d |\n", kind, len(times), times[len(times)/2].Milliseconds(),
			times[len(times)*99/100].Milliseconds(), times[len(times)-1].Milliseconds())
	}
	var medians []time.Duration
	for _, u := range ordinary {
		if len(u.deploys) >= enough {
			slices.Sort(u.deploys)
			medians = append(medians, u.deploys[len(u.deploys)/2])
		}
	}
	require.NotEmpty(b, medians, "no project has deployed %d times: run it for longer", enough)
	slices.Sort(medians)
	middle, slowest := medians[len(medians)/2], medians[len(medians)-1]
	fmt.Fprintf(&table, "\n%d projects deployed at least %d times. The median project's deployments take %s, the slowest project's %s (%.1f times).\n",
		len(medians), enough, middle.Round(time.Millisecond), slowest.Round(time.Millisecond), float64(slowest)/float64(middle))
	fmt.Fprintf(&table, "The server has had at most %d MiB in memory and used %s of processors.\n", s.Memory(b, "VmHWM"), s.Processor(b))
	fmt.Println(table.String()) // a benchmark's own log is cut short
	require.Less(b, float64(slowest)/float64(middle), float64(fairness), "a project starves")
}

// pause waits, and reports whether there is time left.
func pause(ctx context.Context, span time.Duration) bool {
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func duration(b *testing.B, variable string, otherwise time.Duration) time.Duration {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	value, err := time.ParseDuration(text)
	require.NoError(b, err, "%s is a time such as 2m", variable)
	return value
}

func number(b *testing.B, variable string, otherwise int) int {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	value, err := strconv.Atoi(text)
	require.NoError(b, err, "%s is a number", variable)
	require.Greater(b, value, greedy, "%s counts the greedy projects too", variable)
	return value
}
