package orchestrator_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"
	"pgregory.net/rapid"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/database/databasetest"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/engine/enginetest"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

// TestSessionsAndDeploymentsKeepTheRules does random things to an environment and compares each answer, and the visible state
// after it, with a model of Murano's rules. The rules are about sessions' states and validity, the environment's status and
// version, and the applications that each caller sees. The test decides when a deployment ends, and how.
func TestSessionsAndDeploymentsKeepTheRules(t *testing.T) {
	with := func(open func(t *testing.T) (*gorm.DB, error)) func(t *testing.T) {
		return func(t *testing.T) {
			db, err := open(t)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, database.Close(db)) })
			interleave(t, db)
		}
	}
	t.Run("SQLite", with(func(t *testing.T) (*gorm.DB, error) { return database.Open(filepath.Join(t.TempDir(), "burano.db")) }))
	t.Run("PostgreSQL", with(func(t *testing.T) (*gorm.DB, error) {
		return database.OpenPostgres(t.Context(), databasetest.Postgres(t), 10*time.Second)
	}))
}

var errWanted = errors.New("the test wants it to fail")

func interleave(t *testing.T, db *gorm.DB) {
	var alone []store.Option
	if db.Name() != database.Postgres {
		alone = append(alone, store.Alone()) // as the server does: lists come from memory
	}
	rows, err := store.New(t.Context(), db, nil, alone...)
	require.NoError(t, err)
	sealer, err := secret.Open(filepath.Join(t.TempDir(), "key"))
	require.NoError(t, err)
	packages, err := enginetest.Packages()
	require.NoError(t, err)
	ends := make(chan error) // how the deployment that runs ends
	end := func(ctx context.Context, _ muranopl.Call) (any, error) {
		select {
		case err := <-ends:
			return nil, err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	natives := muranopl.Natives{"io.murano": {"io.murano.Environment": {"deploy": end, ".destroy": end}}}
	cloud := enginetest.NewCloud()
	tasks, err := engine.New(t.Context(), engine.Config{Store: rows, Sealer: sealer, Cloud: cloud, Source: enginetest.Source(packages),
		Natives: func(*engine.Runtime) muranopl.Natives { return natives }, Logger: slog.New(slog.DiscardHandler), Poll: 100 * time.Millisecond})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- tasks.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	service := orchestrator.New(orchestrator.Config{Store: rows, Sealer: sealer, Trusts: cloud, Engine: tasks, Logger: slog.New(slog.DiscardHandler)})

	names := 0
	rapid.Check(t, func(r *rapid.T) {
		names++
		w := &world{r: r, service: service, ends: ends}
		made, err := service.Environments().Create(t.Context(), w.caller(), map[string]any{"name": fmt.Sprintf("environment %d", names)})
		require.NoError(r, err)
		w.id = made.ID
		defer w.leave()
		r.Repeat(map[string]func(*rapid.T){
			"configure": w.configure, "add": w.add, "add what is no class": w.addUnknown, "drop": w.drop, "deploy": w.deploy, "end": w.end, "delete": w.delete, "": w.look,
		})
	})
}

// world is an environment, and its state by the rules.
type world struct {
	r       *rapid.T
	service *orchestrator.Service
	ends    chan error
	id      string

	gone     bool
	version  int64
	deployed bool // something was ever deployed
	services []string
	wrong    bool // as the draft's
	sessions []*draft
	moment   int // of the last change
	added    int
}

type draft struct {
	id       string
	state    string
	version  int64
	services []string
	wrong    bool // its deployment fails before it changes anything
	changed  int
	removed  bool
}

func (w *world) caller() identity.Caller {
	return identity.Caller{UserID: "u1", ProjectID: "p1", Roles: []string{"member"}}
}

// busy is the session that is deploying or deleting, or nil.
func (w *world) busy() *draft {
	for _, s := range w.sessions {
		if !s.removed && (s.state == "deploying" || s.state == "deleting") {
			return s
		}
	}
	return nil
}

func (w *world) editable(s *draft) bool {
	return (s.state == "opened" || s.state == "deploy failure") && s.version == w.version && w.busy() == nil
}

func (w *world) change(s *draft) {
	w.moment++
	s.changed = w.moment
}

// pick is any session there ever was, except for sessions of deletions, whose ids are not shown.
func (w *world) pick(r *rapid.T) *draft {
	known := slices.DeleteFunc(slices.Clone(w.sessions), func(s *draft) bool { return s.id == "" })
	if len(known) == 0 {
		r.Skip("no session yet")
	}
	return rapid.SampledFrom(known).Draw(r, "session")
}

// expect compares an answer with the rules; 0 is success.
func (w *world) expect(r *rapid.T, err error, kind fault.Kind) bool {
	if w.gone {
		kind = fault.NotFound
	}
	if kind == 0 {
		require.NoError(r, err)
		return true
	}
	require.Equal(r, kind, fault.KindOf(err), "%v", err)
	return false
}

func (w *world) kindFor(s *draft) fault.Kind {
	switch {
	case s.removed:
		return fault.NotFound
	case !w.editable(s):
		return fault.Forbidden
	}
	return 0
}

func (w *world) configure(r *rapid.T) {
	kind := fault.Kind(0)
	if w.busy() != nil {
		kind = fault.Forbidden
	}
	made, err := w.service.Sessions().Open(r.Context(), w.caller(), w.id)
	if w.expect(r, err, kind) {
		s := &draft{id: made.ID, state: "opened", version: w.version, services: slices.Clone(w.services), wrong: w.wrong}
		w.change(s)
		w.sessions = append(w.sessions, s)
	}
}

func (w *world) add(r *rapid.T) {
	s := w.pick(r)
	w.added++
	id := fmt.Sprintf("object %d", w.added)
	application := map[string]any{"?": map[string]any{"id": id, "type": "io.murano.Application"}}
	if w.expect(r, w.service.Models().AddServices(r.Context(), w.caller(), w.id, s.id, nil, application, false), w.kindFor(s)) {
		s.services = append(s.services, id)
		w.change(s)
	}
}

func (w *world) addUnknown(r *rapid.T) {
	s := w.pick(r)
	w.added++
	id := fmt.Sprintf("object %d", w.added)
	application := map[string]any{"?": map[string]any{"id": id, "type": "org.example.Nowhere"}}
	if w.expect(r, w.service.Models().AddServices(r.Context(), w.caller(), w.id, s.id, nil, application, false), w.kindFor(s)) {
		s.services, s.wrong = append(s.services, id), true
		w.change(s)
	}
}

func (w *world) drop(r *rapid.T) {
	s := w.pick(r)
	kind := fault.Kind(0)
	switch {
	case s.removed:
		kind = fault.NotFound
	case s.state == "deploying" || s.state == "deleting":
		kind = fault.Forbidden
	}
	if w.expect(r, w.service.Sessions().Delete(r.Context(), w.caller(), w.id, s.id), kind) {
		s.removed = true
	}
}

func (w *world) deploy(r *rapid.T) {
	s := w.pick(r)
	if !w.expect(r, w.service.Sessions().Deploy(r.Context(), w.caller(), w.id, s.id), w.kindFor(s)) {
		return
	}
	s.state = "deploying"
	w.change(s)
	if s.wrong {
		w.rejected(r, s)
	}
}

func (w *world) delete(r *rapid.T) {
	kind := fault.Kind(0)
	if w.busy() != nil {
		kind = fault.Forbidden
	}
	if !w.expect(r, w.service.Environments().Delete(r.Context(), w.caller(), w.id, false), kind) {
		return
	}
	if !w.deployed {
		w.gone = true
		return
	}
	s := &draft{state: "deleting", version: w.version}
	w.change(s)
	w.sessions = append(w.sessions, s)
}

// end ends the running task.
func (w *world) end(r *rapid.T) {
	s := w.busy()
	if s == nil || w.gone {
		r.Skip("nothing runs")
	}
	var how error
	if rapid.Bool().Draw(r, "fails") {
		how = errWanted
	}
	w.finish(r, s, how)
}

func (w *world) finish(r *rapid.T, s *draft, how error) {
	select {
	case w.ends <- how:
	case <-time.After(30 * time.Second):
		r.Fatal("what was accepted does not run")
	}
	require.Eventually(r, func() bool {
		seen, err := w.service.Environments().Get(r.Context(), w.caller(), w.id, "")
		return fault.KindOf(err) == fault.NotFound || err == nil && seen.Version == w.version+1
	}, 30*time.Second, time.Millisecond)
	deletion := s.state == "deleting"
	if deletion && how == nil {
		w.gone = true
		return
	}
	w.version++
	w.change(s)
	switch {
	case deletion:
		s.state = "delete failure"
	case how != nil:
		s.state = "deploy failure"
	default:
		s.state = "deployed"
	}
	if !deletion {
		w.deployed, w.services = true, slices.Clone(s.services)
	}
}

// rejected waits for the end of a deployment that changes nothing. An environment that was never deployed gets the model all the same, as in Murano.
func (w *world) rejected(r *rapid.T, s *draft) {
	require.Eventually(r, func() bool {
		seen, err := w.service.Environments().Get(r.Context(), w.caller(), w.id, "")
		return err == nil && seen.Status == "deploy failure"
	}, 30*time.Second, time.Millisecond)
	s.state = "deploy failure"
	w.change(s)
	if !w.deployed {
		w.version++
		w.services, w.wrong = slices.Clone(s.services), true
	}
}

// look compares all that can be seen.
func (w *world) look(r *rapid.T) {
	list, err := w.service.Environments().List(r.Context(), w.caller(), orchestrator.ListOptions{})
	require.NoError(r, err)
	listed := slices.IndexFunc(list, func(e orchestrator.Environment) bool { return e.ID == w.id })
	require.Equal(r, w.gone, listed < 0)
	seen, err := w.service.Environments().Get(r.Context(), w.caller(), w.id, "")
	if !w.expect(r, err, 0) {
		return
	}
	require.Equal(r, w.version, list[listed].Version)
	require.Equal(r, w.status(), list[listed].Status)
	require.Equal(r, w.version, seen.Version)
	require.Equal(r, w.status(), seen.Status)
	require.Equal(r, w.services, ids(seen.Services.List))
	for _, s := range w.sessions {
		if s.id == "" {
			continue
		}
		shown, err := w.service.Sessions().Get(r.Context(), w.caller(), w.id, s.id)
		valid := s.version == w.version && (s.state != "opened" && s.state != "deploy failure" || w.busy() == nil)
		kind := fault.Kind(0)
		switch {
		case s.removed:
			kind = fault.NotFound
		case !valid:
			kind = fault.Forbidden
		}
		if w.expect(r, err, kind) {
			require.Equal(r, s.state, shown.State)
		}
		if s.removed {
			continue
		}
		want := w.services
		if valid {
			want = s.services
		}
		through, err := w.service.Environments().Get(r.Context(), w.caller(), w.id, s.id)
		require.NoError(r, err)
		require.Equal(r, want, ids(through.Services.List))
	}
}

// status is the status by the rules: the newest session that does not merely draft decides.
func (w *world) status() string {
	ordered := slices.DeleteFunc(slices.Clone(w.sessions), func(s *draft) bool { return s.removed })
	slices.SortFunc(ordered, func(a, b *draft) int {
		return cmp.Or(cmp.Compare(b.version, a.version), cmp.Compare(b.changed, a.changed))
	})
	status := "ready"
	for _, s := range ordered {
		switch s.state {
		case "opened":
			status = "pending"
		case "deployed":
			return status
		default:
			return s.state
		}
	}
	return status
}

// leave abandons the environment and ends its task, so that nothing of it affects the next environment.
func (w *world) leave() {
	if err := w.service.Environments().Delete(context.Background(), w.caller(), w.id, true); err != nil && !w.gone {
		w.r.Errorf("abandon: %v", err)
	}
}

func ids(services []any) []string {
	var list []string
	for _, service := range services {
		list = append(list, service.(map[string]any)["?"].(map[string]any)["id"].(string))
	}
	return list
}
