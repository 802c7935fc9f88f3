package e2e

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/images"
)

// TestApplicationsOfTheCatalogRunOnACluster has images of applications made of Debian's packages, pushed, and deployed with nothing else than
// Glance, and uses each application by its protocol.
func TestApplicationsOfTheCatalogRunOnACluster(t *testing.T) {
	soakOnly(t, "make soak runs this: it installs Debian's packages for each image; TestActionsChangeWhatRuns brings an image of Glance to nodes")
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	output, err := l.try(l.as("burano-demo"), "burano", "deploy", "test/e2e/testdata/catalog.yaml", "--follow")
	require.Error(t, err, output)
	require.Contains(t, output, "Glance has no container image glance.local/nginx:1.22 that the project sees: build it (burano image build-from nginx)")
	for _, kind := range []string{"servers", "stacks", "ports"} {
		require.Equal(t, found[kind], inventory(t, demo)[kind], "it was refused before anything was made")
	}
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "catalog")

	folder := t.TempDir()
	for _, name := range images.Applications() {
		file := filepath.Join(folder, name+".tar")
		t.Log(l.run(t, nil, "burano", "image", "build-from", name, "--output", file))
		require.Contains(t, l.run(t, l.as("burano-demo"), "burano", "image", "push", file), "is pushed")
		require.Contains(t, l.run(t, l.as("burano-demo"), "burano", "image", "push", file), "is there already")
	}
	began := time.Now()
	log := l.run(t, l.as("burano-demo"), "burano", "deploy", "test/e2e/testdata/catalog.yaml", "--follow")
	l.deleteIfFailed(t, "catalog")
	t.Logf("cluster and applications took %.1f s", time.Since(began).Seconds())
	for _, name := range images.Applications() {
		require.Contains(t, log, "murano-kube-2: container image glance.local/"+name)
	}
	environment := environmentNamed(t, demo, "catalog")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string)}
	a := &applications{lab: l, user: demo}

	t.Run("nginx and httpd serve their pages", func(t *testing.T) {
		for application, page := range map[string]string{"pages": "<h1>A page of nginx</h1>\n", "papers": "<h1>A page of httpd</h1>\n"} {
			text, err := get("http://" + s.published(t, a, application) + "/")
			require.NoError(t, err)
			require.Equal(t, page, text)
		}
	})

	t.Run("PostgreSQL keeps its data, and takes another password", func(t *testing.T) {
		shown, _ := s.call(t, "ledger", "showPassword", map[string]any{})
		password := shown["result"].(string)
		require.Len(t, password, 30)
		require.NotContains(t, log, password)
		require.NotContains(t, s.cluster.kubectl(t, "", "get", "deployment,pod", "-o", "yaml"), password)
		database := s.published(t, a, "ledger")
		require.Empty(t, rows(t, database, password, "CREATE TABLE entries (line text)"))
		require.Empty(t, rows(t, database, password, "INSERT INTO entries VALUES ('kept')"))
		s.act(t, "db", "recreatePod", map[string]any{})
		require.Equal(t, "kept", rows(t, database, password, "SELECT line FROM entries"))

		task, log := s.changed(t, a, "ledger", func(ledger map[string]any) { ledger["password"] = "it's \"mine\" \\ now" })
		require.Equal(t, "success", task["state"], log)
		require.NotContains(t, log, "it's")
		require.Equal(t, "kept", rows(t, database, "it's \"mine\" \\ now", "SELECT line FROM entries"))
		_, err := query(t.Context(), database, password, "SELECT 1")
		require.ErrorContains(t, err, "password authentication failed")
	})

	t.Run("the guestbook keeps in PostgreSQL what visitors write", func(t *testing.T) {
		page := "http://" + s.published(t, a, "guestbook") + "/"
		response, err := http.PostForm(page, url.Values{"entry": {"<b>I was here"}}) // follows to the page
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusOK, response.StatusCode)
		s.act(t, "front", "recreatePod", map[string]any{})
		for range 4 { // of both replicas
			text, err := get(page)
			require.NoError(t, err)
			require.Contains(t, text, "<li>&lt;b&gt;I was here</li>")
		}
	})

	t.Run("MariaDB keeps its data", func(t *testing.T) {
		shown, _ := s.call(t, "goods", "showPassword", map[string]any{})
		open := func(password string) *sql.DB {
			settings := mysql.NewConfig()
			settings.User, settings.Passwd, settings.Net, settings.Addr, settings.DBName = "root", password, "tcp", s.published(t, a, "goods"), "goods"
			connector, err := mysql.NewConnector(settings)
			require.NoError(t, err)
			database := sql.OpenDB(connector)
			t.Cleanup(func() { require.NoError(t, database.Close()) })
			return database
		}
		database := open(shown["result"].(string))
		for _, statement := range []string{"CREATE TABLE entries (line text)", "INSERT INTO entries VALUES ('kept')"} {
			_, err := database.ExecContext(t.Context(), statement)
			require.NoError(t, err)
		}
		s.act(t, "shop", "recreatePod", map[string]any{})
		var line string
		require.NoError(t, open(shown["result"].(string)).QueryRowContext(t.Context(), "SELECT line FROM entries").Scan(&line))
		require.Equal(t, "kept", line)
		require.ErrorContains(t, open("").PingContext(t.Context()), "Access denied")
	})

	t.Run("Redis keeps its keys", func(t *testing.T) {
		address := s.published(t, a, "carts")
		const login = `"with \"quotes\" \\ and more"`
		require.Contains(t, redis(t, address, "GET cart"), "NOAUTH")
		require.Equal(t, "+OK +OK", redis(t, address, "AUTH "+login, "SET cart kept"))
		s.act(t, "shop", "recreatePod", map[string]any{})
		require.Equal(t, "+OK $4 kept", redis(t, address, "AUTH "+login, "GET cart"))
	})

	t.Run("a node that joins has the images before it takes pods", func(t *testing.T) {
		lines := s.act(t, "catalog-cluster", "scaleNodesUp", map[string]any{})
		for _, name := range images.Applications() {
			require.Contains(t, strings.Join(lines["info"], "\n"), "murano-kube-3: container image glance.local/"+name)
		}
		s.cluster.kubectl(t, "", "cordon", "murano-kube-2")
		s.act(t, "web", "recreatePod", map[string]any{})
		page, err := get("http://" + s.published(t, a, "pages") + "/")
		require.NoError(t, err)
		require.Equal(t, "<h1>A page of nginx</h1>\n", page)
		require.Equal(t, "murano-kube-3", s.cluster.kubectl(t, "", "get", "pod", "-l", "id=web", "--field-selector", "status.phase=Running", "-o", "jsonpath={.items[0].spec.nodeName}"))
		s.cluster.kubectl(t, "", "uncordon", "murano-kube-2")
	})

	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "catalog")
	asBefore(t, demo, found)
}

