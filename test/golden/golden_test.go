package golden

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/apps"
	"github.com/burano/burano/catalog/muranopl"
	catalogstore "github.com/burano/burano/catalog/store"
	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/clusters"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/native"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
	"github.com/burano/burano/web/api"
	"github.com/burano/burano/web/auth"
)

const keystone = "http://keystone.test:5000/v3"

// tokens is a Keystone that knows the recorded tokens.
type tokens map[string]identity.Caller

func (t tokens) Validate(_ context.Context, token string) (identity.Caller, error) {
	caller, known := t[token]
	if !known {
		return caller, fault.New(fault.Unauthorized, "nobody has this token")
	}
	return caller, nil
}

var recordedTokens = tokens{
	"{token:demo}":  {UserID: "8a1d7a3c7c3f4b6e9f0b6d5c4e3f2a10", ProjectID: ProjectDemo, Roles: []string{"member"}},
	"{token:other}": {UserID: "8a1d7a3c7c3f4b6e9f0b6d5c4e3f2a11", ProjectID: ProjectOther, Roles: []string{"member"}},
	"{token:admin}": {UserID: "8a1d7a3c7c3f4b6e9f0b6d5c4e3f2a12", ProjectID: ProjectAdmin, Roles: []string{"admin"}, Admin: true},
}

// server is a whole Burano on a cloud without servers: real stores, engine, catalog, driver and API. Of the packages that come with it, it offers
// only io.murano, as the recorded Murano did (`burano serve --embedded-packages io.murano`).
type server struct {
	*target
	gates gates
	cloud *cloud
}

func newServer(t *testing.T) *server {
	s := &server{target: &target{t: t}}
	folder := t.TempDir()
	db, err := database.Open(filepath.Join(folder, "burano.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Close(db)) })
	embedded, err := apps.Packages()
	require.NoError(t, err)
	rows, err := catalogstore.New(t.Context(), db)
	require.NoError(t, err)
	moment := time.Date(2026, 11, 20, 13, 33, 47, 0, time.UTC)
	packages, err := catalog.New(rows, embedded, catalog.OfferEmbedded("io.murano"), catalog.EmbeddedOwner(ProjectAdmin),
		catalog.PageSize(20), // the recorded Murano's setting
		catalog.WithIDs(func() string { return s.nextID }), catalog.WithClock(func() time.Time { return moment }))
	require.NoError(t, err)

	sealer, err := secret.Open(filepath.Join(folder, "key"))
	require.NoError(t, err)
	environments, err := store.New(t.Context(), db, nil, store.Sealed(sealer))
	require.NoError(t, err)
	s.cloud = newCloud(t)
	logger := slog.New(slog.DiscardHandler)
	tasks, err := engine.New(t.Context(), engine.Config{Store: environments, Sealer: sealer, Cloud: s.cloud, Source: packages.Source,
		Natives: func(r *engine.Runtime) muranopl.Natives {
			return s.gates.through(native.Methods(r, native.Config{Settings: clusters.Settings{Reach: known.Reach{Logger: logger}, ServerPatience: time.Minute}}))
		}, Logger: logger})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- tasks.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	handler := api.New(api.Config{
		Orchestrator: orchestrator.New(orchestrator.Config{Store: environments, Sealer: sealer, Trusts: s.cloud, Engine: tasks, Logger: logger}),
		Catalog:      packages,
		Auth:         auth.Keystone(recordedTokens, time.Now),
		Keystone:     keystone,
		Logger:       logger,
	})
	listener := httptest.NewServer(handler)
	t.Cleanup(listener.Close)
	s.Replay = &Replay{URL: listener.URL, Keystone: keystone, IDs: IDs{ProjectDemo: ProjectDemo, ProjectAdmin: ProjectAdmin, ProjectOther: ProjectOther}}
	return s
}

func TestTheServerAnswersAsRecorded(t *testing.T) { newServer(t).answersAsRecorded() }
