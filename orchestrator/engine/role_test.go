package engine_test

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/store"
)

func TestInAProjectWithARoleOfItsOwnBuranoNeedsNobodysTrust(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, open func() *gorm.DB) {
		h := newHouseOver(t, open)
		h.start()
		id := h.create("one")
		projects := orchestrator.NewProjectRoles(h.store, h.sealer, h.cloud, nil, slog.New(slog.DiscardHandler))
		_, err := projects.Enable(t.Context(), colleague, demo.ProjectID)
		require.Equal(t, fault.Forbidden, fault.KindOf(err), "Keystone lets managers only")
		_, err = projects.Enable(t.Context(), identity.Caller{UserID: "u", ProjectID: "p-other", Roles: []string{"manager"}}, demo.ProjectID)
		require.Equal(t, fault.Forbidden, fault.KindOf(err), "a manager of another project")
		shown, err := projects.Enable(t.Context(), projectAdmin, demo.ProjectID)
		require.NoError(t, err)
		require.True(t, shown.Enabled)
		require.Equal(t, "boss", shown.By)
		_, made := h.cloud.Trusts()

		task := h.deployAs(script, id, "first")
		require.Equal(t, store.Role, h.worksWith(task).Kind, "an application credential is enough")
		require.Equal(t, "success", h.ended(id).State)
		_, after := h.cloud.Trusts()
		require.Equal(t, made, after)
		_, through, err := h.engine.StandingProject(t.Context(), id, "")
		require.ErrorContains(t, err, "the test cloud has no projects", "keepers reach the project by it")
		project, _, err := h.engine.StandingProject(t.Context(), id, through)
		require.NoError(t, err)
		require.Nil(t, project, "it is known already")

		repair, err := h.submitRepair(store.Repair{Cloud: true, Action: store.Action{ObjectID: "of first", Method: "mend"}})
		require.NoError(t, err)
		require.Equal(t, store.Role, h.worksWith(repair.ID).Kind, "repairs need no standing delegation")
		h.engine.Wake()
		require.Equal(t, "success", h.ended(id).State)

		require.NoError(t, projects.Disable(t.Context(), projectAdmin, demo.ProjectID))
		_, _, err = h.engine.StandingProject(t.Context(), id, through)
		require.ErrorIs(t, err, store.ErrNotFound)
		task = h.deployAs(colleague, id, "second")
		require.Equal(t, store.Trust, h.worksWith(task).Kind)

		// A role that was removed without Burano is reported.
		_, err = projects.Enable(t.Context(), projectAdmin, demo.ProjectID)
		require.NoError(t, err)
		require.NoError(t, h.cloud.LetOut(t.Context(), projectAdmin, demo.ProjectID, nil))
		shown, err = projects.Show(t.Context(), demo, demo.ProjectID)
		require.NoError(t, err)
		require.Contains(t, shown.Problem, "burano project enable")
		_, _, err = h.engine.StandingProject(t.Context(), id, "")
		require.ErrorContains(t, err, "burano project enable")
	})
}
