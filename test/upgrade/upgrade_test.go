// Package upgrade opens databases of former versions with today's server. The first stored version (21 November 2026) made
// testdata/first: environments that were deployed, failed, are empty and wait to be deployed, an uploaded package, a draft, secrets.
// A version's database stays here as it is.
package upgrade

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/burano/burano/catalog"
	catalogstore "github.com/burano/burano/catalog/store"
	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/database/databasetest"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/engine/enginetest"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
	"github.com/burano/burano/web/api"
)

// project is the owner of the fixture's environments.
const project = "719b7bdac0ef48f984b5e18c16ee164a"

// onEachFixture runs the test over a copy of the first version's database of each kind, with its key.
func onEachFixture(t *testing.T, test func(t *testing.T, db *gorm.DB, keyFile string)) {
	folder := filepath.Join("testdata", "first")
	with := func(t *testing.T, db *gorm.DB, err error) {
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, database.Close(db)) })
		key := filepath.Join(t.TempDir(), "secret.key")
		copied(t, filepath.Join(folder, "secret.key"), key)
		test(t, db, key)
	}
	t.Run("SQLite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "burano.db")
		copied(t, filepath.Join(folder, "burano.db"), path)
		db, err := database.Open(path)
		with(t, db, err)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		url := databasetest.Postgres(t)
		text, err := os.ReadFile(filepath.Join(folder, "postgresql.sql"))
		require.NoError(t, err)
		connection, err := pgx.Connect(t.Context(), url)
		require.NoError(t, err)
		_, err = connection.Exec(t.Context(), string(text))
		require.NoError(t, err)
		require.NoError(t, connection.Close(t.Context()))
		db, err := database.OpenPostgres(t.Context(), url, 10*time.Second)
		with(t, db, err)
	})
}

func copied(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, text, 0o600))
}

// server is today's server, over a database.
type server struct {
	t       *testing.T
	handler http.Handler
	rows    *store.Store
	sealer  *secret.Sealer
}

func serve(t *testing.T, db *gorm.DB, keyFile string) *server {
	sealer, err := secret.Open(keyFile)
	require.NoError(t, err)
	rows, err := store.New(t.Context(), db, nil, store.Sealed(sealer))
	require.NoError(t, err)
	embedded, err := enginetest.Packages()
	require.NoError(t, err)
	packageRows, err := catalogstore.New(t.Context(), db)
	require.NoError(t, err)
	packages, err := catalog.New(packageRows, embedded)
	require.NoError(t, err)
	cloud := enginetest.NewCloud()
	logger := slog.New(slog.DiscardHandler)
	tasks, err := engine.New(t.Context(), engine.Config{Store: rows, Sealer: sealer, Cloud: cloud, Source: packages.Source,
		Natives: enginetest.NewWorld().Natives, Logger: logger, Poll: 50 * time.Millisecond, Sole: true})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- tasks.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	caller := identity.Caller{UserID: "u-demo", ProjectID: project, Roles: []string{"member"}, Token: "token"}
	return &server{t: t, rows: rows, sealer: sealer, handler: api.New(api.Config{
		Orchestrator: orchestrator.New(orchestrator.Config{Store: rows, Sealer: sealer, Trusts: cloud, Engine: tasks, Logger: logger}),
		Catalog:      packages,
		Auth: func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c echo.Context) error {
				c.SetRequest(c.Request().WithContext(identity.With(c.Request().Context(), caller)))
				return next(c)
			}
		},
		Logger: logger,
	})}
}

func (s *server) call(method, path, session string, body any) any {
	s.t.Helper()
	var text []byte
	if body != nil {
		var err error
		text, err = json.Marshal(body)
		require.NoError(s.t, err)
	}
	request := httptest.NewRequest(method, path, bytes.NewReader(text))
	request.Header.Set("X-Configuration-Session", session)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	recorder := httptest.NewRecorder()
	s.handler.ServeHTTP(recorder, request)
	require.Equal(s.t, http.StatusOK, recorder.Code, "%s %s: %s", method, path, recorder.Body)
	var answer any
	if recorder.Body.Len() > 0 {
		require.NoError(s.t, json.Unmarshal(recorder.Body.Bytes(), &answer))
	}
	return answer
}

func field(value any, path ...any) any {
	for _, key := range path {
		switch k := key.(type) {
		case string:
			value = value.(map[string]any)[k]
		case int:
			value = value.([]any)[k]
		}
	}
	return value
}

// environments are the ids of the fixture's environments, by name.
func (s *server) environments() map[string]string {
	s.t.Helper()
	ids := map[string]string{}
	for _, one := range field(s.call("GET", "/v1/environments", "", nil), "environments").([]any) {
		ids[field(one, "name").(string)] = field(one, "id").(string)
	}
	return ids
}

func (s *server) becomes(id, status string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return field(s.call("GET", "/v1/environments/"+id, "", nil), "status") == status }, 30*time.Second, 10*time.Millisecond,
		"the environment does not become %s", status)
}

