package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/burano/burano/catalog"
	catalogstore "github.com/burano/burano/catalog/store"
	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/internal/scratch"
	"github.com/burano/burano/nodes/claimdata"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/backup"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/engine/enginetest"
	"github.com/burano/burano/orchestrator/native"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/snapshot"
	"github.com/burano/burano/orchestrator/store"
	"github.com/burano/burano/web/auth"
)

// server is the whole API over a real store and engine; Keystone is a table of tokens.
type server struct {
	stopAudit func()
	t         *testing.T
	echo      *echo.Echo
	world     *enginetest.World
	catalog   *catalog.Service
	db        *gorm.DB
	log       *bytes.Buffer
	logger    *slog.Logger // writes to log

	keystone      *keystoneTable
	authenticator *auth.Authenticator
	ahead         time.Duration // of the authenticator's clock
	rows          *store.Store
	sealer        *secret.Sealer
	config        Config
}

var callers = map[string]identity.Caller{
	"{token:demo}":    {UserID: "u-demo", ProjectID: goldenDemo, Roles: []string{"member"}, Token: "{token:demo}"},
	"{token:other}":   {UserID: "u-other", ProjectID: goldenOther, Roles: []string{"member"}, Token: "{token:other}"},
	"{token:reader}":  {UserID: "u-reader", ProjectID: goldenDemo, Roles: []string{"reader"}, Token: "{token:reader}"},
	"{token:manager}": {UserID: "u-manager", UserName: "manager", ProjectID: goldenDemo, Roles: []string{"manager"}, Token: "{token:manager}"},
	"{token:robot}":   {UserID: "u-demo", ProjectID: goldenDemo, Roles: []string{"member"}, Token: "{token:robot}", Credential: &identity.Credential{ID: "c", Name: "ci", Restricted: true}},
	"{token:admin}":   {UserID: "u-admin", ProjectID: goldenAdmin, Roles: []string{"admin"}, Token: "{token:admin}"},
}

func newServer(t *testing.T, options ...func(*Config)) *server {
	folder := t.TempDir()
	db, err := database.Open(filepath.Join(folder, "burano.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Close(db)) })
	rows, err := store.New(t.Context(), db, nil, store.Undelete(time.Hour))
	require.NoError(t, err)
	sealer, err := secret.Open(filepath.Join(folder, "key"))
	require.NoError(t, err)
	packages, err := enginetest.Packages()
	require.NoError(t, err)
	packageRows, err := catalogstore.New(t.Context(), db)
	require.NoError(t, err)
	packageService, err := catalog.New(packageRows, packages)
	require.NoError(t, err)

	s := &server{t: t, world: enginetest.NewWorld(), keystone: &keystoneTable{issued: map[string]identity.Caller{}}, catalog: packageService, db: db, log: &bytes.Buffer{}}
	s.sealer, s.logger = sealer, slog.New(slog.NewTextHandler(s.log, nil))
	s.authenticator = s.newAuthenticator(rows, sealer)
	cloud := enginetest.NewCloud()
	archive := snapshot.New(rows.Snapshots(), nil, sealer, func(context.Context, string) (snapshot.Checked, error) {
		return snapshot.Checked{Revision: 7, Size: 25}, nil
	}, scratch.New(t.TempDir(), 1<<30))
	runner, err := engine.New(t.Context(), engine.Config{Store: rows, Sealer: sealer, Cloud: cloud, Source: packageService.Source,
		Natives: s.world.Natives, Logger: slog.New(slog.DiscardHandler), Poll: time.Hour})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- runner.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })

	service := orchestrator.New(orchestrator.Config{Store: rows, Sealer: sealer, Trusts: cloud, Engine: runner, Logger: slog.New(slog.DiscardHandler)})
	config := Config{
		Orchestrator: service,
		Backups: orchestrator.NewBackups(service, orchestrator.BackupsConfig{Keep: backup.Backups{Rows: rows.Backups(), Archive: archive},
			Claims: func(_ context.Context, environmentID, _ string) ([]claimdata.Claim, map[string]string, error) {
				return []claimdata.Claim{{Namespace: "default", Name: "of " + environmentID, Size: "1Gi"}}, map[string]string{"default/raw": "it is a block device"}, nil
			}}),
		Projects: orchestrator.NewProjectRoles(rows, sealer, cloud, nil, slog.New(slog.DiscardHandler)),
		Catalog:  packageService,
		Auth:     s.authenticator.Enter,
		SignIn:   s.authenticator,
		Keystone: "http://127.0.0.1:5000/v3",
		UpgradePlan: func(clusterID, image string) engine.Question {
			return native.PlanUpgrade(native.Config{}, clusterID, image)
		},
		Choices: func(_ context.Context, caller identity.Caller, kind, region string) (any, error) {
			return []string{kind + region + " of " + caller.ProjectID}, nil
		},
		Clusters:     &fakeClusters{archive: archive},
		Snapshots:    archive,
		Deleted:      orchestrator.NewUndeletion(rows, func(context.Context, string) error { return nil }),
		SnapshotLoss: func(store.Snapshot) string { return "what came later" },
		Quotas:       []QuotaStore{rows.Quotas(), packageRows},
		Applied:      rows.Applied(),
		Logger:       s.logger,
	}
	for _, option := range options {
		option(&config)
	}
	s.config = config
	s.echo = newEcho(config)
	return s
}

