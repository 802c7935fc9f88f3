package e2e

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/test/localcloud/keystone"
)

// engine is a database of the catalog in testdata/data.yaml.
type engine struct {
	application, pod, program string
	connect                   func(t *testing.T, address, password string) *sql.DB
	flushes                   string // the statement for how often its hook before backups has run
	check                     string // the script that reads all of its files
	sound                     func(output string) error
}

var engines = []engine{
	{
		application: "ledger", pod: "books", program: "postgres",
		connect: func(t *testing.T, address, password string) *sql.DB {
			place := url.URL{Scheme: "postgres", User: url.UserPassword("postgres", password), Host: address, Path: "ledger", RawQuery: "sslmode=disable&connect_timeout=5"}
			settings, err := pgx.ParseConfig(place.String())
			require.NoError(t, err)
			return stdlib.OpenDB(*settings)
		},
		flushes: "SELECT checkpoints_req FROM pg_stat_bgwriter",
		check: `PGPASSWORD=$POSTGRES_PASSWORD /usr/lib/postgresql/15/bin/pg_amcheck --host 127.0.0.1 --username postgres --all --install-missing --heapallindexed --parent-check ` +
			`--rootdescend --verbose 2>&1`,
		sound: func(output string) error {
			if !strings.Contains(output, `checking heap table "ledger.public.entries"`) || !strings.Contains(output, `checking btree index "ledger.public.entries_pkey"`) {
				return fmt.Errorf("it did not check the table: %s", output)
			}
			return nil
		},
	},
	{
		application: "goods", pod: "shelves", program: "mariadbd",
		connect: func(t *testing.T, address, password string) *sql.DB {
			settings := mysql.NewConfig()
			settings.User, settings.Passwd, settings.Net, settings.Addr, settings.DBName = "root", password, "tcp", address, "goods"
			settings.Logger = &mysql.NopLogger{}                                                                         // failures are the writer's to count
			settings.Timeout, settings.ReadTimeout, settings.WriteTimeout = 5*time.Second, 40*time.Second, 5*time.Second // pods are frozen for up to 25 s
			connector, err := mysql.NewConnector(settings)
			require.NoError(t, err)
			return sql.OpenDB(connector)
		},
		flushes: "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'com_flush'",
		check:   `MYSQL_PWD=$MARIADB_ROOT_PASSWORD mariadb-check --host 127.0.0.1 --user root --all-databases --check --extended 2>&1`,
		sound: func(output string) error {
			seen := false
			for line := range strings.Lines(output) {
				name, said, _ := strings.Cut(strings.TrimSpace(line), " ")
				if seen = seen || name == "goods.entries"; strings.TrimSpace(said) != "OK" {
					return fmt.Errorf("%s: %s", line, output)
				}
			}
			if !seen {
				return fmt.Errorf("it did not check the table: %s", output)
			}
			return nil
		},
	},
}

// dataSite is an environment of testdata/data.yaml.
type dataSite struct {
	*scaling
	applications *applications
}

// dataSite finds an environment by its name. l is the lab of its region.
func (l *lab) dataSite(t *testing.T, u *user, name string) *dataSite {
	t.Helper()
	environment := environmentNamed(t, u, name)
	return &dataSite{&scaling{lab: l, user: u, cluster: l.clusterOf(t, l.user(t, u.entry), environment), environment: environment["id"].(string)}, &applications{lab: l, user: u}}
}

// open connects to a database through the gateway.
func (d *dataSite) open(t *testing.T, of engine) *sql.DB {
	t.Helper()
	shown, _ := d.call(t, of.application, "showPassword", map[string]any{})
	made := of.connect(t, d.published(t, d.applications, of.application), shown["result"].(string))
	t.Cleanup(func() { _ = made.Close() })
	return made
}

// rowWriter writes row after row to a database, each in a transaction that also counts it.
type rowWriter struct {
	of     engine
	to     *sql.DB
	lock   sync.Mutex
	tried  int
	done   []int // the rows whose transactions were acknowledged, in their order
	failed []string
	ended  chan struct{}
}