func TestADatabaseOfTheFirstVersionIsReadDeployedAgainAndDeleted(t *testing.T) {
	onEachFixture(t, func(t *testing.T, db *gorm.DB, keyFile string) {
		s := serve(t, db, keyFile)
		ids := s.environments()
		require.Len(t, ids, 4)
		deployed := ids["deployed"]
		services := s.call("GET", "/v1/environments/"+deployed+"/services", "", nil)
		require.Equal(t, "correct horse", field(services, 0, "password"))
		require.EqualValues(t, 1, field(services, 0, "count"))
		deployments := field(s.call("GET", "/v1/environments/"+deployed+"/deployments", "", nil), "deployments").([]any)
		require.Len(t, deployments, 2, "the deployment and the action")
		for _, deployment := range deployments {
			require.Equal(t, "success", field(deployment, "state"))
			reports := field(s.call("GET", "/v1/environments/"+deployed+"/deployments/"+field(deployment, "id").(string), "", nil), "reports").([]any)
			require.NotEmpty(t, reports)
		}
		require.Equal(t, "deploy failure", field(s.call("GET", "/v1/environments/"+ids["failed"], "", nil), "status"))
		require.Equal(t, "ready", field(s.call("GET", "/v1/environments/"+ids["empty"], "", nil), "status"))
		packages := field(s.call("GET", "/v1/catalog/packages?fqn=org.fixture.Counter", "", nil), "packages").([]any)
		require.Len(t, packages, 1)
		require.Equal(t, []any{"Web"}, field(packages, 0, "categories"))
		value, there, err := s.rows.Attributes().Get(t.Context(), deployed, "c1", "org.fixture.Counter", "kept")
		require.NoError(t, err)
		require.True(t, there)
		require.Equal(t, "an attribute", value)
		sealed, there, err := s.rows.Secrets().Get(t.Context(), deployed, "fixture")
		require.NoError(t, err)
		require.True(t, there)
		opened, err := s.sealer.Open(store.SecretOwner(deployed, "fixture"), sealed)
		require.NoError(t, err)
		require.Equal(t, "a key of the cluster", string(opened))

		// The states of components follow from the stored tasks.
		_, err = s.rows.Components().Complete(t.Context())
		require.NoError(t, err)
		states, components := map[any]any{}, map[any]any{}
		for _, one := range field(s.call("GET", "/burano/v1/environments", "", nil), "environments").([]any) {
			states[field(one, "name")], components[field(one, "name")] = field(one, "state"), field(one, "components")
		}
		require.Equal(t, "changed", states["deployed"], "it has a draft")
		require.Equal(t, map[string]any{"ready": float64(len(services.([]any)))}, components["deployed"])
		require.Equal(t, "failed", states["failed"])
		require.Equal(t, "new", states["empty"])

		s.becomes(ids["waiting"], "ready") // it goes on with the former version's task
		session := field(s.call("POST", "/v1/environments/"+deployed+"/configure", "", nil), "id").(string)
		s.call("POST", "/v1/environments/"+deployed+"/sessions/"+session+"/deploy", "", nil)
		s.becomes(deployed, "ready")
		require.EqualValues(t, 2, field(s.call("GET", "/v1/environments/"+deployed+"/services", "", nil), 0, "count"), "deployed once more, from its own state")
		task := field(s.call("POST", "/v1/environments/"+deployed+"/actions/c1_tell", "", map[string]any{}), "task_id").(string)
		s.becomes(deployed, "ready")
		require.EqualValues(t, 2, field(s.call("GET", "/v1/environments/"+deployed+"/actions/"+task, "", nil), "result"))
		for _, id := range ids {
			s.call("DELETE", "/v1/environments/"+id, "", nil)
		}
		require.Eventually(t, func() bool { return len(s.environments()) == 0 }, 30*time.Second, 10*time.Millisecond)
	})
}

func TestTheSecretsOfTheFirstVersionAreSealedAgain(t *testing.T) {
	onEachFixture(t, func(t *testing.T, db *gorm.DB, keyFile string) {
		sealer, err := secret.Open(keyFile)
		require.NoError(t, err)
		rows, err := store.New(t.Context(), db, nil, store.Sealed(sealer))
		require.NoError(t, err)
		former := sealer.Keys()[0]
		added, err := secret.AddKey(keyFile, true)
		require.NoError(t, err)
		require.NoError(t, rows.Keys().Reseal(t.Context(), sealer, func(string, int64) {}))
		values, err := rows.Keys().SealedValues(t.Context())
		require.NoError(t, err)
		require.NotEmpty(t, values)
		for _, one := range values {
			require.Equal(t, added, one.KeyID, one.Column)
		}
		require.NoError(t, secret.RemoveKey(keyFile, former))
		s := serve(t, db, keyFile)
		services := s.call("GET", "/v1/environments/"+s.environments()["deployed"]+"/services", "", nil)
		require.Equal(t, "correct horse", field(services, 0, "password"))
	})
}