func (s *server) send(method, path string, headers map[string]string, body []byte) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, path, bytes.NewReader(body))
	request.Host = "127.0.0.1:8082"
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	recorder := httptest.NewRecorder()
	s.echo.ServeHTTP(recorder, request)
	return recorder
}

// call sends JSON as a caller and demands the status; session may be "".
func (s *server) call(token, session, method, path string, body any, status int) any {
	s.t.Helper()
	headers := map[string]string{"X-Auth-Token": "{token:" + token + "}"}
	var raw []byte
	if body != nil {
		headers["Content-Type"] = "application/json"
		var err error
		raw, err = json.Marshal(body)
		require.NoError(s.t, err)
	}
	if session != "" {
		headers[sessionHeader] = session
	}
	recorder := s.send(method, path, headers, raw)
	require.Equal(s.t, status, recorder.Code, "%s %s: %s", method, path, recorder.Body)
	require.Regexp(s.t, `^req-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, recorder.Header().Get(requestIDHeader))
	var value any
	_ = json.Unmarshal(recorder.Body.Bytes(), &value)
	return value
}

func (s *server) awaitIdle(id string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		recorder := s.send("GET", "/v1/environments/"+id, map[string]string{"X-Auth-Token": "{token:admin}"}, nil)
		return !strings.Contains(recorder.Body.String(), `"status":"deploying"`) && !strings.Contains(recorder.Body.String(), `"status":"deleting"`)
	}, 20*time.Second, 5*time.Millisecond)
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

func hello(id, name string) map[string]any {
	return map[string]any{"?": map[string]any{"id": id, "type": "org.golden.Hello"}, "name": name, "greeting": "hi", "password": "hush"}
}

func TestADeploymentCanBeFollowedThroughTheAPI(t *testing.T) {
	s := newServer(t)
	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	session := field(s.call("demo", "", "POST", "/v1/environments/"+id+"/configure", nil, 200), "id").(string)
	s.call("demo", session, "POST", "/v1/environments/"+id+"/services", hello("a1", "alpha"), 200)
	s.call("demo", session, "PUT", "/v1/environments/"+id+"/services/a1/%3F/name", "Alpha", 200)
	require.Equal(t, "Alpha", s.call("demo", session, "GET", "/v1/environments/"+id+"/services/a1/%3f/name", nil, 200))
	s.call("demo", "", "POST", "/v1/environments/"+id+"/sessions/"+session+"/deploy", nil, 200)
	s.awaitIdle(id)

	deployments := s.call("demo", "", "GET", "/v1/environments/"+id+"/deployments", nil, 200)
	require.Equal(t, "success", field(deployments, "deployments", 0, "state"))
	require.Equal(t, "*** SANITIZED ***", field(deployments, "deployments", 0, "description", "services", 0, "password"))
	task := field(deployments, "deployments", 0, "id").(string)
	reports := s.call("demo", "", "GET", "/v1/environments/"+id+"/deployments/"+task, nil, 200)
	require.Len(t, field(reports, "reports"), 4)
	require.Equal(t, "Warning: services[0].password: password is not known, and has no effect: leave it out", field(reports, "reports", 1, "text"), "Murano ignores it")
	about := s.call("demo", "", "GET", "/v1/environments/"+id+"/deployments/"+task+"?service_id=a1", nil, 200)
	require.Len(t, field(about, "reports"), 1)
	steps := s.call("demo", "", "GET", "/burano/v1/deployments/"+task+"/steps", nil, 200)
	require.Equal(t, "say", field(steps, "steps", 0, "name"))
	require.Equal(t, "a1", field(steps, "steps", 0, "object"))
	require.NotNil(t, field(steps, "steps", 0, "seconds"))

	stream := s.send("GET", "/burano/v1/deployments/"+task+"/events", map[string]string{"X-Auth-Token": "{token:demo}", "Last-Event-ID": "1"}, nil)
	require.Equal(t, "text/event-stream", stream.Header().Get("Content-Type"))
	require.Equal(t, 3, strings.Count(stream.Body.String(), "event: report\n"), "those after the first: %s", stream.Body)
	require.True(t, strings.HasSuffix(stream.Body.String(), "event: end\ndata: {\"state\":\"success\"}\n\n"), stream.Body)

	recorder := s.send("GET", "/burano/v1/environments/"+id+"/clusters/a1/kubeconfig", map[string]string{"X-Auth-Token": "{token:demo}"}, nil)
	require.Equal(t, 200, recorder.Code)
	require.True(t, strings.HasPrefix(recorder.Body.String(), "for: "+id+"/a1\n"))
	s.call("demo", "", "GET", "/burano/v1/environments/"+id+"/clusters/nope/kubeconfig", nil, 404)

	s.call("demo", "", "DELETE", "/v1/environments/"+id, nil, 200)
	require.Eventually(t, func() bool {
		return s.send("GET", "/v1/environments/"+id, map[string]string{"X-Auth-Token": "{token:demo}"}, nil).Code == 404
	}, 20*time.Second, 5*time.Millisecond)
	require.Contains(t, s.world.Log(), "destroy alpha")
	require.NotContains(t, s.log.String(), "{token:", "tokens are not logged")
}

func TestAnActionIsRunOnItsObject(t *testing.T) {
	s := newServer(t)
	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	session := field(s.call("demo", "", "POST", "/v1/environments/"+id+"/configure", nil, 200), "id").(string)
	s.call("demo", session, "POST", "/v1/environments/"+id+"/services", hello("a1", "alpha"), 200)
	actions := "/v1/environments/" + id + "/actions/"
	value := s.call("demo", "", "POST", actions+"a1_shout", map[string]any{}, 404)
	require.Equal(t, "LookupError", field(value, "error", "type"), "what was never deployed offers nothing")
	open := s.world.Hold("deploy alpha")
	defer open()
	s.call("demo", "", "POST", "/v1/environments/"+id+"/sessions/"+session+"/deploy", nil, 200)
	s.call("demo", "", "POST", actions+"a1_shout", map[string]any{}, 403)
	open()
	s.awaitIdle(id)

	session = field(s.call("demo", "", "POST", "/v1/environments/"+id+"/configure", nil, 200), "id").(string)
	task := field(s.call("demo", "", "POST", actions+"a1_shout", map[string]any{"suffix": "?!"}, 200), "task_id").(string)
	s.awaitIdle(id)
	require.Equal(t, map[string]any{"isException": false, "result": "hi?!"}, s.call("demo", "", "GET", actions+task, nil, 200))
	require.Equal(t, map[string]any{"object_id": "a1", "method": "shout", "args": map[string]any{"suffix": "?!"}},
		field(s.call("demo", "", "GET", "/v1/environments/"+id+"/deployments", nil, 200), "deployments", 0, "action"))
	reports := s.call("demo", "", "GET", "/v1/environments/"+id+"/deployments/"+task, nil, 200)
	require.Equal(t, "Action shout is scheduled", field(reports, "reports", 0, "text"))
	s.call("demo", "", "POST", "/v1/environments/"+id+"/sessions/"+session+"/deploy", nil, 403)

	task = field(s.call("demo", "", "POST", actions+"a1_boom", map[string]any{}, 200), "task_id").(string)
	s.awaitIdle(id)
	require.Equal(t, true, field(s.call("demo", "", "GET", actions+task, nil, 200), "isException"))
	task = field(s.call("demo", "", "POST", actions+"a1_shout", map[string]any{"nope": 1}, 200), "task_id").(string)
	s.awaitIdle(id)
	require.Contains(t, field(s.call("demo", "", "GET", actions+task, nil, 200), "result", "message"), "nope")
	s.call("demo", "", "POST", actions+"a1_deploy", map[string]any{}, 404)
	s.call("demo", "", "POST", actions+"a1_shout", nil, 400)
	s.call("demo", "", "GET", "/v1/environments/"+id+"/actions/"+strings.Repeat("f", 32), nil, 404)
	s.call("other", "", "POST", actions+"a1_shout", map[string]any{}, 403)
}

func TestADeploymentThatCameToNothingTakesNoActionAway(t *testing.T) {
	s := newServer(t)
	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	deploy := func(application map[string]any) {
		session := field(s.call("demo", "", "POST", "/v1/environments/"+id+"/configure", nil, 200), "id").(string)
		s.call("demo", session, "PUT", "/v1/environments/"+id+"/services", []any{application}, 200)
		s.call("demo", "", "POST", "/v1/environments/"+id+"/sessions/"+session+"/deploy", nil, 200)
		s.awaitIdle(id)
	}
	deploy(hello("a1", "alpha"))
	wrong := hello("a1", "alpha")
	wrong["count"] = -1
	deploy(wrong)
	require.Equal(t, "deploy failure", field(s.call("demo", "", "GET", "/v1/environments/"+id, nil, 200), "status"))
	s.call("demo", "", "POST", "/v1/environments/"+id+"/actions/a1_shout", map[string]any{}, 200)
	s.awaitIdle(id)
}

func TestWhatIsShownInPlaceOfASecretIsNotTakenForOne(t *testing.T) {
	s := newServer(t)
	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	session := field(s.call("demo", "", "POST", "/v1/environments/"+id+"/configure", nil, 200), "id").(string)
	services, masked := "/v1/environments/"+id+"/services", func(id string) map[string]any {
		made := hello(id, "alpha")
		made["password"] = "*** SANITIZED ***"
		return made
	}
	given := hello("a1", "alpha")
	given["password"] = "the secret"
	s.call("demo", session, "POST", services, given, 200)
	s.call("demo", session, "PUT", services, []any{hello("a0", "beta"), masked("a1")}, 200)
	require.Equal(t, "the secret", field(s.call("demo", session, "GET", services, nil, 200), 1, "password"), "at the object of the id, wherever it stands")
	two := map[string]any{"name": "two", "services": []any{masked("a1")}}
	s.call("demo", session, "PUT", services, []any{masked("new")}, 400)
	s.call("demo", session, "POST", services, masked("new"), 400)
	s.call("demo", "", "POST", "/v1/environments", two, 400)
	s.call("demo", "", "POST", "/v1/templates", two, 400)
	require.Contains(t, fmt.Sprint(s.call("demo", "", "POST", "/burano/v1/preview", two, 400)), "services[0].password is")
	s.call("demo", "", "POST", "/v1/environments/"+id+"/sessions/"+session+"/deploy", nil, 200)
	s.awaitIdle(id)
	s.call("demo", "", "POST", "/v1/environments/"+id+"/actions/a1_shout", map[string]any{"suffix": "*** SANITIZED ***"}, 400)
}

func TestTheAnswersOfMuranoAtEdges(t *testing.T) {
	s := newServer(t)
	made := s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one", "?": map[string]any{"id": "x", "metadata": map[string]any{"a": 1}}}, 200)
	require.Equal(t, map[string]any{"id": "x", "type": "io.murano.Environment", "metadata": map[string]any{}}, field(made, "?"))
	for _, list := range []string{"packages", "categories"} {
		s.call("demo", "", "GET", "/v1/catalog/"+list+"?sort_dir=desc", nil, 200)
		s.call("demo", "", "GET", "/v1/catalog/"+list+"?sort_dir=up", nil, 400)
	}
}

func TestPanicsAndTooLargeBodiesAreAnswered(t *testing.T) {
	s := newServer(t)
	s.echo.GET("/v1/panic", func(echo.Context) error { panic("oh") })
	value := s.call("demo", "", "GET", "/v1/panic", nil, 500)
	require.Equal(t, "Internal Server Error", field(value, "title"))
	require.NotContains(t, fmt.Sprint(value), "oh")
	require.Contains(t, s.log.String(), "panic")

	big := append([]byte(`{"name":"`), bytes.Repeat([]byte("x"), maxJSON)...)
	headers := map[string]string{"X-Auth-Token": "{token:demo}", "Content-Type": "application/json"}
	recorder := s.send("POST", "/v1/environments", headers, append(big, `"}`...))
	require.Equal(t, 413, recorder.Code)
	require.Equal(t, "ok\n", s.send("GET", "/healthz", nil, nil).Body.String())
}

func TestQualityFollowsTheMostSpecificRange(t *testing.T) {
	for accept, want := range map[string]float64{
		"application/json": 1, "*/*": 1, "text/html": 0, "application/*;q=0.5, text/html": 0.5, "application/json;q=0, */*": 0, "text/html, */*;q=0.1": 0.1, "": 0,
	} {
		require.InDelta(t, want, quality(accept, "application/json"), 1e-9, accept)
	}
}