// startWriter makes the tables of a database, and writes until the test ends.
func (d *dataSite) startWriter(t *testing.T, of engine) *rowWriter {
	t.Helper()
	w := &rowWriter{of: of, to: d.open(t, of), ended: make(chan struct{})}
	for _, statement := range []string{"CREATE TABLE entries (n bigint PRIMARY KEY, line text)", "CREATE TABLE totals (n bigint)", "INSERT INTO totals VALUES (0)"} {
		_, err := w.to.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	go func() {
		defer close(w.ended)
		for wait.Pause(ctx, 5*time.Millisecond) == nil {
			w.write(ctx)
		}
	}()
	t.Cleanup(func() { stop(); <-w.ended })
	return w
}

func (w *rowWriter) write(ctx context.Context) {
	w.lock.Lock()
	w.tried++
	n := w.tried
	w.lock.Unlock()
	bounded, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err := func() error {
		transaction, err := w.to.BeginTx(bounded, nil)
		if err != nil {
			return err
		}
		defer func() { _ = transaction.Rollback() }()
		for _, statement := range []string{fmt.Sprintf("INSERT INTO entries VALUES (%d, '%s')", n, strings.Repeat(fmt.Sprint(n, " "), 20)), "UPDATE totals SET n = n + 1"} {
			if _, err := transaction.ExecContext(bounded, statement); err != nil {
				return err
			}
		}
		return transaction.Commit()
	}()
	w.lock.Lock()
	defer w.lock.Unlock()
	if err != nil {
		w.failed = append(w.failed, fmt.Sprintf("row %d: %v", n, err))
		return
	}
	w.done = append(w.done, n)
}

// acknowledged are the rows that were acknowledged until now, and tried is the last row that was sent.
func (w *rowWriter) acknowledged() (rows []int, tried int) {
	w.lock.Lock()
	defer w.lock.Unlock()
	return slices.Clone(w.done), w.tried
}

// goesOn waits until more rows are acknowledged.
func (w *rowWriter) goesOn(t *testing.T, l *lab, when string) {
	t.Helper()
	before, _ := w.acknowledged()
	l.eventually(t, 2*time.Minute, w.of.application+" takes rows "+when, func() error {
		if now, _ := w.acknowledged(); len(now) < len(before)+50 {
			return fmt.Errorf("there are %d, and were %d; failed: %v", len(now), len(before), w.failed[max(0, len(w.failed)-3):])
		}
		return nil
	})
}

// moment is the state of a writer when a backup is asked for.
type moment struct {
	writer *rowWriter
	done   []int
	latest int // the last row that was sent when the backup was whole; 0 before
}

func momentsOf(writers []*rowWriter) (list []moment) {
	for _, one := range writers {
		done, _ := one.acknowledged()
		list = append(list, moment{writer: one, done: done})
	}
	return list
}

// whole notes that a backup is whole.
func whole(list []moment) {
	for i := range list {
		_, list[i].latest = list[i].writer.acknowledged()
	}
}

// has demands that the databases of an environment are as they were at a moment of a backup that was asked for: with every row that was acknowledged before, no transaction by half and no gap, and
// sound by the databases' own programs.
func (d *dataSite) has(t *testing.T, then []moment) {
	t.Helper()
	for _, one := range then {
		of := one.writer.of
		var present []int
		var total int
		database := d.open(t, of)
		d.lab.eventually(t, time.Minute, of.application+" answers", func() error { return database.QueryRowContext(t.Context(), "SELECT n FROM totals").Scan(&total) })
		rows, err := database.QueryContext(t.Context(), "SELECT n FROM entries ORDER BY n")
		require.NoError(t, err)
		for rows.Next() {
			var n int
			require.NoError(t, rows.Scan(&n))
			present = append(present, n)
		}
		require.NoError(t, rows.Err())
		require.NotEmpty(t, present)
		latest := present[len(present)-1]
		require.Len(t, present, total, "%s: no transaction is there by half", of.application)
		require.LessOrEqual(t, latest, one.latest)
		all, _ := one.writer.acknowledged()
		lost := slices.DeleteFunc(all, func(n int) bool {
			_, there := slices.BinarySearch(present, n)
			return there || n > latest && !slices.Contains(one.done, n)
		})
		require.Empty(t, lost, "%s: acknowledged rows before the backup", of.application)
		output := d.cluster.inPodOf(t, of.pod, of.check)
		require.NoError(t, of.sound(output))
		t.Logf("%s has %d rows until row %d: %d were acknowledged when the backup was asked for, and row %d was sent when it was whole; its own check passes", of.application, len(present), latest,
			len(one.done), one.latest)
	}
}

// flushed is how often the hook of a database has run.
func (w *rowWriter) flushed(t *testing.T) (n int) {
	t.Helper()
	require.NoError(t, w.to.QueryRowContext(t.Context(), w.of.flushes).Scan(&n))
	return n
}

// held is for how many seconds pods were frozen for the newest backup.
func (u *user) held(t *testing.T) float64 {
	t.Helper()
	return u.must(t, http.MethodGet, "/burano/v1/backups", nil)["backups"].([]any)[0].(map[string]any)["held"].(float64)
}

// inRegion is the lab as users of another region of its local cloud see it.
func (l *lab) inRegion(t *testing.T, name string) *lab {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(l.cloud, "clouds.yaml"))
	require.NoError(t, err)
	there := *l
	there.cloud = filepath.Join(l.cloud, name) // the state of its servers
	require.NoError(t, os.WriteFile(filepath.Join(there.cloud, "clouds.yaml"), []byte(strings.ReplaceAll(string(text), "region_name: "+keystone.Region, "region_name: "+name)), 0o600))
	return &there
}

