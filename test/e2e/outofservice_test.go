package e2e

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/volumes"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestADatabaseOutlivesTheServerOfItsNode writes to a database of the catalog while the server of its node is stopped, and then the server of the next node is deleted, in Nova.
// The database goes on with its volume on the other node, and has every acknowledged row. So does a guestbook over it, which Murano's client deploys and visitors reach by HTTPS.
// The keeper runs at its default interval.
func TestADatabaseOutlivesTheServerOfItsNode(t *testing.T) {
	soakOnly(t, "make soak runs this: it installs Debian's packages for the database's image; TestClaimsGetVolumesOfCinder has a node with a volume lose its server")
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skipf("servers' volumes are loop devices, which this machine has not: %v", err)
	}
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	l.pushApplications(t, "guestbook", "postgresql")
	// The delegation is set before the volume is requested.
	l.run(t, l.as("burano-demo"), "burano", "environment", "create", "ledger")
	l.deleteIfFailed(t, "ledger")
	l.run(t, l.as("burano-demo"), "burano", "environment", "delegation", "set", "ledger")
	output, err := l.try(l.as("burano-demo"), "burano", "deploy", "test/e2e/testdata/ledger.yaml", "--follow")
	assert.NoError(t, err, "the volume is made for the deployment that waits for it: %s", output)
	environment := environmentNamed(t, demo, "ledger")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string)}
	c := s.cluster
	shown, _ := s.call(t, "ledger", "showPassword", map[string]any{})
	place := url.URL{Scheme: "postgres", User: url.UserPassword("postgres", shown["result"].(string)), Host: s.published(t, &applications{lab: l, user: demo}, "ledger"), Path: "ledger",
		RawQuery: "sslmode=disable&connect_timeout=3"}
	rows(t, place.Host, shown["result"].(string), "CREATE TABLE entries (number bigint PRIMARY KEY)")

	visitors := s.guestbookByMurano(t, "ledger")
	visitors.write(t, "<b>I was here")
	s.recreatedByMurano(t, "front")
	s.recreatedByMurano(t, "db")
	visitors.holds(t, "after its pods and the database's were made anew")

	node := func() string {
		return c.kubectl(t, "", "get", "pod", "-l", "id=db", "--field-selector", "status.phase=Running", "-o", "jsonpath={.items[*].spec.nodeName}")
	}
	taints := func(node string) string {
		return c.kubectl(t, "", "get", "node", node, "-o", "jsonpath={.spec.taints[*].key}")
	}
	// outlives runs do, a change of a node's server, during writes.
	outlives := func(what string, do func(node string)) (left string) {
		t.Helper()
		left = node()
		w := writeTo(t, place.String())
		l.eventually(t, time.Minute, "writes are acknowledged", func() error { return w.more(20) })
		do(left)
		began := time.Now()
		l.eventually(t, 3*time.Minute, "it is written to elsewhere", func() error {
			if now := node(); now == left || now == "" {
				return fmt.Errorf("it runs on %q; %s", now, c.kubectl(t, "", "get", "pods,volumeattachments,nodes"))
			}
			return w.more(20)
		})
		acknowledged, pause := w.stop()
		t.Logf("%s: no write was acknowledged for %.1f s; %.1f s after it was so there were 20 new ones", what, pause.Seconds(), time.Since(began).Seconds())
		require.Less(t, pause, 90*time.Second)
		connection, err := pgx.Connect(t.Context(), place.String())
		require.NoError(t, err)
		defer connection.Close(t.Context())
		var kept int
		require.NoError(t, connection.QueryRow(t.Context(), "SELECT count(*) FROM entries WHERE number = ANY($1)", acknowledged).Scan(&kept))
		require.Equal(t, len(acknowledged), kept, "every write that was acknowledged is there")
		require.Contains(t, taints(left), "node.kubernetes.io/out-of-service")
		pages, err := volumes.List(demo.service(t, openstack.NewBlockStorageV3), volumes.ListOpts{}).AllPages(t.Context())
		require.NoError(t, err)
		list, err := volumes.ExtractVolumes(pages)
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Len(t, list[0].Attachments, 1)
		require.Equal(t, c.servers[node()], list[0].Attachments[0].ServerID)
		s.finds(t, "node-out-of-service")
		return left
	}

	stopped := outlives("its server was stopped", func(node string) {
		require.NoError(t, servers.Stop(t.Context(), demo.nova(t), c.servers[node]).ExtractErr())
		s.becomes(t, c.servers[node], "SHUTOFF")
	})
	visitors.holds(t, "after the database's node was stopped")
	visitors.write(t, "and so was I")
	require.NoError(t, servers.Start(t.Context(), demo.nova(t), c.servers[stopped]).ExtractErr())
	s.finds(t)
	require.NotContains(t, taints(stopped), "out-of-service")

	deleted := outlives("its server was deleted", func(node string) { s.deleteServer(t, node) })
	require.NotEqual(t, stopped, deleted)
	visitors.holds(t, "after the database's node was deleted")
	s.deploy(t)
	s.finds(t)
	require.NotContains(t, taints(deleted), "out-of-service")
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "ledger")
	asBefore(t, demo, found)
}

// writes are numbered rows that are written one after another, each in a transaction of its own.
type writes struct {
	t      *testing.T
	end    context.CancelFunc
	ended  chan struct{}
	counts chan int // the number of acknowledged writes, for readers

	seen         int // the count at the first look of more
	acknowledged []int64
	pause        time.Duration // the longest between two
}

// writeTo writes to a database until stop. A failed write is not tried again: it is unknown whether the row exists.
func writeTo(t *testing.T, database string) *writes {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	w := &writes{t: t, end: end, ended: make(chan struct{}), counts: make(chan int), seen: -1}
	t.Cleanup(end)
	go func() {
		defer close(w.ended)
		last := time.Now()
		number := last.UnixMicro()
		var connection *pgx.Conn
		for ctx.Err() == nil {
			select {
			case w.counts <- len(w.acknowledged):
			default:
			}
			number++
			err := func() (err error) {
				limited, cancel := context.WithTimeout(ctx, 3*time.Second)
				defer cancel()
				if connection == nil || connection.IsClosed() {
					if connection, err = pgx.Connect(limited, database); err != nil {
						connection = nil
						return err
					}
				}
				_, err = connection.Exec(limited, "INSERT INTO entries VALUES ($1)", number)
				return err
			}()
			if err == nil {
				w.acknowledged = append(w.acknowledged, number)
				w.pause, last = max(w.pause, time.Since(last)), time.Now()
			}
		}
		if connection != nil {
			_ = connection.Close(context.Background())
		}
	}()
	return w
}

// more returns an error until so many writes were acknowledged since its first call, or since its last success.
func (w *writes) more(than int) error {
	var now int
	select {
	case now = <-w.counts:
	case <-time.After(5 * time.Second):
		return fmt.Errorf("nothing is written")
	}
	if w.seen < 0 {
		w.seen = now
	}
	if now < w.seen+than {
		return fmt.Errorf("%d were acknowledged since, and not %d", now-w.seen, than)
	}
	w.seen = -1
	return nil
}

// stop ends the writing, and returns the acknowledged numbers, and the longest time without one.
func (w *writes) stop() (acknowledged []int64, pause time.Duration) {
	w.end()
	<-w.ended
	return w.acknowledged, w.pause
}
