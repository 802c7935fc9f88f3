package orchestrator_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/preview"
	"github.com/burano/burano/orchestrator/store"
)

// scribbler is an engine that changes the model that it checks.
type scribbler struct{ orchestrator.Engine }

func (scribbler) Check(_ context.Context, _ string, _ map[string][]string, objects map[string]any) (map[string]any, map[string][]string, []muranopl.Problem) {
	for _, application := range objects["applications"].([]any) {
		application.(map[string]any)["name"] = "scribbled over"
	}
	return objects, nil, []muranopl.Problem{{Wanted: "something else"}}
}

func (c scribbler) Plan(ctx context.Context, environment store.Environment, objects map[string]any, _ func(context.Context) (*openstack.Project, error), _ bool) (preview.Plan, error) {
	_, _, problems := c.Check(ctx, "", nil, objects)
	return preview.Plan{Problems: problems}, nil
}

// TestWhatIsSharedIsNotChanged: models that many look at stay as they are stored, whatever is tried with them.
func TestWhatIsSharedIsNotChanged(t *testing.T) {
	db, err := database.Open(filepath.Join(t.TempDir(), "burano.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Close(db)) })
	rows, err := store.New(t.Context(), db, nil, store.Alone())
	require.NoError(t, err)
	s := orchestrator.New(orchestrator.Config{Store: rows, Engine: scribbler{}, Logger: slog.New(slog.DiscardHandler)})
	e := store.Environment{ID: "e", ProjectID: listed, Name: "e", Model: store.Model{Objects: objects("e")}}
	require.NoError(t, rows.Environments().Create(t.Context(), &e))
	draft, err := rows.Sessions().Open(t.Context(), "e", store.Holder{ID: "u"})
	require.NoError(t, err)
	seen := func() map[string]any {
		t.Helper()
		model, err := s.Models().Get(t.Context(), reader, "e", draft.ID, nil)
		require.NoError(t, err)
		return model.(map[string]any)
	}
	before := seen()
	stored := store.Copy(before)
	require.Equal(t, stored, before)

	application := map[string]any{"?": map[string]any{"id": "new", "type": "org.test.Application"}}
	require.Error(t, s.Models().AddServices(t.Context(), reader, "e", draft.ID, nil, application, true))
	require.Error(t, s.Models().PutServices(t.Context(), reader, "e", draft.ID, nil, []any{}, true))
	_, err = s.Previews().Get(t.Context(), reader, "e", draft.ID)
	require.NoError(t, err)
	shown, err := s.Environments().Get(t.Context(), reader, "e", draft.ID)
	require.NoError(t, err)
	_, err = json.Marshal(shown.Services)
	require.NoError(t, err)
	require.Equal(t, stored, seen())

	require.NoError(t, s.Models().AddServices(t.Context(), reader, "e", draft.ID, nil, application, false))
	require.Equal(t, stored, before, "an edit changes its own copy")
	require.NotEqual(t, stored, seen())
}