// published is where an application is reached from outside.
func (s *scaling) published(t *testing.T, a *applications, name string) string {
	t.Helper()
	return endpointOf(t, map[string]any{"services": []any{a.application(t, s.environment, name)}})
}

// redis sends commands on a connection of its own, and returns the lines of what came back, with spaces between.
func redis(t *testing.T, address string, commands ...string) string {
	t.Helper()
	connection, err := net.DialTimeout("tcp", address, 10*time.Second)
	require.NoError(t, err)
	defer connection.Close()
	require.NoError(t, connection.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = io.WriteString(connection, strings.Join(append(commands, "QUIT"), "\r\n")+"\r\n")
	require.NoError(t, err)
	answer, err := io.ReadAll(connection)
	require.NoError(t, err)
	lines := strings.Fields(string(answer))
	return strings.Join(lines[:len(lines)-1], " ") // the last one is QUIT's
}

// rows runs a statement in the database "ledger" and returns what it gives, with spaces between.
func rows(t *testing.T, address, password, statement string) string {
	t.Helper()
	text, err := query(t.Context(), address, password, statement)
	require.NoError(t, err)
	return text
}

func query(ctx context.Context, address, password, statement string) (string, error) {
	place := url.URL{Scheme: "postgres", User: url.UserPassword("postgres", password), Host: address, Path: "ledger", RawQuery: "sslmode=disable&connect_timeout=10"}
	connection, err := pgx.Connect(ctx, place.String())
	if err != nil {
		return "", err
	}
	defer connection.Close(ctx)
	found, err := connection.Query(ctx, statement)
	if err != nil {
		return "", err
	}
	var values []string
	for found.Next() {
		row, err := found.Values()
		if err != nil {
			return "", err
		}
		values = append(values, strings.Trim(fmt.Sprint(row), "[]"))
	}
	return strings.Join(values, " "), found.Err()
}
