package durability

import (
	"context"
	"embed"
	"encoding/json"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"golang.org/x/sync/errgroup"
	"gorm.io/gorm"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/apps"
	"github.com/burano/burano/catalog/muranopl"
	catalogstore "github.com/burano/burano/catalog/store"
	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/clusters"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/native"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
	"github.com/burano/burano/web/api"
	"github.com/burano/burano/web/auth"
)

//go:embed packages
var packages embed.FS

// asServer makes this test binary be a Burano server: its value is the settings as JSON.
const asServer = "BURANO_DURABILITY_SERVER"

// settings configure one server process. It is wired as in `burano serve`, but with the embedded packages of the tests.
type settings struct {
	Listen   string
	State    string        // folder of the key, and of the SQLite database
	Postgres string        // URL; "" for SQLite
	Lease    time.Duration // engine.Config
	// MaxDeaths is how many deaths of a server a task survives that runs alone (engine.Config); 0 is the default.
	MaxDeaths int
	Keystone  string
	World     string
}

func TestMain(m *testing.M) {
	if text := os.Getenv(asServer); text != "" {
		logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
		if err := serve(text, logger); err != nil {
			logger.Error("the server ended", "error", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func serve(text string, logger *slog.Logger) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var s settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	cloud, err := openstack.NewService(ctx, credentials(s.Keystone, "burano", "service"), gophercloud.EndpointOpts{Region: "local"}, nil)
	if err != nil {
		return err
	}
	sealer, err := secret.Open(filepath.Join(s.State, "secret.key"))
	if err != nil {
		return err
	}
	var db *gorm.DB
	if s.Postgres == "" {
		db, err = database.Open(filepath.Join(s.State, "burano.db"))
	} else {
		db, err = database.OpenPostgres(ctx, s.Postgres, s.Lease/3)
	}
	if err != nil {
		return err
	}
	defer func() { _ = database.Close(db) }()
	embedded, err := apps.Packages()
	if err != nil {
		return err
	}
	folder, err := fs.Sub(packages, "packages/recorder")
	if err != nil {
		return err
	}
	recorder, err := catalog.ReadEmbedded(folder)
	if err != nil {
		return err
	}
	catalogRows, err := catalogstore.New(ctx, db)
	if err != nil {
		return err
	}
	shelf, err := catalog.New(catalogRows, append(embedded, recorder))
	if err != nil {
		return err
	}
	rows, err := store.New(ctx, db, nil, store.Sealed(sealer))
	if err != nil {
		return err
	}
	outside := world{s.World}
	tasks, err := engine.New(ctx, engine.Config{
		Store: rows, Sealer: sealer, Cloud: cloud, Source: shelf.Source, Logger: logger, Lease: s.Lease, MaxDeaths: s.MaxDeaths, Sole: s.Postgres == "",
		Natives: func(runtime *engine.Runtime) muranopl.Natives {
			natives := native.Methods(runtime, native.Config{Settings: clusters.Settings{Reach: known.Reach{Logger: logger}}})
			natives["io.murano"]["io.murano.Environment"] = environment
			natives["org.durability.Recorder"] = outside.natives(runtime)
			return natives
		},
	})
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: api.New(api.Config{
		Orchestrator: orchestrator.New(orchestrator.Config{Store: rows, Sealer: sealer, Trusts: cloud, Engine: tasks, Logger: logger}),
		Catalog:      shelf, Auth: auth.Keystone(cloud, time.Now), Keystone: s.Keystone, Logger: logger,
	})}
	listener, err := net.Listen("tcp", s.Listen)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return tasks.Run(ctx) })
	group.Go(func() error { _ = server.Serve(listener); return nil })
	group.Go(func() error { <-ctx.Done(); return server.Close() })
	return group.Wait()
}

// environment are bodies of io.murano.Environment that need no stack.
var environment = map[string]muranopl.NativeMethod{
	"deploy": func(ctx context.Context, call muranopl.Call) (any, error) {
		for _, application := range call.Object.Objects("applications") {
			if _, err := call.Interpreter.Invoke(ctx, application, "deploy", nil); err != nil {
				return nil, err
			}
		}
		return nil, nil
	},
	".destroy": func(context.Context, muranopl.Call) (any, error) { return nil, nil },
}

func credentials(keystone, user, project string) gophercloud.AuthOptions {
	return gophercloud.AuthOptions{
		IdentityEndpoint: keystone, Username: user, Password: user, DomainName: "Default",
		Scope: &gophercloud.AuthScope{ProjectName: project, DomainName: "Default"},
	}
}
