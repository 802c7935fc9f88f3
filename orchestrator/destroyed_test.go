package orchestrator_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/engine/enginetest"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/preview"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

// waker is an engine that runs nothing.
type waker struct{ orchestrator.Engine }

func (waker) Wake() {}

func (waker) Plan(context.Context, store.Environment, map[string]any, func(context.Context) (*openstack.Project, error), bool) (preview.Plan, error) {
	return preview.Plan{}, nil
}

func TestADeploymentDestroysAClusterOnlyWhenThatIsMeant(t *testing.T) {
	db, err := database.Open(filepath.Join(t.TempDir(), "burano.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Close(db)) })
	rows, err := store.New(t.Context(), db, nil, store.Alone())
	require.NoError(t, err)
	sealer, err := secret.Open(filepath.Join(t.TempDir(), "key"))
	require.NoError(t, err)
	s := orchestrator.New(orchestrator.Config{Store: rows, Sealer: sealer, Trusts: enginetest.NewCloud(), Engine: waker{}, Logger: slog.New(slog.DiscardHandler)})

	one := func(id, name string) map[string]any {
		return map[string]any{"?": map[string]any{"id": id, "type": "com.mirantis.docker.kubernetes.KubernetesCluster"}, "name": name}
	}
	environment := func(t *testing.T, id string) (draft string) {
		t.Helper()
		objects := map[string]any{"?": map[string]any{"id": id, "type": "io.murano.Environment"}, "name": id, "services": []any{one("c1", "first"), one("c2", "second")}}
		e := store.Environment{ID: id, ProjectID: listed, Name: id, Model: store.Model{Objects: objects, ObjectsCopy: store.ForClasses(id, store.Copy(objects))}}
		require.NoError(t, rows.Environments().Create(t.Context(), &e))
		session, err := rows.Sessions().Open(t.Context(), id, store.Holder{ID: "u"})
		require.NoError(t, err)
		return session.ID
	}

	t.Run("one that a file no longer has is kept", func(t *testing.T) {
		draft := environment(t, "e1")
		require.NoError(t, s.Models().PutServices(t.Context(), reader, "e1", draft, nil, []any{one("c2", "second")}, false))
		err := s.Sessions().Deploy(t.Context(), reader, "e1", draft)
		require.True(t, fault.KindOf(err) == fault.Conflict, "%v", err)
		require.ErrorContains(t, err, "does not have cluster first (c1) any more")
		require.ErrorContains(t, err, "--allow-destroy first")
		require.Error(t, s.Sessions().Deploy(t.Context(), reader, "e1", draft, orchestrator.Confirmed{MayDestroy: []string{"second"}}), "another one was meant")
		require.NoError(t, s.Sessions().Deploy(t.Context(), reader, "e1", draft, orchestrator.Confirmed{MayDestroy: []string{"first"}}))
	})
	t.Run("one that comes back with another id is another one", func(t *testing.T) {
		draft := environment(t, "e2")
		require.NoError(t, s.Models().PutServices(t.Context(), reader, "e2", draft, nil, []any{one("c3", "first"), one("c2", "second")}, false))
		require.ErrorContains(t, s.Sessions().Deploy(t.Context(), reader, "e2", draft), "first (c1)")
		require.NoError(t, s.Sessions().Deploy(t.Context(), reader, "e2", draft, orchestrator.Confirmed{MayDestroy: []string{"c1"}}))
	})
	t.Run("a deletion says what it costs", func(t *testing.T) {
		environment(t, "e4")
		deletion, err := s.Environments().Deletion(t.Context(), reader, "e4", nil)
		require.NoError(t, err)
		require.Equal(t, []string{"cluster first (c1) is destroyed, with everything that is in it", "cluster second (c2) is destroyed, with everything that is in it"}, deletion.Goes)
		require.Len(t, deletion.Consents, 2)
		require.Nil(t, deletion.Busy)
		session, err := rows.Sessions().Open(t.Context(), "e4", store.Holder{ID: "u", Name: "Carla"})
		require.NoError(t, err)
		require.NoError(t, s.Sessions().Deploy(t.Context(), reader, "e4", session.ID))
		deletion, err = s.Environments().Deletion(t.Context(), reader, "e4", nil)
		require.NoError(t, err)
		require.NotNil(t, deletion.Busy)
		require.Equal(t, []string{"deployment", "Carla"}, []string{deletion.Busy.Kind, deletion.Busy.UserName})
		require.NotEmpty(t, deletion.Busy.DeploymentID)
	})
	t.Run("one that its user has removed by itself goes", func(t *testing.T) {
		draft := environment(t, "e3")
		require.NoError(t, s.Models().DeleteServices(t.Context(), reader, "e3", draft, []string{"c1"}))
		require.NoError(t, s.Sessions().Deploy(t.Context(), reader, "e3", draft))
	})
}