// TestDatabasesComeBackFromBackups has clients write to PostgreSQL and to MariaDB of the catalog all the time. The programs of both databases are killed, a backup is made, and Burano's server is
// killed during another one. The backups are drilled, restored beside, restored and cloned into another region. Each time every acknowledged row is there, and the databases' own checks pass.
func TestDatabasesComeBackFromBackups(t *testing.T) {
	soakOnly(t, "make soak runs this: it installs Debian's packages for the images, and makes five clusters")
	l := startIn(t, []string{"--second-region-cidr", "10.86.2" + slot() + ".0/24"}, "faults")
	demo := l.user(t, "burano-demo")
	far := l.inRegion(t, keystone.SecondRegion)
	l.run(t, far.as("burano-admin"), "burano", "image", "upload", "--name", "burano-node", "--public", l.image())
	found, foundFar := inventory(t, demo), inventory(t, far.user(t, "burano-demo"))
	burano := func(args ...string) string {
		t.Helper()
		return l.run(t, l.as("burano-demo"), "burano", args...)
	}
	l.pushApplications(t, "mariadb", "postgresql")
	burano("deploy", "test/e2e/testdata/data.yaml", "--follow")
	l.deleteIfFailed(t, "data")
	site := l.dataSite(t, demo, "data")
	var writers []*rowWriter
	for _, of := range engines {
		writers = append(writers, site.startWriter(t, of))
	}
	goOn := func(when string) {
		t.Helper()
		for _, one := range writers {
			one.goesOn(t, l, when)
		}
	}
	goOn("at the beginning")

	for _, of := range engines {
		_, err := site.cluster.on("murano-kube-2", "/bin/bash", "-c", `killed=; for one in /proc/[0-9]*; do [[ $(<"$one/comm") != `+of.program+` ]] || { kill -9 "${one#/proc/}"; killed=1; }; done; [[ $killed ]]`)
		require.NoError(t, err)
	}
	goOn("after its program was killed")

	flushed := []int{writers[0].flushed(t), writers[1].flushed(t)}
	first, began := momentsOf(writers), time.Now()
	burano("backup", "create", "data", "--reason", "while clients write")
	whole(first)
	t.Logf("a backup was whole after %.1f s; pods were frozen for %.2f s", time.Since(began).Seconds(), demo.held(t))
	for i, one := range writers {
		require.Greater(t, one.flushed(t), flushed[i], "%s: its hook has run", one.of.application)
	}
	goOn("after the backup")
	backups := backupsOf(t, burano)

	second := momentsOf(writers)
	l.killed(t, []string{"begin:copy claims of data-cluster"}, func() {
		_, _ = demo.send(t.Context(), http.MethodPost, "/burano/v1/environments/"+site.environment+"/backups", map[string]any{"reason": "killed"})
	})
	site.ready(t)
	whole(second)
	goOn("after the death of the server")
	require.Len(t, backupsOf(t, burano), 2)
	killed := backupsOf(t, burano)[0]

	t.Log(burano("backup", "drill", "data"))

	began = time.Now()
	burano("backup", "restore", backups[0], "--name", "data-again", "--follow")
	l.deleteIfFailed(t, "data-again")
	t.Logf("restored beside in %.1f s", time.Since(began).Seconds())
	l.dataSite(t, demo, "data-again").has(t, first)
	burano("environment", "delete", "--yes", "data-again")

	l.databasesGoFar(t, far, site, killed, second, writers)
	for _, one := range writers {
		done, tried := one.acknowledged()
		t.Logf("%s acknowledged %d of %d rows; %d failed, the first: %s", one.of.application, len(done), tried, len(one.failed), one.failed[0])
	}
	burano("environment", "delete", "--yes", "data")
	burano(append([]string{"backup", "delete"}, backupsOf(t, burano)...)...)
	asBefore(t, demo, found)
	asBefore(t, far.user(t, "burano-demo"), foundFar)
}

// databasesGoFar restores a backup of a moment in the second region, and clones the environment with its data into it. Where something is missing there, the preview names it before any change.
func (l *lab) databasesGoFar(t *testing.T, far *lab, site *dataSite, backup string, then []moment, writers []*rowWriter) {
	demo := site.user
	refused := func(args ...string) string {
		t.Helper()
		output, err := l.try(l.as("burano-demo"), "burano", args...)
		require.Error(t, err, output)
		require.Len(t, demo.must(t, http.MethodGet, "/v1/environments", nil)["environments"], 1, "no environment is left")
		return output
	}
	before := len(backupsOf(t, func(args ...string) string { return l.run(t, l.as("burano-demo"), "burano", args...) }))
	for _, one := range []struct{ region, says string }{
		{"Nowhere", "Nowhere"},
		{keystone.SecondRegion, "Glance has no container image glance.local/"},
	} {
		require.Contains(t, refused("backup", "restore", backup, "--name", "data-far", "--region", one.region, "--follow"), one.says)
		require.Contains(t, refused("environment", "clone", "data", "data-far", "--region", one.region, "--data", "--yes"), one.says)
	}
	require.Len(t, backupsOf(t, func(args ...string) string { return l.run(t, l.as("burano-demo"), "burano", args...) }), before, "no backup is made for a clone that is refused")
	far.pushApplications(t, "mariadb", "postgresql")

	near, began := withoutTrusts(inventory(t, demo)), time.Now()
	l.run(t, l.as("burano-demo"), "burano", "backup", "restore", backup, "--name", "data-far", "--region", keystone.SecondRegion, "--follow")
	l.deleteIfFailed(t, "data-far")
	t.Logf("restored in another region in %.1f s", time.Since(began).Seconds())
	require.Equal(t, near, withoutTrusts(inventory(t, demo)), "nothing is made in the first region")
	far.dataSite(t, demo, "data-far").has(t, then)
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "data-far")

	began, then = time.Now(), momentsOf(writers)
	l.run(t, l.as("burano-demo"), "burano", "environment", "clone", "data", "data-copy", "--region", keystone.SecondRegion, "--data", "--yes")
	l.deleteIfFailed(t, "data-copy")
	whole(then)
	t.Logf("cloned into another region with its data in %.1f s", time.Since(began).Seconds())
	require.Equal(t, near, withoutTrusts(inventory(t, demo)), "nothing is made in the first region")
	far.dataSite(t, demo, "data-copy").has(t, then)
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "data-copy")
}
